"""How PostgreSQL keeps the frames of rounds: as they are, for the tries to compress numbers cost most of a commit."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import text

from migrations import run
from services.round_store.database.session import make_engine

FRAMES = {("run_exchanges", "task"), ("run_exchanges", "answer"), ("run_states", "frame"), ("run_state_parts", "frame")}
"""What a commit writes of a round, by table and column."""
KEPT = text(
    "SELECT relname, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid "
    "WHERE attstorage = 'e' AND relkind = 'r' AND relnamespace = 'public'::regnamespace"
)


def as_they_are(url: str) -> set[tuple[str, str]]:
    engine = make_engine(url)
    with engine.connect() as connection:
        found = {(table, column) for table, column in connection.execute(KEPT)}
    engine.dispose()
    return found


def test_postgresql_does_not_try_to_compress_frames(new_postgresql: Callable[[], str]) -> None:
    url = new_postgresql()
    assert as_they_are(url) == FRAMES
    assert run.downgrade(url, "0014") == "0014" and as_they_are(url) == set()
    assert run.upgrade(url) == run.head() and as_they_are(url) == FRAMES
