"""The parameter ``tuning`` of an estimator: what it tries, each value read or refused in one line."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from models.basics import ProblemError
from models.estimators.values import number, shown

TRIED: Final = ("radius", "label_flip_cost", "client_radius", "segments")
"""What candidates differ by."""
_KNOWN: Final = (*TRIED, "folds", "seed", "rule", "budget")


def asked_tuning(given: Any) -> Mapping[str, Any]:
    """What a mapping says, nothing for "auto".

    ``ProblemError`` for anything else, an unknown name, or a mapping that tries nothing: one that is empty may be meant
    as no tuning, or as "auto", so it is neither.
    """
    if isinstance(given, str) and given == "auto":
        return {}
    if not isinstance(given, Mapping):
        raise ProblemError(f'tuning must be None, "auto" or a mapping, got {shown(given)}')
    unknown = sorted(set(given) - set(_KNOWN), key=repr)
    if unknown:
        raise ProblemError(f"tuning knows {', '.join(_KNOWN)}, got {unknown[0]!r}")
    if not set(given) & set(TRIED):
        raise ProblemError(
            f"a tuning says what is tried, some of {', '.join(TRIED)}, got {shown(given)}; \"auto\" chooses by itself"
        )
    return given


def numbers(name: str, given: Any) -> list[float]:
    """One value or several as numbers."""
    return [number(name, each) for each in listed(given)]


def listed(given: Any) -> Sequence[Any]:
    """Any collection of values, such as a range or a Series, as a list; one value as a list of one."""
    one = isinstance(given, str | Mapping) or not isinstance(given, Collection) or getattr(given, "ndim", 1) == 0
    return [given] if one else list(given)
