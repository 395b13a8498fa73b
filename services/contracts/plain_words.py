"""Words from outside on one line: nothing in them moves a terminal's cursor, or begins a line of a log."""

from __future__ import annotations


def plain(text: str, limit: int | None = None) -> str:
    """Text with a blank for each run of blanks, ends of lines and characters that do not print; cut at a limit."""
    words = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return words if limit is None or len(words) <= limit else words[: limit - 1] + "…"
