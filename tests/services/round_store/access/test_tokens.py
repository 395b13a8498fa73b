"""Stored tokens."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from services.contracts.access.identity import ApiToken, Role, StoredToken
from services.contracts.errors import ConflictError, NotFoundError
from services.round_store.store import RoundStore
from services.round_store.tables.access import ApiTokenRow


def make(token_id: str, name: str, *, days_ago: int = 0) -> StoredToken:
    now = datetime.now(UTC) - timedelta(days=days_ago)
    token = ApiToken(
        token_id=token_id, name=name, role=Role.OPERATOR, created_at=now, expires_at=now + timedelta(days=1)
    )
    return StoredToken(token=token, secret_sha256="ab" * 32)


def test_tokens_are_found_and_revoked(store: RoundStore) -> None:
    stored = make("0" * 12, "ci")
    assert store.tokens.add(stored) == stored.token
    assert store.tokens.find("0" * 12) == stored
    assert store.tokens.find("1" * 12) is None
    with pytest.raises(ConflictError, match="named ci already"):
        store.tokens.add(make("1" * 12, "ci"))
    revoked = store.tokens.revoke("0" * 12)
    assert revoked.revoked_at is not None
    assert store.tokens.revoke("0" * 12) == revoked
    store.tokens.add(make("1" * 12, "ci"))
    assert {token.token_id for token in store.tokens.list_tokens()} == {"0" * 12, "1" * 12}
    with pytest.raises(NotFoundError, match="no token"):
        store.tokens.revoke("2" * 12)


def test_last_use_is_written_once_a_minute(store: RoundStore) -> None:
    store.tokens.add(make("0" * 12, "ci"))
    store.tokens.add(make("1" * 12, "other"))
    assert store.tokens.touch("0" * 12)
    assert not store.tokens.touch("0" * 12)
    other = store.tokens.find("1" * 12)
    assert other is not None and other.token.last_used_at is None, "each is of the token that was used"
    old = datetime.now(UTC) - timedelta(seconds=61)
    with store.database.write() as session:
        session.execute(update(ApiTokenRow).values(last_used_at=old))
    assert store.tokens.touch("0" * 12)
    found = store.tokens.find("0" * 12)
    assert found is not None
    assert found.token.last_used_at is not None
    assert found.token.last_used_at > old
    assert not store.tokens.touch("9" * 12)


def test_tokens_are_listed_newest_first(store: RoundStore) -> None:
    for number, days_ago in enumerate((3, 1, 2)):
        store.tokens.add(make(str(number) * 12, f"of {days_ago} days ago", days_ago=days_ago))
    assert [token.token_id[0] for token in store.tokens.list_tokens()] == ["1", "2", "0"]
