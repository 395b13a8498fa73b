"""Webhooks at the API: who adds, tries, enables and removes them, and which addresses are taken."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import update

from services.contracts.access.identity import Role
from services.identity.webhook_signature import SIGNATURE
from services.round_store.tables.operation import WebhookRow
from tests.api.webhooks.conftest import HOOKS, Receiver, add


def test_a_test_message_says_how_it_was_taken(world: Any, receiver: Receiver) -> None:
    hook = add(world, receiver.url)["webhook"]["webhook_id"]

    def tried() -> Any:
        return world.call(Role.ADMINISTRATOR, "POST", f"{HOOKS}/{hook}/test").json()

    assert tried() == {"delivered": True, "status": 204, "reason": ""}
    receiver.status = 503
    assert tried() == {"delivered": False, "status": 503, "reason": "it answered 503"}
    assert receiver.kinds() == ["webhook.test"] * 2 and all(SIGNATURE in headers for headers, _ in receiver.heard)
    assert world.call(Role.ADMINISTRATOR, "DELETE", f"{HOOKS}/{hook}").status_code == 200
    assert world.call(Role.ADMINISTRATOR, "POST", f"{HOOKS}/{hook}/test").status_code == 404
    assert world.events() == ["webhook.remove", "webhook.add"]


def test_who_changes_webhooks_and_why_is_noted_and_what_changes_nothing_is_not(world: Any) -> None:
    trail, kinds = world.backend.store.audit, ["run.failed", "run.begun", "run.failed"]
    one, other = (add(world, f"https://watch.example.com/{name}", kinds=kinds)["webhook"] for name in "ab")
    added = trail.list_events(action="webhook.add", limit=2)
    assert [(each.before, each.after["url"]) for each in added] == [(None, other["url"]), (None, one["url"])]
    assert one["kinds"] == kinds[:2] and one["created_by"] == trail.list_events(limit=1)[0].actor

    def asked(method: str, path: str, reason: str) -> None:
        assert world.call(Role.ADMINISTRATOR, method, f"{HOOKS}/{path}", {"reason": reason}).status_code == 200

    def listed(enabled: str) -> list[str]:
        answer = world.call(Role.ADMINISTRATOR, "GET", f"{HOOKS}?enabled={enabled}")
        return [each["webhook_id"] for each in answer.json()["webhooks"]]

    asked("POST", f"{one['webhook_id']}/enable", "to be sure")
    assert trail.list_events(action="webhook.enable") == [], "it was enabled already"
    with world.backend.store.database.write() as session:
        session.execute(update(WebhookRow).where(WebhookRow.webhook_id == one["webhook_id"]).values(
            disabled_at=datetime.now(UTC)))
    assert (listed("false"), listed("true")) == ([one["webhook_id"]], [other["webhook_id"]])
    asked("POST", f"{one['webhook_id']}/enable", "it answers again")
    asked("DELETE", other["webhook_id"], "nobody reads it")
    removed, enabled = trail.list_events(limit=2)
    assert (enabled.action, enabled.reason) == ("webhook.enable", "it answers again")
    assert enabled.before["disabled_at"] is not None and enabled.after["disabled_at"] is None
    assert (removed.action, removed.reason) == ("webhook.remove", "nobody reads it")
    assert (removed.before["url"], removed.after) == (other["url"], None)


@pytest.mark.parametrize("url", [
    "http://hooks.example.com/x", "http://192.168.0.7/x", "ftp://localhost/x", "https://user:pass@example.com/",
    "https://", "nothing", "https://example.com/#part", "https://example.com:99999/", "https://exämple.com/",
    "https://exam ple.com/", "https://example.com/a b", "https://:pass@example.com/",
])
def test_an_address_that_is_not_taken(lasting_world: Any, url: str) -> None:
    before = lasting_world.snapshot()
    answer = lasting_world.call(Role.ADMINISTRATOR, "POST", HOOKS, {"url": url})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
    assert lasting_world.snapshot() == before


def test_an_address_of_the_own_network_is_the_operators_choice(world: Any) -> None:
    for url in ("https://192.168.0.7/x", "https://10.0.0.1:8443/", "http://[::1]:9/", "http://localhost:9/"):
        add(world, url)
    again = world.call(Role.ADMINISTRATOR, "POST", HOOKS, {"url": "https://192.168.0.7/x"})
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
