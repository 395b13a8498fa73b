"""Who is let in by rows that were written past the service is told by `ballast doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from api.backend.actor import Actor, local_administrator, record
from api.backend.wiring import Backend, open_backend
from api.sites import service as sites
from api.sites.schemas import KeyChange, SiteEnrolment
from api.system.let_in import let_in
from api.tokens import service as tokens
from api.tokens.schemas import TokenRequest
from api.web.sessions import Sessions, session_id
from services.contracts.access.identity import Role
from services.contracts.keys.signing import new_seed_file
from services.identity.oidc import Identity
from services.identity.tokens import hash_secret
from services.process.settings import Settings


def said(backend: Backend) -> str:
    found = let_in(backend.store, datetime.now(UTC))
    assert (found.state == "ok") == (found.todo == "")
    return "" if found.state == "ok" else found.said


def forged(backend: Backend, statement: str, **values: object) -> str:
    with backend.store.database.write() as session:
        session.execute(text(statement), values)
    return said(backend)


@pytest.fixture
def backend(home: Path) -> Iterator[Backend]:
    (home / "nats" / "coordinator.nk").unlink(missing_ok=True)
    with open_backend(Settings.load(home, {})) as opened:
        yield opened


def token(backend: Backend, name: str = "ada") -> str:
    return tokens.create(backend, local_administrator(), TokenRequest(name=name, role=Role.VIEWER, days=3)).token_id


def test_a_token_that_nobody_made_or_that_was_changed_is_told(backend: Backend) -> None:
    made = token(backend)
    assert said(backend) == ""
    at = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f}"
    values = {"token_id": "ab" * 6, "hash": hash_secret("cd" * 32), "at": at}
    told = forged(
        backend, "INSERT INTO api_tokens (token_id, name, role, secret_sha256, created_at) "
        "VALUES (:token_id, 'bob', 'administrator', :hash, :at)", **values,
    )
    assert told == f"token {'ab' * 6} (bob, administrator) is not as the audit trail has it"
    assert forged(backend, "DELETE FROM api_tokens WHERE name = 'bob'") == ""
    for change in ("role = 'administrator'", "expires_at = NULL", "secret_sha256 = :hash"):
        before = backend.store.tokens.find(made)
        assert before is not None
        told = forged(backend, f"UPDATE api_tokens SET {change}", **({"hash": values["hash"]} if ":" in change else {}))
        assert told.startswith(f"token {made} (ada"), change
        forged(
            backend, "UPDATE api_tokens SET role = 'viewer', expires_at = :end, secret_sha256 = :hash",
            end=f"{before.token.expires_at:%Y-%m-%d %H:%M:%S.%f}", hash=before.secret_sha256,
        )
        assert said(backend) == ""


def test_a_token_that_was_brought_back_is_told(backend: Backend) -> None:
    tokens.revoke(backend, local_administrator(), token(backend))
    assert said(backend) == ""
    assert "(ada, viewer)" in forged(backend, "UPDATE api_tokens SET revoked_at = NULL")


def test_a_session_that_nobody_began_is_told(backend: Backend) -> None:
    mine, other = token(backend), token(backend, "bob")
    stored = backend.store.tokens.find(mine)
    assert stored is not None
    secret = Sessions(backend.store).begin(stored.token)
    assert "is not in the audit trail" in said(backend)
    with backend.store.atomic() as store:
        record(store, Actor(f"token:{mine} ada", Role.VIEWER), "session.begin", f"session:{session_id(secret)}")
    assert said(backend) == ""
    assert f"of token {other}" in forged(backend, "UPDATE console_sessions SET token_id = :other", other=other)


def test_a_sign_in_is_held_to_its_subjects_roles(backend: Backend) -> None:
    """Somebody of the issuer may be signed in twice, by roles of two days."""
    end = datetime.now(UTC) + timedelta(hours=1)
    for role in (Role.OPERATOR, Role.VIEWER):
        ada = Identity("oidc:id.example:ada", "ab" * 6, role, end, end)
        secret, _ = Sessions(backend.store).begin_signed_in(ada)
        assert f"{role.value}) is not" in said(backend)
        with backend.store.atomic() as store:
            record(store, Actor(ada.name, role), "session.begin", f"session:{session_id(secret)}")
        assert said(backend) == ""
    told = forged(backend, "UPDATE api_tokens SET role = 'administrator' WHERE role = 'viewer'")
    assert "administrator) is not as the audit trail has it" in told


def test_a_plants_key_that_nobody_gave_it_is_told(backend: Backend, tmp_path: Path) -> None:
    first, second, thief = (new_seed_file(tmp_path / f"{name}.nk") for name in ("first", "second", "thief"))
    sites.enrol(backend, local_administrator(), SiteEnrolment(site_id="plant-1", public_key=first))
    assert said(backend) == ""
    sites.rotate_key(backend, local_administrator(), "plant-1", KeyChange(public_key=second, reason="old"))
    assert said(backend) == ""
    for column in ("public_key", "former_key"):
        told = forged(backend, f"UPDATE sites SET {column} = :key", key=thief)
        assert told == "the key of site plant-1 is not the one of the audit trail"
        forged(backend, "UPDATE sites SET public_key = :second, former_key = :first", first=first, second=second)
    assert said(backend) == ""
    told = forged(backend, "UPDATE sites SET public_key = :key, status = 'suspended'", key=thief)
    assert told == "the key of site plant-1 is not the one of the audit trail", "it is let in once it is activated"
    sites.remove(backend, local_administrator(), "plant-1", "gone")
    assert said(backend) == ""
    assert "plant-1" in forged(backend, "UPDATE sites SET status = 'active'")
