"""What tests of several services open alike.

The store's code is imported by the fixture alone: a plant's tests run in a process without SQLAlchemy as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from services.round_store.store import RoundStore


@pytest.fixture
def store(database_url: str) -> Iterator[RoundStore]:
    """Store on a fresh database."""
    from services.round_store.store import RoundStore

    opened = RoundStore.open(database_url)
    yield opened
    opened.close()
