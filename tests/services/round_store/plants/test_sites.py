"""Enrolled plants."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import case, update

from services.contracts.errors import ConflictError, NotFoundError
from services.contracts.history.site import FormerKey
from services.contracts.wire.roll import CONNECTED_SECONDS
from services.round_store.store import RoundStore
from services.round_store.tables.sites import SiteRow


def test_a_site_lives_from_enrolment_to_removal(store: RoundStore) -> None:
    enrolled = store.sites.enrol("north", "UNORTH", ["pump"], "the northern plant")
    assert (enrolled.status, enrolled.asset_types, enrolled.last_seen) == ("active", ("pump",), None)
    assert store.sites.get("north") == enrolled
    assert store.sites.seen("north", "0.1.0")
    seen = store.sites.get("north")
    assert seen.last_seen is not None
    assert seen.last_seen >= enrolled.enrolled_at
    assert seen.agent_version == "0.1.0"
    suspended = store.sites.suspend("north")
    assert suspended.status == "suspended" and store.sites.suspend("north") == suspended, "once more changes nothing"
    with pytest.raises(ConflictError, match="there is a site north already"):
        store.sites.enrol("north", "UOTHER")
    assert store.sites.get("north") == suspended, "who is suspended is not let in again by another key"
    assert store.sites.list_sites(status="active") == []
    assert store.sites.reactivate("north").status == "active"
    assert store.sites.remove("north").status == "removed"
    assert store.sites.remove("north").status == "removed"
    with pytest.raises(ConflictError, match="was removed; enrol it again"):
        store.sites.suspend("north")
    assert not store.sites.seen("north", "0.1.0")


@pytest.mark.parametrize("change", ["suspend", "remove"])
def test_when_a_site_changed_is_when_its_status_did_and_not_when_that_was_asked_for_again(
    store: RoundStore, change: str
) -> None:
    store.sites.enrol("north", "UNORTH")
    long_ago = datetime(2021, 1, 1, tzinfo=UTC)
    for changes in (True, False):
        with store.database.write() as session:
            session.execute(update(SiteRow).values(updated_at=long_ago))
        assert (getattr(store.sites, change)("north").updated_at > long_ago) is changes


def test_ids_and_keys_belong_to_one_site(store: RoundStore) -> None:
    store.sites.enrol("north", "UNORTH")
    with pytest.raises(ConflictError, match="there is a site north already"):
        store.sites.enrol("north", "UOTHER")
    with pytest.raises(ConflictError, match="this key belongs to site north"):
        store.sites.enrol("south", "UNORTH")
    store.sites.remove("north")
    with pytest.raises(ConflictError, match="this key belongs to site north"):
        store.sites.enrol("south", "UNORTH")
    again = store.sites.enrol("north", "UNEW")
    assert (again.status, again.public_key) == ("active", "UNEW")
    assert store.sites.list_sites() == [again]


def test_sites_are_found_by_status_and_asset_type(store: RoundStore) -> None:
    for site_id, types in (("c", ["pump"]), ("a", ["fan", "pump"]), ("b", [])):
        store.sites.enrol(site_id, f"U{site_id}", types)
    store.sites.suspend("c")
    assert [site.site_id for site in store.sites.list_sites()] == ["a", "b", "c"]
    assert [site.site_id for site in store.sites.list_sites(asset_type="pump")] == ["a", "c"]
    assert [site.site_id for site in store.sites.list_sites(status="active", asset_type="pump")] == ["a"]


def test_unknown_sites(store: RoundStore) -> None:
    assert not store.sites.seen("nowhere", "1")
    with pytest.raises(NotFoundError, match="no site nowhere is enrolled"):
        store.sites.get("nowhere")


def test_a_key_is_changed_and_never_given_to_another(store: RoundStore) -> None:
    until = datetime(2031, 1, 1, tzinfo=UTC)
    store.sites.enrol("north", "U1")
    store.sites.enrol("south", "U9")
    changed = store.sites.rotate_key("north", "U2", until)
    assert (changed.public_key, changed.former_key, changed.former_key_until) == ("U2", "U1", until)
    assert store.sites.get("north") == changed
    for key, said in (("U2", "has already"), ("U9", "belongs to site south")):
        with pytest.raises(ConflictError, match=said):
            store.sites.rotate_key("north", key, until)
    with pytest.raises(ConflictError, match="belongs to site north"):
        store.sites.rotate_key("south", "U1", until)
    with pytest.raises(ConflictError, match="belongs to site north"):
        store.sites.enrol("west", "U1")
    store.sites.remove("north")
    with pytest.raises(ConflictError, match="enrol it again with its new key"):
        store.sites.rotate_key("north", "U3", until)
    again = store.sites.enrol("north", "U3")
    assert (again.public_key, again.former_key) == ("U3", None)
    assert store.sites.get("north") == again, "no key of before the removal holds"


def test_a_key_that_is_changed_twice_in_a_row_leaves_the_first_its_own_end(store: RoundStore) -> None:
    """The plant may use the first one yet; nobody else gets it while it holds."""
    soon, late = datetime(2031, 1, 1, tzinfo=UTC), datetime(2032, 1, 1, tzinfo=UTC)
    store.sites.enrol("north", "U1")
    store.sites.enrol("south", "U9")
    store.sites.rotate_key("north", "U2", soon)
    store.sites.rotate_key("north", "U3", late)
    held = store.sites.get("north")
    assert held.earlier_keys == (FormerKey(public_key="U1", until=soon),)
    assert (held.keys_at(soon - timedelta(seconds=1)), held.keys_at(soon)) == ("U3 U2 U1", "U3 U2")
    with pytest.raises(ConflictError, match="this key belongs to site north"):
        store.sites.rotate_key("south", "U1", late)
    back = store.sites.rotate_key("north", "U1", late)
    assert back.keys_at(soon - timedelta(seconds=1)) == "U1 U3 U2", "the first one again is no former key of itself"
    ended = store.sites.rotate_key("north", "U4", datetime.now(UTC))
    assert (ended.keys_at(datetime.now(UTC)), ended.earlier_keys) == ("U4", ()), "no overlap ends them all"
    store.sites.rotate_key("north", "U5", late)
    store.sites.remove("north")
    assert store.sites.enrol("north", "U6").earlier_keys == ()


def test_who_falls_silent_and_who_is_back_is_told_once_and_of_plants_that_are_asked_alone(store: RoundStore) -> None:
    for site_id in "abcd":
        store.sites.enrol(site_id, f"U{site_id}")
        store.sites.connected([site_id])
    store.sites.suspend("c")
    store.sites.remove("d")

    def told() -> list[tuple[str, str | None]]:
        return [(event.kind, event.site_id) for event in store.events.after(0)]

    first = [("site.back", site_id) for site_id in "abcd"]
    assert told() == first
    with store.database.write() as session:
        ago = datetime.now(UTC) - timedelta(seconds=CONNECTED_SECONDS + 1)
        session.execute(update(SiteRow).values(last_seen=ago, silent_at=case((SiteRow.site_id == "d", ago))))
    store.sites.connected(["a", "d"])
    store.sites.connected([])
    assert told() == [*first, ("site.silent", "b")], "not who is suspended or removed"
    for _ in range(2):
        store.sites.connected(["a", "b"])
        store.sites.seen("d", "0.1.0")
    assert told() == [*first, ("site.silent", "b"), ("site.back", "b")]


def test_who_was_seen_before_the_clock_was_put_back_and_is_gone_is_silent(store: RoundStore) -> None:
    for site_id in "ab":
        store.sites.enrol(site_id, f"U{site_id}")
        store.sites.connected([site_id])
    now = datetime.now(UTC)
    with store.database.write() as session:
        session.execute(update(SiteRow).values(last_seen=now + timedelta(days=365)))
    assert store.sites.get("b").presence(now) == "silent since the clock was put back"
    for _ in range(2):
        store.sites.connected(["a"])
    assert [(event.kind, event.site_id) for event in store.events.after(2)] == [("site.silent", "b")]
    assert store.sites.get("a").presence(datetime.now(UTC)) == "connected"
