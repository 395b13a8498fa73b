"""By what the cells of a table are divided, where it is not what was said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_MARKS: Final = (";", "\t", ",", "|")


def other_delimiter(header: Sequence[str], stated: str) -> str | None:
    """What a header of one cell holds that other files divide their cells by; None where there is nothing."""
    if len(header) != 1:
        return None
    return next((mark for mark in _MARKS if mark != stated and mark in header[0]), None)
