"""A key that stands twice in one object of JSON: readers keep the last value, here it is refused."""

from __future__ import annotations

from typing import Any


class RepeatedKeyError(Exception):
    """A key is there twice."""


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these members, as ``object_pairs_hook`` of a reader; ``RepeatedKeyError`` with the second key."""
    found = dict[str, Any]()
    for key, value in pairs:
        if key in found:
            raise RepeatedKeyError(key)
        found[key] = value
    return found


def said_twice(key: str) -> str:
    """What is said of a key that is there twice."""
    return f"the key {key[:60]!r} is there twice in one object; say it once"
