from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from services.contracts.access.identity import Role
from services.identity.tokens import issue
from services.round_store.store import RoundStore


@pytest.fixture
def store(database_url: str) -> Iterator[RoundStore]:
    opened = RoundStore.open(database_url)
    yield opened
    opened.close()


def test_a_session_has_its_token_until_it_ends(store: RoundStore) -> None:
    token = store.tokens.add(issue("ada", Role.OPERATOR, datetime.now(UTC)).stored)
    for digit in "ab":
        store.sessions.begin(digit * 64, token.token_id, timedelta(hours=1))
    found = store.sessions.find("a" * 64)
    assert found is not None
    session, its = found
    assert (session.session_id, its.token_id) == ("a" * 16, token.token_id)
    assert session.expires_at - session.created_at == timedelta(hours=1)
    assert store.sessions.find("c" * 64) is None
    assert {each.session_id for each in store.sessions.list_sessions()} == {"a" * 16, "b" * 16}
    for nobody in ("c" * 16, "%", "_" * 16):
        assert not store.sessions.end(nobody)
    assert store.sessions.end("a" * 16)
    assert store.sessions.find("a" * 64) is None and store.sessions.find("b" * 64) is not None


def test_sessions_that_are_over_are_swept_away(store: RoundStore) -> None:
    token = store.tokens.add(issue("ada", Role.OPERATOR, datetime.now(UTC)).stored)
    store.sessions.begin("a" * 64, token.token_id, timedelta(seconds=-1))
    assert store.sessions.list_sessions() == []
    store.sessions.begin("b" * 64, token.token_id, timedelta(hours=1))
    assert store.sessions.find("a" * 64) is None
