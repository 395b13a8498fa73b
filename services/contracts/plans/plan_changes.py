"""What two versions of a plan differ in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from services.contracts.documents import to_plain
from services.contracts.plans.plan import Plan

Change = tuple[Any, Any]
"""A field's value before and after, as JSON knows it; null where the field was not there."""


def plan_changes(before: Plan, after: Plan) -> dict[str, Change]:
    """Fields that differ, by their path such as ``spec.radius.value``; empty for equal plans. Lists differ whole."""
    return dict(_changes("", to_plain(before), to_plain(after)))


def _changes(path: str, before: Any, after: Any) -> Iterator[tuple[str, Change]]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in [*before, *(name for name in after if name not in before)]:
            yield from _changes(f"{path}.{name}" if path else str(name), before.get(name), after.get(name))
    elif before != after:
        yield path, (before, after)
