"""Whether the audit trail knows all whom the store lets in, for ``ballast doctor``: callers, sessions and plants.

A change and its entry are one transaction, so a row that the trail does not know was written past the service. Who
writes an entry too makes the trail's end another than the one that was kept elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from pydantic import ValidationError

from api.system.finding import Finding
from api.web.sessions import subject_of_sign_in
from services.contracts.access.identity import ApiToken, ConsoleSession
from services.contracts.history.audit import AuditEvent
from services.contracts.history.site import Site
from services.identity.tokens import fingerprint
from services.round_store.database.queries import MAX_PAGE
from services.round_store.store import RoundStore

CHECK: Final = "who is let in"
REMEDY: Final = (
    "somebody wrote to the database past the service: `ballast token revoke`, `ballast site remove`, and compare it "
    "with a backup"
)


def let_in(store: RoundStore, now: datetime) -> Finding:
    """Every token, session and plant that is let in now, against the entry of what let it in."""
    tokens = [token for token in store.tokens.list_tokens() if token.is_live(now)]
    sites = [site for site in store.sites.list_sites() if site.status != "removed"]
    said = [*_of_tokens(store, tokens), *_of_sessions(store), *_of_sites(store, sites, now)]
    if said:
        return Finding(check=CHECK, state="fail", said="; ".join(said), todo=REMEDY)
    return Finding(check=CHECK, state="ok", said="tokens, sessions and plants' keys are those of the audit trail")


def _of_tokens(store: RoundStore, tokens: list[ApiToken]) -> Iterator[str]:
    for token in tokens:
        if subject := subject_of_sign_in(token):
            begun = store.audit.list_events(actor=subject, action="session.begin", limit=MAX_PAGE)
            known = any(entry.role == token.role for entry in begun)
        else:
            entry = _newest(store, f"token:{token.token_id}", "token.create", "token.revoke")
            known = entry is not None and _is_as_made(store, token, entry)
        if not known:
            yield f"token {token.token_id} ({token.name}, {token.role.value}) is not as the audit trail has it"


def _is_as_made(store: RoundStore, token: ApiToken, entry: AuditEvent) -> bool:
    stored, shown, made = store.tokens.find(token.token_id), token.model_dump(mode="json"), entry.after or {}
    if entry.action != "token.create":
        return False
    if any(made.get(name) != shown[name] for name in ("name", "role", "scopes", "expires_at")):
        return False
    known = stored and fingerprint(stored)
    return made.get("fingerprint", known) == known  # entries of older tokens have none


def _of_sessions(store: RoundStore) -> Iterator[str]:
    """A session's entry is by whoever holds its token."""
    for session in store.sessions.list_sessions():
        entry = _newest(store, f"session:{session.session_id}", "session.begin")
        if entry is None or not _is_by(store, entry, session):
            yield f"session {session.session_id} of token {session.token_id} is not in the audit trail"


def _is_by(store: RoundStore, entry: AuditEvent, session: ConsoleSession) -> bool:
    found = store.tokens.find(session.token_id)
    if found is None:
        return False
    subject = subject_of_sign_in(found.token)
    return entry.actor == subject if subject else entry.actor.startswith(f"token:{session.token_id} ")


def _of_sites(store: RoundStore, sites: list[Site], now: datetime) -> Iterator[str]:
    for site in sites:
        entry = _newest(store, f"site:{site.site_id}", "site.enrol", "site.rotate_key", "site.remove")
        try:
            given = None if entry is None else Site.model_validate(entry.after)
            known = given is not None and given.status != "removed" and given.keys_at(now) == site.keys_at(now)
        except ValidationError:
            known = False
        if not known:
            yield f"the key of site {site.site_id} is not the one of the audit trail"


def _newest(store: RoundStore, target: str, *actions: str) -> AuditEvent | None:
    found = [event for each in actions for event in store.audit.list_events(action=each, target=target, limit=1)]
    return max(found, key=lambda event: event.number, default=None)
