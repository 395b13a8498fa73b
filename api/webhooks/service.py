"""Webhooks: added, removed, tried, and enabled again."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

from api.backend.actor import Actor, record
from api.backend.wiring import Backend
from api.webhooks.delivery import deliver, signing_key
from api.webhooks.schemas import Delivery, NewWebhook, WebhookRequest
from services.contracts.history.events import Webhook
from services.identity.tokens import ID_BYTES
from services.identity.webhook_signature import secret_of


def add(backend: Backend, actor: Actor, wanted: WebhookRequest) -> NewWebhook:
    """Send events to an address from now on; ``ConflictError`` where they are sent there already."""
    now = datetime.now(UTC)
    made = Webhook(
        webhook_id=secrets.token_hex(ID_BYTES), url=wanted.url, kinds=tuple(dict.fromkeys(wanted.kinds)),
        created_by=actor.name, created_at=now, due_at=now, last_number=backend.store.events.span()[1],
    )
    secret = secret_of(signing_key(backend), made.webhook_id)
    with backend.store.atomic() as store:
        store.webhooks.add(made)
        record(store, actor, "webhook.add", f"webhook:{made.webhook_id}", after=made)
    return NewWebhook(secret=secret, webhook=made)


def remove(backend: Backend, actor: Actor, webhook_id: str, reason: str = "") -> Webhook:
    """Send nothing there any more."""
    with backend.store.atomic() as store:
        gone = store.webhooks.remove(webhook_id)
        record(store, actor, "webhook.remove", f"webhook:{webhook_id}", before=gone, reason=reason)
    return gone


def enable(backend: Backend, actor: Actor, webhook_id: str, reason: str = "") -> Webhook:
    """Send there again, from the event on that did not arrive."""
    with backend.store.atomic() as store:
        before = store.webhooks.get(webhook_id)
        after = store.webhooks.enable(webhook_id)
        if before.disabled_at is not None:
            record(store, actor, "webhook.enable", f"webhook:{webhook_id}", before=before, after=after, reason=reason)
    return after


def test(backend: Backend, webhook_id: str) -> Delivery:
    """Send a message of the kind ``webhook.test`` now, also to a disabled webhook; how it was taken."""
    webhook = backend.store.webhooks.get(webhook_id)
    message = {"kind": "webhook.test", "at": datetime.now(UTC).isoformat()}
    return deliver(signing_key(backend), webhook, message)
