"""Orders by the console's forms, and a page that goes on: whose they are, what they need, and when they end."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from api.console.endpoints import runs
from api.web.etags import etag_of
from api.web.sessions import digest
from services.contracts.access.identity import Role
from services.contracts.toml_text import to_toml
from tests.api.conftest import a_plan

NEWER = "12" * 16


def test_a_live_run_is_told_no_longer_than_the_session_lasts(
    world: Any, signed_in: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    person, store = signed_in(world, Role.VIEWER), world.backend.store
    store.runs.create_run(a_plan("pumps"), NEWER)
    looks: list[float] = []

    async def pause(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 2:
            assert [store.sessions.end(each.session_id) for each in store.sessions.list_sessions()] == [True]
        if len(looks) == 9:  # so that it ends at all events
            store.runs.finish_run(NEWER, "cancelled", "a test")

    monkeypatch.setattr(runs, "asyncio", SimpleNamespace(sleep=pause))
    told = person.get(f"/console/runs/{NEWER}/events").text
    assert told.count("event: rounds") == len(looks) == 2
    assert told.rstrip().endswith('event: end\ndata: {"reason": "unauthenticated"}')


def test_a_part_of_a_sessions_name_ends_none(world: Any, signed_in: Callable[..., Any]) -> None:
    person, store = signed_in(world), world.backend.store
    signed_in(world, Role.VIEWER)
    names = [each.session_id for each in store.sessions.list_sessions()]
    for part in (names[0][:1], names[0][:-1], names[0] + "0"):
        assert person.post(f"/console/admin/sessions/{part}/end").status_code == 404
    assert [each.session_id for each in store.sessions.list_sessions()] == names and len(names) == 2


def test_a_plant_is_removed_for_a_reason(world: Any, signed_in: Callable[..., Any], new_key: Callable[[], str]) -> None:
    person, store = signed_in(world), world.backend.store
    assert person.post("/console/admin/sites", site_id="plant-9", public_key=new_key()).status_code == 303
    assert person.post("/console/admin/sites/plant-9/remove", reason=" ").status_code == 422
    assert store.sites.get("plant-9").status == "active"
    assert person.post("/console/admin/sites/plant-9/remove", reason="sold").status_code == 303
    assert store.sites.get("plant-9").status == "removed"


def test_a_champion_changes_for_a_reason(world: Any, signed_in: Callable[..., Any]) -> None:
    first, second = world.new_model("reasons", 0.9, 0.85)
    person, here = signed_in(world), "/console/models/reasons"
    for promote in (f"{here}/versions/{first}/promote", f"{here}/versions/{second}/promote"):
        assert person.post(promote).status_code == 422
        assert person.post(promote, reason="as it is", ignore_gates="yes").status_code == 303
    assert person.post(f"{here}/rollback").status_code == 422
    actions = [each.action for each in world.backend.store.audit.list_events(limit=2)]
    assert actions == ["model.promote", "model.promote"]


def test_a_plant_that_leaves_is_forgotten_at_the_promotion_where_nothing_else_is_asked(
    world: Any, signed_in: Callable[..., Any]
) -> None:
    person, store = signed_in(world), world.backend.store
    page = person.get("/console/models/pumps/versions/1").text
    leaving = re.search(r'<select id="leaving".*?</select>', page, re.DOTALL)
    assert leaving is not None
    site = re.findall(r"<option>([^<]+)</option>", leaving[0])[0]
    asked = person.post("/console/models/pumps/unlearn", site=site, reason="the plant was sold")
    run = store.runs.get_run(asked.headers["Location"].rpartition("/")[2])
    assert asked.status_code == 303 and (run.leaving.site_id, run.leaving.at_once) == (site, False)


def test_a_plan_may_be_stored_paused(world: Any, signed_in: Callable[..., Any]) -> None:
    person, text = signed_in(world), 'name = "{}"\nasset_type = "triplex-pump"\ncron = "0 3 * * 1"\nmin_sites = 3\n'
    for name, paused in (("still", "yes"), ("going", "")):
        assert person.post("/console/plans", text=text.format(name), paused=paused).status_code == 303
        assert world.backend.store.plans.get(name).paused == (paused == "yes")


def test_why_a_plan_is_changed_or_ordered_is_noted(world: Any, signed_in: Callable[..., Any]) -> None:
    person, store, here = signed_in(world), world.backend.store, "/console/plans/reasoned"
    store.plans.create(a_plan("reasoned", tuning="auto"))
    etag = etag_of(store.plans.get("reasoned"))
    text = to_toml(store.plans.get("reasoned").plan.model_copy(update={"max_rounds": 7}))
    for order, action, fields in (
        ("save", "plan.update", {"text": text, "etag": etag}), ("pause", "plan.pause", {}),
        ("resume", "plan.resume", {}), ("archive", "plan.archive", {}), ("restore", "plan.restore", {}),
        ("trigger", "plan.trigger", {}), ("tune", "plan.tune", {}),
    ):
        for run in store.runs.unfinished_runs("reasoned"):
            store.runs.finish_run(run.run_id, "cancelled", "a test")
        assert person.post(f"{here}/{order}", **fields, reason=f"why {order}").status_code == 303, order
        (entry,) = store.audit.list_events(action=action)
        assert entry.reason == f"why {order}" and "reasoned" in str(entry)
        record = store.plans.get("reasoned")
        assert (record.paused, record.archived) == (order == "pause", order == "archive"), order
    assert person.post(f"{here}/save", text=text, reason="in haste").status_code == 428, "which one was read?"


def test_why_a_plant_token_or_session_was_changed_is_noted(
    world: Any, signed_in: Callable[..., Any], new_key: Callable[[], str]
) -> None:
    person, store = signed_in(world), world.backend.store
    theirs = digest(signed_in(world, Role.VIEWER).secret)[:16]
    (token,) = [each.token_id for each in store.tokens.list_tokens() if each.role == Role.OPERATOR]
    store.sites.enrol("plant-9", new_key(), ())
    here = "/console/admin/sites/plant-9"
    for address, action, fields in (
        (f"{here}/suspend", "site.suspend", {}), (f"{here}/activate", "site.activate", {}),
        (f"{here}/key", "site.rotate_key", {"public_key": new_key(), "overlap_hours": "2"}),
        (f"{here}/remove", "site.remove", {}), (f"/console/admin/sessions/{theirs}/end", "session.end", {}),
        (f"/console/admin/tokens/{token}/revoke", "token.revoke", {}),
    ):
        assert person.post(address, **fields, reason="x" * 501).status_code == 422, action
        assert not store.audit.list_events(action=action)
        assert person.post(address, **fields, reason=f"why {action}").status_code == 303, action
        (entry,) = store.audit.list_events(action=action)
        assert entry.reason == f"why {action}" and entry.actor.endswith(" the administrator")


def test_a_code_by_the_form_holds_a_day_and_is_what_was_asked_for(
    world: Any, signed_in: Callable[..., Any], new_key: Callable[[], str]
) -> None:
    person, store, digest = signed_in(world), world.backend.store, "ab" * 32
    fields = {"site_id": "plant-8", "asset_type": "triplex-pump", "certificate_sha256": digest}
    made = person.post("/console/admin/codes", **fields, description="by the sea")
    (record,) = store.enrolment_codes.list_codes("plant-8")
    assert (record.expires_at - record.created_at, record.replaces_key) == (timedelta(days=1), False)
    assert record.description == "by the sea" and f"_{digest}" in made.text, "the certificate that plants meet"
    person.post(f"/console/admin/sites/plant-8/codes/{record.code_id}/revoke", reason="went astray")
    assert store.audit.list_events(limit=1)[0].reason == "went astray"
    store.sites.enrol("plant-8", new_key(), ())
    assert person.post("/console/admin/codes", **fields).status_code == 409, "it has a key"
    assert person.post("/console/admin/codes", **fields, replace_key="on").status_code == 200
    assert store.enrolment_codes.list_codes("plant-8")[0].replaces_key


def test_a_models_page_is_its_champions_also_where_a_version_is_newer(
    world: Any, signed_in: Callable[..., Any]
) -> None:
    first, second = world.new_model("led", 0.9, 0.85)
    person, here = signed_in(world), "/console/models/led"
    assert person.get(here).headers["Location"] == f"{here}/versions/{second}", "there is no champion yet"
    person.post(f"{here}/versions/{first}/promote", reason="tested")
    assert person.get(here).headers["Location"] == f"{here}/versions/{first}"
    told = person.get(f"{here}/diagnose?alias=challenger")
    assert 'name="alias" value="challenger"' in told.text
    wrong = person.post(f"{here}/diagnose", alias="no-such-alias", csv="x")
    assert wrong.status_code == 404, "of the version that was asked for, not of the champion"
