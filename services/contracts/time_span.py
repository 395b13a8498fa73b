"""A span of time that a list is narrowed to."""

from __future__ import annotations

from datetime import datetime

from services.contracts.errors import InvalidInputError


def check_order(since: datetime | None, until: datetime | None) -> None:
    """Hold a span to its order; ``InvalidInputError`` where it ends before it begins."""
    if since is not None and until is not None and until < since:
        raise InvalidInputError(f"until {until:%Y-%m-%d %H:%M:%S} comes before since {since:%Y-%m-%d %H:%M:%S} (UTC)")
