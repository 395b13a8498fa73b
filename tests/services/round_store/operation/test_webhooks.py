"""Whose turn it is to send to a webhook."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from services.contracts.history.events import Webhook
from services.round_store.store import RoundStore

HOOK = "0123456789ab"


def test_a_webhook_that_is_disabled_is_nobodys_turn_until_it_is_enabled(store: RoundStore) -> None:
    """Whoever found it due a moment before it was disabled sends it nothing more either."""
    now = datetime.now(UTC)
    store.webhooks.add(Webhook(
        webhook_id=HOOK, url="https://a.example/x", created_by="ada", created_at=now, last_number=0, due_at=now
    ))
    turn = store.webhooks.take(HOOK, 60.0)
    assert turn is not None and store.webhooks.take(HOOK, 60.0) is None, "one at a time"
    failed = store.webhooks.failed(HOOK, turn, "it does not answer", 0.0, most=1)
    assert failed is not None and failed.disabled_at is not None and failed.failures == 1
    assert store.webhooks.take(HOOK, 60.0) is None and store.webhooks.list_due(newest=9) == []
    store.webhooks.enable(HOOK)
    assert [each.webhook_id for each in store.webhooks.list_due(newest=9)] == [HOOK]
    assert store.webhooks.list_due(newest=0) == [], "nothing has happened since"
    turn = store.webhooks.take(HOOK, 60.0)
    assert turn is not None
    store.webhooks.failed(HOOK, turn, "it does not answer", 3600.0, most=1)
    store.webhooks.enable(HOOK)
    assert store.webhooks.take(HOOK, 60.0) is not None, "at once, however long the last wait was to be"


def test_who_has_waited_longest_comes_first(store: RoundStore) -> None:
    """Only so many have their turn at a time: who came last would be first for ever, and the others never."""
    now = datetime.now(UTC)
    for name, waited in (("a", 10), ("b", 30), ("c", 20), ("d", 30), ("e", -60)):
        store.webhooks.add(Webhook(
            webhook_id=name * 12, url=f"https://{name}.example/x", created_by="ada", created_at=now, last_number=0,
            due_at=now - timedelta(seconds=waited),
        ))
    assert [each.webhook_id[0] for each in store.webhooks.list_due(newest=9)] == ["b", "d", "c", "a"]


def test_all_webhooks_are_listed_by_id_also_those_that_are_disabled(store: RoundStore) -> None:
    """Whoever reads the list page by page goes on after the last id."""
    now = datetime.now(UTC)
    for name in "cab":
        store.webhooks.add(Webhook(
            webhook_id=name * 12, url=f"https://{name}.example/x", created_by="ada", created_at=now, last_number=0,
            due_at=now, disabled_at=now if name == "a" else None,
        ))
    assert [each.webhook_id[0] for each in store.webhooks.list_webhooks()] == ["a", "b", "c"]
