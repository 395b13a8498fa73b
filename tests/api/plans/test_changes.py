"""A plan is changed by whoever knows its present state, put away, and deleted where nothing refers to it."""

from __future__ import annotations

from typing import Any

from api.web.etags import etag_of
from services.contracts.access.identity import Role
from services.contracts.plans.plan import Plan

PATH = "/v1/admin/plans"
PLAN: dict[str, Any] = {"name": "nightly", "asset_type": "triplex-pump", "cron": "0 2 * * mon-fri", "min_sites": 2}


def send(world: Any, method: str, path: str, body: Any = None, **headers: str) -> Any:
    return world.call(Role.ADMINISTRATOR, method, path, body, headers=headers)


def test_a_tag_is_of_what_a_record_says_in_whichever_order() -> None:
    """A database may give the terms of a document in another order than they were written in."""
    terms = {"gamma": 1.0, "rho": 2.0}
    one, other = (Plan.model_validate(PLAN | {"parameters": dict(order)}) for order in (
        terms.items(), reversed(terms.items()),
    ))
    changed = Plan.model_validate(PLAN | {"parameters": terms | {"rho": 3.0}})
    assert etag_of(one) == etag_of(other) != etag_of(changed)


def test_a_plan_that_the_caller_has_already_is_not_sent_again(any_world: Any) -> None:
    send(any_world, "POST", PATH, PLAN)
    first = send(any_world, "GET", f"{PATH}/nightly")
    tag = first.headers["ETag"]
    for have in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        again = send(any_world, "GET", f"{PATH}/nightly", **{"If-None-Match": have})
        assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag), have
    for other in ('"other"', 'W/"other"'):
        whole = send(any_world, "GET", f"{PATH}/nightly", **{"If-None-Match": other})
        assert whole.status_code == 200 and whole.json() == first.json() and whole.headers["ETag"] == tag
    assert send(any_world, "GET", f"{PATH}/nightly", **{"If-None-Match": "bare"}).status_code == 422
    assert send(any_world, "GET", f"{PATH}/none", **{"If-None-Match": "*"}).status_code == 404


def test_a_change_is_held_to_the_state_that_it_was_made_from(any_world: Any) -> None:
    send(any_world, "POST", PATH, PLAN)
    tag = send(any_world, "GET", f"{PATH}/nightly").headers["ETag"]
    body = PLAN | {"max_rounds": 7, "spec": {"radius": {"rule": "fixed", "value": 0.5}}}
    without = send(any_world, "PUT", f"{PATH}/nightly", body)
    assert (without.status_code, without.json()["code"]) == (428, "precondition_required")
    first = send(any_world, "PUT", f"{PATH}/nightly?reason=slow", body, **{"If-Match": tag})
    assert (first.status_code, first.json()["version"]) == (200, 2)
    late = send(any_world, "PUT", f"{PATH}/nightly", body | {"max_rounds": 9}, **{"If-Match": tag})
    assert (late.status_code, late.json()["code"]) == (412, "precondition_failed")
    assert send(any_world, "GET", f"{PATH}/nightly").json() == first.json()
    paused = send(any_world, "POST", f"{PATH}/nightly/pause")
    stale = send(any_world, "PUT", f"{PATH}/nightly", body, **{"If-Match": first.headers["ETag"]})
    assert (paused.status_code, stale.status_code) == (200, 412)
    now = send(any_world, "GET", f"{PATH}/nightly").headers["ETag"]
    weak = send(any_world, "PUT", f"{PATH}/nightly", PLAN, **{"If-Match": f'"other", W/{now}'})
    assert (weak.status_code, weak.json()["code"]) == (412, "precondition_failed") and "weak" in weak.json()["detail"]
    for no_tag in (now.strip('"'), "", '"a" "b"', f"*, {now}", '"a', '"a b"'):
        refused = send(any_world, "PUT", f"{PATH}/nightly", PLAN, **{"If-Match": no_tag})
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input"), no_tag
    third = send(any_world, "PUT", f"{PATH}/nightly", PLAN, **{"If-Match": f'"other,it", {now},'})
    assert third.status_code == 200 and third.headers["ETag"] not in (now, tag)
    assert send(any_world, "PUT", f"{PATH}/nightly", PLAN, **{"If-Match": "*"}).json()["version"] == 3
    event = any_world.backend.store.audit.list_events(action="plan.update")[-1]
    assert event.reason == "slow"
    assert event.before == {"version": 1, "max_rounds": 100, "spec.radius.rule": "samples", "spec.radius.value": 10.0}
    assert event.after == {"version": 2, "max_rounds": 7, "spec.radius.rule": "fixed", "spec.radius.value": 0.5}
    assert any_world.events() == ["plan.update", "plan.pause", "plan.update", "plan.create"]
    versions = send(any_world, "GET", f"{PATH}/nightly/versions").json()["versions"]
    assert [(each["version"], each["plan"]["max_rounds"]) for each in versions] == [(1, 100), (2, 7), (3, 100)]
    assert versions[1]["actor"].endswith(" the administrator") and versions[1]["reason"] == "slow"


def test_a_change_is_checked_as_a_new_plan_is(lasting_world: Any) -> None:
    before = lasting_world.snapshot()
    path, any_state = f"{PATH}/pumps", {"If-Match": "*"}
    plan = send(lasting_world, "GET", path).json()["plan"]
    for changes, status, said in (
        ({"sites": ["nobody"]}, 422, "not enrolled: nobody"), ({"cron": "61 2 * * *"}, 422, "minute"),
        ({"method": "magic"}, 422, "level-bundle"), ({"name": "other"}, 422, "the body other"),
        ({"max_round": 3}, 422, "did you mean max_rounds?"), ({"radius": {}}, 422, "did you mean spec.radius?"),
        ({"asset_type": "triplex-pump-severity"}, 409, "model pumps has versions"),
    ):
        answer = send(lasting_world, "PUT", path, plan | changes, **any_state)
        assert (answer.status_code, said in answer.json()["detail"]) == (status, True), answer.text
    assert send(lasting_world, "PUT", f"{PATH}/nobody", plan | {"name": "nobody"}, **any_state).status_code == 404
    assert send(lasting_world, "DELETE", path).json()["code"] == "plan_in_use"
    assert lasting_world.snapshot() == before


def test_a_plan_is_deleted_in_the_state_that_was_meant(any_world: Any) -> None:
    send(any_world, "POST", PATH, PLAN)
    tag = send(any_world, "GET", f"{PATH}/nightly").headers["ETag"]
    send(any_world, "POST", f"{PATH}/nightly/pause")
    stale = send(any_world, "DELETE", f"{PATH}/nightly", **{"If-Match": tag})
    assert (stale.status_code, stale.json()["code"]) == (412, "precondition_failed")
    assert send(any_world, "DELETE", f"{PATH}/nightly", **{"If-Match": ""}).status_code == 422, "no state was named"
    now = send(any_world, "GET", f"{PATH}/nightly").headers["ETag"]
    assert send(any_world, "DELETE", f"{PATH}/nightly", **{"If-Match": now}).status_code == 200
    assert any_world.events() == ["plan.delete", "plan.pause", "plan.create"]


def test_an_archived_plan_starts_nothing_and_an_unused_one_is_deleted(any_world: Any) -> None:
    send(any_world, "POST", PATH, PLAN)
    assert send(any_world, "POST", f"{PATH}/nightly/archive", {"reason": "old"}).json()["archived"] is True
    assert [item["plan"]["name"] for item in send(any_world, "GET", PATH).json()["plans"]] == ["pumps"]
    listed = send(any_world, "GET", f"{PATH}?archived=true").json()["plans"]
    assert [item["plan"]["name"] for item in listed] == ["nightly", "pumps"]
    refused = send(any_world, "POST", f"{PATH}/nightly/trigger")
    assert (refused.status_code, refused.json()["code"]) == (409, "plan_archived")
    assert send(any_world, "POST", f"{PATH}/nightly/restore").json()["archived"] is False
    assert send(any_world, "DELETE", f"{PATH}/nightly", {"reason": "a mistake"}).status_code == 200
    assert send(any_world, "GET", f"{PATH}/nightly").status_code == 404
    assert any_world.events() == ["plan.delete", "plan.restore", "plan.archive", "plan.create"]


def test_the_reason_of_each_change_stands_in_the_trail(world: Any) -> None:
    send(world, "POST", PATH, PLAN)
    here = f"{PATH}/nightly"
    for action in ("pause", "resume", "archive", "restore"):
        assert send(world, "POST", f"{here}/{action}", {"reason": f"to {action} it"}).status_code == 200
    assert send(world, "DELETE", here, {"reason": "to delete it"}).status_code == 200
    assert send(world, "POST", f"{PATH}/pumps/trigger", {"reason": "to trigger it"}).status_code == 202
    told = {each.action: each.reason for each in world.backend.store.audit.list_events(limit=6)}
    actions = ("pause", "resume", "archive", "restore", "delete", "trigger")
    assert told == {f"plan.{action}": f"to {action} it" for action in actions}


def test_plans_are_listed_by_their_asset_type(world: Any) -> None:
    send(world, "POST", PATH, PLAN | {"asset_type": "triplex-pump-severity", "spec": {"loss": "huber"}})
    for kind, names in (("triplex-pump", ["pumps"]), ("triplex-pump-severity", ["nightly"]), ("turbine", [])):
        found = send(world, "GET", f"{PATH}?asset_type={kind}").json()["plans"]
        assert [each["plan"]["name"] for each in found] == names, kind


def test_a_dry_run_answers_as_the_change_would_and_keeps_nothing(any_world: Any) -> None:
    before = any_world.snapshot()
    tried = send(any_world, "POST", f"{PATH}?dry_run=true", PLAN)
    assert (tried.status_code, tried.json()["version"]) == (200, 1) and any_world.snapshot() == before
    made = send(any_world, "POST", PATH, PLAN)
    assert made.status_code == 201 and made.json()["plan"] == tried.json()["plan"]
    tag, before = send(any_world, "GET", f"{PATH}/nightly").headers["ETag"], any_world.snapshot()
    taken = send(any_world, "POST", f"{PATH}?dry_run=true", PLAN)
    assert (taken.status_code, taken.json()["code"]) == (409, "conflict")
    change = f"{PATH}/nightly?dry_run=true"
    tried = send(any_world, "PUT", change, PLAN | {"max_rounds": 7}, **{"If-Match": tag})
    assert (tried.status_code, tried.json()["version"], tried.json()["plan"]["max_rounds"]) == (200, 2, 7)
    assert "ETag" not in tried.headers, "no later change can be made from what is not there"
    for body, header, status in (
        (PLAN | {"cron": "0 25 * * *"}, tag, 422), (PLAN | {"max_roundz": 7}, tag, 422), (PLAN, '"other"', 412),
    ):
        assert send(any_world, "PUT", change, body, **{"If-Match": header}).status_code == status
    assert send(any_world, "PUT", change, PLAN).status_code == 428
    assert any_world.snapshot() == before
    assert send(any_world, "PUT", f"{PATH}/nightly", PLAN, **{"If-Match": tag}).status_code == 200, "the tag still fits"


def test_an_asset_type_is_tried_before_it_is_put(any_world: Any) -> None:
    path = "/v1/admin/asset-types/triplex-pump"
    stored, before = send(any_world, "GET", path).json()["asset_type"], any_world.snapshot()
    tried = send(any_world, "PUT", f"{path}?dry_run=true", stored | {"version": 2, "description": "wider"})
    assert (tried.status_code, tried.json()["asset_type"]["version"]) == (200, 2)
    clash = send(any_world, "PUT", f"{path}?dry_run=true", stored | {"description": "wider"})
    assert (clash.status_code, clash.json()["code"]) == (409, "conflict")
    assert any_world.snapshot() == before
