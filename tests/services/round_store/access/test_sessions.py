from __future__ import annotations

from datetime import UTC, datetime, timedelta

from services.contracts.access.identity import Role
from services.identity.tokens import issue
from services.round_store.store import RoundStore


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


def test_of_sign_ins_those_that_ended_and_bear_no_session_are_swept_away(store: RoundStore) -> None:
    now, tokens = datetime.now(UTC), {}
    for name, age in (
        ("oidc:a ended", timedelta(hours=2)), ("oidc:b revoked", timedelta(0)), ("oidc:c holds", timedelta(0)),
        ("oidc:d revoked, signed in", timedelta(0)), ("oidc_e of another kind", timedelta(hours=2)),
    ):
        issued = issue(name, Role.VIEWER, now - age, timedelta(hours=1)).stored
        tokens[name] = store.tokens.add(issued).token_id
        if "revoked" in name:
            store.tokens.revoke(tokens[name])
    store.sessions.begin("a" * 64, tokens["oidc:d revoked, signed in"], timedelta(hours=1))
    store.sessions.begin("b" * 64, tokens["oidc:b revoked"], timedelta(seconds=-1))
    store.sessions.sweep_sign_ins("oidc:")
    assert sorted(token.name for token in store.tokens.list_tokens()) == [
        "oidc:c holds", "oidc:d revoked, signed in", "oidc_e of another kind"]
    assert [each.session_id for each in store.sessions.list_sessions()] == ["a" * 16]


def test_sessions_that_are_over_are_swept_away(store: RoundStore) -> None:
    token = store.tokens.add(issue("ada", Role.OPERATOR, datetime.now(UTC)).stored)
    store.sessions.begin("a" * 64, token.token_id, timedelta(seconds=-1))
    assert store.sessions.list_sessions() == []
    store.sessions.begin("b" * 64, token.token_id, timedelta(hours=1))
    assert store.sessions.find("a" * 64) is None
