"""Values of parameters: numbers, whole numbers and truth values, each refused by its name in one line."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import numpy as np

from models.basics import ProblemError

_LONGEST: Final = 80
"""Characters of a refused value that an error shows."""


def shown(value: object) -> str:
    """A refused value as an error has it: on one line, however many an array or a table would take."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def is_word(value: object, word: str) -> bool:
    """Whether a parameter is that word; an array, which compares element by element, is none."""
    return isinstance(value, str) and value == word


def check_word(name: str, value: object, known: Collection[str]) -> None:
    """Refuse a parameter that is none of the words, by its name. :class:`ProblemError` names what it may be."""
    if not any(is_word(value, word) for word in known):
        raise ProblemError(f"{name} must be one of {', '.join(known)}, got {shown(value)}")


def number(name: str, value: Any, *, also: str = "") -> float:
    """A parameter as a float, or ``ProblemError`` with its name; neither an array of one value is one, nor a text.

    ``also``: what else the parameter may be, for the error's words.
    """
    try:
        if getattr(value, "ndim", 0) or isinstance(value, str | bytes):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise ProblemError(f"{name} must be a number, got {shown(value)}{also}") from None


def whole_number(name: str, value: Any, least: int = 1, *, also: str = "") -> int:
    """A parameter as a whole number at or above ``least``, or ``ProblemError`` with its name.

    ``also``: what else the parameter may be, for the error's words.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ProblemError(f"{name} must be a whole number at or above {least}{also}, got {shown(value)}")
    return int(value)


def truth(name: str, value: Any) -> bool:
    """A parameter that is true or false, or ``ProblemError`` with its name: a text such as "no" is neither."""
    if not np.isscalar(value) or value not in (0, 1):
        raise ProblemError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)
