"""Colour for people at a terminal: none for a program that reads, nor where ``NO_COLOR`` asks for none.

What a colour says always stands there as a word too. ``NO_COLOR`` (https://no-color.org) counts where it is not empty.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Final, Literal

Mood = Literal["good", "warn", "bad", "title"]
_CODES: Final[Mapping[Mood, str]] = {"good": "32", "warn": "33", "bad": "31", "title": "1"}
"""Parameters of ECMA-48's SGR: green, yellow, red, bold."""
_MOODS: Final[Mapping[str, Mood]] = {
    "completed": "good", "connected": "good", "active": "good", "running": "good",
    "suspended": "warn", "cancelled": "warn", "never": "warn", "silent": "warn",
    "failed": "bad", "removed": "bad",
}
"""Mood of a state, by its first word; of all others there is none."""


def has_colour(environment: Mapping[str, str] | None = None) -> bool:
    """Whether what is printed is shown by a terminal that knows colours, to who wants them."""
    known = os.environ if environment is None else environment
    if known.get("NO_COLOR") or known.get("TERM", "dumb") == "dumb":
        return False
    return sys.stdout is not None and not sys.stdout.closed and sys.stdout.isatty()


def shaded(text: str, mood: Mood | None) -> str:
    """Text in the colour of a mood, where there is colour."""
    return f"\x1b[{_CODES[mood]}m{text}\x1b[0m" if mood is not None and has_colour() else text


def mood_of(state: str) -> Mood | None:
    """Mood of a run's, a site's or an agent's state; None for one that is neither well nor wrong."""
    return _MOODS.get(state.partition(" ")[0])
