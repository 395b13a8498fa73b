"""Words from outside on one line: nothing in them moves a terminal's cursor, or begins a line of a log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MOST_NAMED: Final = 5
"""Names on one line."""


def plain(text: str, limit: int | None = None) -> str:
    """Text with a blank for each run of blanks, ends of lines and characters that do not print; cut at a limit."""
    words = " ".join(printable(text).split())
    return words if limit is None else cut(words, limit)


def counted(count: int, one: str, many: str = "") -> str:
    """A number with its noun: "1 round", "2 rounds"."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def listed(names: Sequence[str]) -> str:
    """The first :data:`MOST_NAMED` names, and how many more there are."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def joined(*sentences: str) -> str:
    """Sentences on one line, without those that are empty."""
    return "; ".join(filter(None, sentences))


def printable(text: str) -> str:
    """Text with a blank for each character that does not print."""
    return "".join(each if each.isprintable() else " " for each in text)


def cut(text: str, limit: int) -> str:
    """Text of ``limit`` characters at most, the last one saying where there were more."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
