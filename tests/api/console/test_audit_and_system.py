"""The pages of the trail and of the system's state: what is shown, what is asked for only, and how lists go on."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest

from api.backend.actor import record
from api.console.endpoints import admin
from api.console.endpoints.admin import PAGE
from services.process.process_lock import held
from tests.api.conftest import FOUNDER


@pytest.fixture
def person(world: Any, signed_in: Callable[..., Any]) -> Any:
    return signed_in(world)


def numbers(page: str) -> list[int]:
    """Numbers of the entries that a page shows."""
    return [int(found) for found in re.findall(r'<tr><td class="n">(\d+)</td>', page)]


def test_the_trail_goes_on_page_by_page_and_leaves_nothing_out(world: Any, person: Any) -> None:
    with world.backend.store.atomic() as store:
        for number in range(2 * PAGE - 1):
            record(store, FOUNDER, "test.full" if number % 2 else "test.half", f"thing:{number}", reason="because")
    first = person.get("/console/audit").text
    assert len(numbers(first)) == PAGE and 'rel="next"' in first and 'rel="prev"' not in first
    seen, offset = numbers(first), PAGE
    while 'rel="next"' in (page := person.get(f"/console/audit?offset={offset}").text):
        assert f"offset={offset + PAGE}" in page and f"offset={offset - PAGE}" in page
        seen, offset = seen + numbers(page), offset + PAGE
    seen += numbers(page)
    assert seen == list(range(len(seen), 0, -1)), "newest first, each once"
    assert len(seen) == len(world.backend.store.audit.list_events(limit=1000))


def test_further_pages_of_the_trail_are_of_what_was_asked_for(
    world: Any, person: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin, "PAGE", 1)
    with world.backend.store.atomic() as store:
        for action, target in (("test.a", "thing:1"), ("test.a", "thing:1"), ("test.b", "thing:1"), ("test.a", "x")):
            record(store, FOUNDER, action, target)
    for query, found in (("action=test.a", 3), ("target=thing:1", 3), ("action=test.a&target=thing:1", 2)):
        address, seen = f"/console/audit?{query}&actor={FOUNDER.name}", 0
        while address:
            page = person.get(address).text
            seen += len(numbers(page))
            address = unescape((re.findall(r'rel="next" href="([^"]+)"', page) or [""])[0])
        assert seen == found, query


@pytest.mark.parametrize(
    ("query", "found"),
    [("action=test.half", PAGE), ("target=thing:7", 1), ("actor=test&action=test.full", PAGE - 1), ("actor=nobody", 0)],
)
def test_the_trail_is_asked_by_who_what_and_to_what(world: Any, person: Any, query: str, found: int) -> None:
    with world.backend.store.atomic() as store:
        for number in range(2 * PAGE - 1):
            record(store, FOUNDER, "test.full" if number % 2 else "test.half", f"thing:{number}")
    page = person.get(f"/console/audit?{query}").text
    assert len(numbers(page)) == found and 'rel="next"' not in page
    assert ("No entry like this" in page) is (found == 0)


def test_the_chain_is_gone_through_where_that_is_asked_for(
    world: Any, person: Any, monkeypatch: pytest.MonkeyPatch, reading: Callable[..., str]
) -> None:
    assert "The chain is whole" in reading(person.get("/console/audit?verify=true"))
    asked: list[str] = []
    monkeypatch.setattr(type(world.backend.store.audit), "verify_chain", lambda _: asked.append("asked"))
    assert "The chain" not in reading(person.get("/console/audit"))
    assert not asked, "a long trail takes long"


def test_the_system_page_says_whether_flows_are_at_work_and_what_the_checks_found(
    world: Any, person: Any, reading: Callable[..., str]
) -> None:
    idle = reading(person.get("/console/system"))
    assert "No flows process runs on this host" in idle and "The database and the registry answer" in idle
    with held(world.backend.settings.flows_lock):
        assert "No flows process" not in reading(person.get("/console/system"))
    for check in ("disk", "secrets", "webhooks", "backup"):
        assert check in idle


def test_a_server_that_hangs_is_said(
    person: Any, monkeypatch: pytest.MonkeyPatch, reading: Callable[..., str]
) -> None:
    monkeypatch.setattr(admin, "hanging", lambda _: {"plant link": "its NATS server does not answer"})
    said = reading(person.get("/console/system"))
    assert "The plant link" in said and "its NATS server does not answer" in said


def test_another_key_holds_beside_the_former_one_for_a_day_where_nothing_else_is_said(
    world: Any, person: Any, new_key: Callable[[], str]
) -> None:
    store, former, key = world.backend.store, new_key(), new_key()
    told = {"site_id": " plant-9 ", "public_key": former, "asset_types": "triplex-pump,", "description": " by the sea "}
    assert person.post("/console/admin/sites", **told).status_code == 303
    site = store.sites.get("plant-9")
    assert (site.asset_types, site.description) == (("triplex-pump",), "by the sea")
    assert person.post("/console/admin/sites/plant-9/key", public_key=key, reason="yearly").status_code == 303
    changed = store.sites.get("plant-9")
    assert changed.public_key == key and changed.former_key == former
    assert abs(changed.former_key_until - datetime.now(UTC) - timedelta(days=1)) < timedelta(minutes=1)
    (entry,) = store.audit.list_events(action="site.rotate_key")
    assert (entry.reason, entry.target) == ("yearly", "site:plant-9")
    vague = person.post("/console/admin/sites/plant-9/key", public_key=new_key(), overlap_hours="long")
    assert vague.status_code == 422 and "overlap_hours: a number is needed" in vague.text
    assert store.sites.get("plant-9").public_key == key


def test_a_token_without_days_has_no_end(world: Any, person: Any) -> None:
    for days in ("", "3"):
        assert person.post("/console/admin/tokens", name=f"gate {days}", role="viewer", days=days).status_code == 200
    made = {token.name: token for token in world.backend.store.tokens.list_tokens()}
    assert made["gate"].expires_at is None
    assert made["gate 3"].expires_at is not None
