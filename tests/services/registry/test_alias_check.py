"""Aliases of a registry held against what a store knows: what is moved is told, what is not known is left alone."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from services.registry.alias_check import moved_aliases
from services.registry.labels import CHALLENGER, CHAMPION, PREVIOUS


def moved(recorded: Mapping[str, str | None], found: dict[str, str]) -> dict[str, tuple[str | None, str | None]]:
    """What is expected, and what was found, of each alias that somebody moved."""
    records: Any = SimpleNamespace(
        alias=lambda name, alias: SimpleNamespace(version=recorded[alias]) if alias in recorded else None,
        numbers=lambda name: ("10", "2", "1"),
    )
    registry: Any = SimpleNamespace(aliases=lambda name: found)
    return {each.alias: (each.expected, each.found) for each in moved_aliases(records, registry, "pump")}


SOUND = {CHAMPION: "2", PREVIOUS: "1", CHALLENGER: "10"}


@pytest.mark.parametrize(
    ("recorded", "found", "told"),
    [
        ({CHAMPION: "2", PREVIOUS: "1"}, SOUND, {}),
        ({CHAMPION: "2", PREVIOUS: "1"}, SOUND | {CHAMPION: "1"}, {CHAMPION: ("2", "1")}),
        ({CHAMPION: "2", PREVIOUS: "1"}, {CHALLENGER: "10"}, {CHAMPION: ("2", None), PREVIOUS: ("1", None)}),
        ({CHAMPION: "2", PREVIOUS: None}, SOUND, {PREVIOUS: (None, "1")}),
        ({CHAMPION: "2", PREVIOUS: "1"}, SOUND | {CHALLENGER: "2"}, {CHALLENGER: ("10", "2")}),
        ({CHAMPION: "2", PREVIOUS: "1"}, SOUND | {CHALLENGER: "11"}, {}),
        ({}, SOUND, {}),
    ],
)
def test_what_was_moved_is_told(
    recorded: dict[str, str | None], found: dict[str, str], told: dict[str, tuple[str | None, str | None]]
) -> None:
    assert moved(recorded, found) == told


def test_a_champion_that_the_store_does_not_know_stays() -> None:
    """An operator promoted a version of before the store: it is on record that the one before is champion no more."""
    assert moved({CHAMPION: None, PREVIOUS: "1"}, SOUND | {CHAMPION: "7"}) == {}
