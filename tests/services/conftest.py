"""What tests of several services open alike."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from services.round_store.store import RoundStore


@pytest.fixture
def store(database_url: str) -> Iterator[RoundStore]:
    """Store on a fresh database."""
    opened = RoundStore.open(database_url)
    yield opened
    opened.close()
