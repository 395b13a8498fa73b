"""API tokens."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from api.backend.actor import Actor, record
from api.backend.wiring import Backend
from api.tokens.schemas import NewToken, TokenRequest
from services.contracts.access.identity import ApiToken
from services.identity.tokens import fingerprint, issue


def create(backend: Backend, actor: Actor, wanted: TokenRequest) -> NewToken:
    """Make a token. Its text is in the answer and nowhere else; ``ConflictError`` when the name is taken."""
    now = datetime.now(UTC)
    lifetime = None if wanted.days is None else timedelta(days=wanted.days)
    if wanted.expires_at is not None:
        lifetime = wanted.expires_at - now
    issued = issue(wanted.name, wanted.role, now, lifetime, wanted.scopes)
    with backend.store.atomic() as store:
        token = store.tokens.add(issued.stored)
        after = token.model_dump(mode="json") | {"fingerprint": fingerprint(issued.stored)}
        record(store, actor, "token.create", f"token:{token.token_id}", after=after)
    shown = token.model_dump(include={"token_id", "name", "role", "created_at", "expires_at", "scopes"})
    return NewToken(token=issued.text, **shown)


def revoke(backend: Backend, actor: Actor, token_id: str, reason: str = "") -> ApiToken:
    """Revoke a token for good, from the next request on."""
    with backend.store.atomic() as store:
        stored = store.tokens.find(token_id)
        after = store.tokens.revoke(token_id)
        before = None if stored is None else stored.token
        if after != before:
            record(store, actor, "token.revoke", f"token:{token_id}", before=before, after=after, reason=reason)
    return after
