from __future__ import annotations

from typing import Any

import pytest

from services.contracts.access.identity import Role
from services.contracts.history.run import SiteTermsRecord
from services.plant_simulator.assets import builtin_asset_type

PATH = "/v1/admin/plans"
PLAN: dict[str, Any] = {"name": "nightly", "asset_type": "triplex-pump", "cron": "0 2 * * mon-fri", "min_sites": 2}


def send(world: Any, method: str, path: str, body: Any = None, role: Role = Role.ADMINISTRATOR) -> Any:
    return world.call(role, method, path, body)


def test_a_plan_is_created_paused_resumed_triggered_and_its_run_cancelled(any_world: Any) -> None:
    made = send(any_world, "POST", PATH, PLAN)
    assert (made.status_code, made.json()["paused"]) == (201, False)
    assert send(any_world, "GET", f"{PATH}/nightly").json() == made.json()
    assert [item["plan"]["name"] for item in send(any_world, "GET", PATH).json()["plans"]] == ["nightly", "pumps"]
    for action, paused in (("pause", True), ("pause", True), ("resume", False)):
        answer = send(any_world, "POST", f"{PATH}/nightly/{action}", {"reason": "shutdown"}, Role.OPERATOR)
        assert (answer.status_code, answer.json()["paused"]) == (200, paused)
    run = send(any_world, "POST", f"{PATH}/nightly/trigger", {"reason": "new pumps"}, Role.OPERATOR)
    assert (run.status_code, run.json()["status"]) == (202, "pending")
    again = send(any_world, "POST", f"{PATH}/nightly/trigger", None, Role.OPERATOR)
    assert (again.status_code, again.json()["code"]) == (409, "run_unfinished")
    run_id = run.json()["run_id"]
    assert [pending.run_id for pending in any_world.backend.store.runs.unfinished_runs("nightly")] == [run_id]
    for _ in range(2):
        cancelled = send(any_world, "POST", f"/v1/admin/runs/{run_id}/cancel", None, Role.OPERATOR)
        assert (cancelled.status_code, cancelled.json()["cancel_requested"]) == (202, True)
    assert any_world.events() == ["run.cancel", "plan.trigger", "plan.resume", "plan.pause", "plan.create"]
    trail = any_world.backend.store.audit
    for action, paused in (("plan.pause", True), ("plan.resume", False)):
        (entry,) = trail.list_events(action=action)
        assert (entry.before, entry.after) == ({"paused": not paused}, {"paused": paused})
    triggered = trail.list_events(action="plan.trigger")[0]
    assert triggered.after == {"run_id": run_id}
    assert triggered.actor.endswith(" the operator")


def test_one_run_has_terms_of_its_own_and_the_plan_keeps_its_own(any_world: Any) -> None:
    send(any_world, "POST", PATH, PLAN | {"max_rounds": 100})
    for overrides, said in (
        ({"reveal": "each site"}, "reveal cannot be set for one run"), ({"name": "x"}, "name cannot be set"),
        ({"asset_type": "x"}, "asset_type cannot"), ({"absolute_gap": 9.0}, "absolute_gap cannot"),
        ({"max_rounds": 0}, "max_rounds"), ({"auto_promote": True}, "only be false"),
        ({"spec": {}}, "spec cannot be set for one run"), ({"gates": None}, "gates cannot be set for one run"),
        ({"max_rounds": {}}, "plan nightly for one run: max_rounds: "), ({"auto_promote": []}, "only be false"),
    ):
        refused = send(any_world, "POST", f"{PATH}/nightly/trigger", {"overrides": overrides}, Role.OPERATOR)
        assert (refused.status_code, said in refused.text) == (422, True), refused.text
    assert refused.json()["code"] == "not_for_one_run"
    assert any_world.backend.store.runs.list_runs(plan="nightly") == []
    body = {"reason": "a quick look", "overrides": {"max_rounds": 50, "auto_promote": False}}
    run = send(any_world, "POST", f"{PATH}/nightly/trigger", body, Role.OPERATOR).json()
    stored = any_world.backend.store.runs.get_run(run["run_id"]).plan
    assert (stored.max_rounds, stored.auto_promote, stored.overrides) == (50, False, body["overrides"])
    assert run["plan"]["overrides"] == body["overrides"]
    kept = any_world.backend.store.plans.get("nightly").plan
    assert (kept.max_rounds, kept.auto_promote, kept.overrides) == (100, True, None)
    triggered = any_world.backend.store.audit.list_events(action="plan.trigger")[0]
    assert triggered.after == {"run_id": run["run_id"], "overrides": body["overrides"]}
    refused = send(any_world, "POST", PATH, PLAN | {"name": "sly", "overrides": {"gap": 0.5}})
    assert refused.status_code == 422 and "overrides are of one run" in refused.text


def test_a_plan_that_fits_its_asset_type_no_more_is_ordered_in_no_way(world: Any) -> None:
    pump = builtin_asset_type("triplex-pump").model_dump(mode="json")
    aim = {"name": "wear", "unit": "1", "low": 0.0, "high": 1.0}
    types = "/v1/admin/asset-types/press"
    assert send(world, "PUT", types, pump | {"name": "press", "version": 1, "target": aim}).status_code in (200, 201)
    plan = PLAN | {"asset_type": "press", "spec": {"loss": "pinball"}, "tuning": "auto"}
    assert send(world, "POST", PATH, plan).status_code == 201
    assert send(world, "PUT", types, pump | {"name": "press", "version": 2, "target": None}).status_code in (200, 201)
    orders = (("trigger", None), ("trigger", {"overrides": {"max_rounds": 5}}), ("tune", None))
    refused = [send(world, "POST", f"{PATH}/nightly/{order}", body, Role.OPERATOR) for order, body in orders]
    assert [(each.status_code, each.json()["code"]) for each in refused] == [(422, "wrong_task")] * 3
    assert world.backend.store.runs.list_runs(plan="nightly") == []


def test_a_gate_that_needs_each_plants_own_scores_is_told_in_notices_and_refuses_nothing(any_world: Any) -> None:
    body = PLAN | {"gates": {"min_site_f1": 0.7}}
    made = send(any_world, "POST", PATH, body)
    (notice,) = made.json()["notices"]
    assert made.status_code == 201 and notice.startswith("on sums min_site_f1 holds only where every plant tells")
    here = f"{PATH}/nightly"
    read = send(any_world, "GET", here)
    assert read.json() == made.json()
    tag = {"If-Match": read.headers["ETag"]}
    loose = any_world.call(Role.ADMINISTRATOR, "PUT", here, PLAN, headers=tag)
    assert (loose.status_code, loose.json()["notices"]) == (200, [])
    tried = any_world.call(Role.ADMINISTRATOR, "PUT", f"{here}?dry_run=true", body, headers={"If-Match": "*"})
    assert tried.json()["notices"] == [notice]
    assert send(any_world, "POST", f"{here}/trigger", None, Role.OPERATOR).json()["notices"] == []
    gated = send(any_world, "POST", PATH, body | {"name": "gated"}).json()
    run = send(any_world, "POST", f"{PATH}/gated/trigger", None, Role.OPERATOR)
    assert (run.status_code, run.json()["notices"]) == (202, gated["notices"])
    assert "notices" not in send(any_world, "GET", f"/v1/runs/{run.json()['run_id']}", None, Role.OPERATOR).json()


def test_a_triggered_plan_is_noted_no_more_once_its_plants_told_their_own_scores(world: Any) -> None:
    send(world, "POST", PATH, PLAN | {"gates": {"min_site_f1": 0.7}})
    runs, answers = world.backend.store.runs, []
    for tells in (True, False, None):
        run = send(world, "POST", f"{PATH}/nightly/trigger").json()
        answers.append(run["notices"])
        site = SiteTermsRecord(site_id="plant-east", weight=1.0, radius=0.1, n_samples=50, own_scores=tells)
        runs.begin_run(run["run_id"], [site])
        runs.finish_run(run["run_id"], "completed", "a test")
    first, told, _ = answers
    assert len(first) == 1 and told == []
    (kept,) = answers[2]
    assert kept.endswith("in the last run plant-east kept them")


def test_a_plans_tuning_is_asked_for_alone(any_world: Any) -> None:
    send(any_world, "POST", PATH, PLAN)
    untuned = send(any_world, "POST", f"{PATH}/nightly/tune", None, Role.OPERATOR)
    assert (untuned.status_code, untuned.json()["code"]) == (422, "no_tuning")
    assert 'write tuning = "auto" into it' in untuned.json()["detail"]
    send(any_world, "POST", PATH, PLAN | {"name": "tuned", "tuning": "auto"})
    run = send(any_world, "POST", f"{PATH}/tuned/tune", {"reason": "new sensors"}, Role.OPERATOR)
    assert (run.status_code, run.json()["status"]) == (202, "pending")
    assert run.json()["plan"]["overrides"] == {"tune_only": True}
    for order in ("tune", "trigger"):
        again = send(any_world, "POST", f"{PATH}/tuned/{order}", None, Role.OPERATOR)
        assert (again.status_code, again.json()["code"]) == (409, "run_unfinished")
    sly = send(any_world, "POST", f"{PATH}/nightly/trigger", {"overrides": {"tune_only": True}}, Role.OPERATOR)
    assert (sly.status_code, sly.json()["code"]) == (422, "not_for_one_run")
    assert any_world.backend.store.plans.get("tuned").plan.overrides is None
    (asked,) = any_world.backend.store.audit.list_events(action="plan.tune")
    assert (asked.target, asked.reason) == ("plan:tuned", "new sensors")
    assert asked.after == {"run_id": run.json()["run_id"], "overrides": {"tune_only": True}}
    send(any_world, "POST", f"/v1/admin/runs/{run.json()['run_id']}/cancel", None, Role.OPERATOR)
    any_world.backend.store.runs.finish_run(run.json()["run_id"], "cancelled", "a test")
    send(any_world, "POST", f"{PATH}/tuned/archive")
    refused = send(any_world, "POST", f"{PATH}/tuned/tune", None, Role.OPERATOR)
    assert (refused.status_code, refused.json()["code"]) == (409, "plan_archived")


def test_a_plan_can_be_created_paused(world: Any) -> None:
    assert send(world, "POST", f"{PATH}?paused=true", PLAN).json()["paused"] is True


def test_the_documented_plan_can_be_created(world: Any) -> None:
    shown = world.app.openapi()["paths"]["/v1/admin/plans"]["post"]["requestBody"]["content"]["application/json"]
    for name, example in shown["examples"].items():
        answer = send(world, "POST", PATH, example["value"] | {"name": f"documented-{name}"})
        assert answer.status_code == 201, answer.text


def test_a_plan_with_an_infinite_cost_goes_round(world: Any) -> None:
    spec = {"label_flip_cost": "Infinity", "transport_norm": "l1"}
    made = send(world, "POST", PATH, PLAN | {"spec": spec}).json()
    assert made["plan"]["spec"]["label_flip_cost"] == "Infinity"
    again = send(world, "POST", PATH, made["plan"] | {"name": "twin"})
    assert again.json()["plan"]["spec"] == made["plan"]["spec"]
    stored = world.backend.store.plans.get("twin").plan
    assert stored.spec.label_flip_cost == float("inf")


def test_per_site_settings_step_rules_and_a_lift_go_round(any_world: Any) -> None:
    sites = ["plant-east", "plant-west"]
    changes = {
        "method": "fdr-sm", "parameters": {"step_size": 0.5, "step_power": 0.5}, "sites": sites, "reveal": "each site",
        "site_settings": {
            "plant-east": {"weight": 0.25, "label_flip_cost": "Infinity"},
            "plant-west": {"weight": 0.75, "radius": {"rule": "confidence", "confidence": 0.9}},
        },
        "spec": {"lift": {"components": 16, "bandwidth": 0.5, "seed": 3}},
    }
    made = send(any_world, "POST", PATH, PLAN | changes)
    assert made.status_code == 201, made.text
    plan = made.json()["plan"]
    assert plan["site_settings"]["plant-east"] == {"radius": None, "label_flip_cost": "Infinity", "weight": 0.25}
    assert plan["site_settings"]["plant-west"]["radius"]["confidence"] == 0.9
    assert plan["spec"]["lift"]["components"] == 16 and plan["parameters"] == changes["parameters"]
    again = send(any_world, "POST", PATH, plan | {"name": "twin"}).json()["plan"]
    assert again == plan | {"name": "twin"}


N = len(builtin_asset_type("triplex-pump").features)
SLAB = {
    "matrix": [[sign * (column == row) for column in range(N)] for sign in (1.0, -1.0) for row in range(N)],
    "limits": [1e6] * (2 * N),
}
"""A polytope that holds every measurement."""

REFUSED = {
    "an asset type that is not there": ({"asset_type": "turbine"}, 422, "invalid_input", "turbine"),
    "an unknown site": ({"sites": ["plant-east", "nobody"]}, 422, "unknown_site", "not enrolled: nobody"),
    "a sum over two": ({"sites": ["plant-east", "plant-west"]}, 422, "cohort_too_small", 'reveal = "each site"'),
    "a method that needs single answers": (
        {"method": "drfl-admm"}, 422, "unknown_method_or_parameter", "needs the answer of each plant",
    ),
    "a cohort of two": ({"min_cohort": 2}, 422, "invalid_input", "min_cohort"),
    "a threshold below two thirds": ({"sum_threshold": 0.5}, 422, "invalid_input", "sum_threshold"),
    "an unknown method": ({"method": "magic"}, 422, "unknown_method_or_parameter", "level-bundle"),
    "a parameter of another method": ({"parameters": {"rho": 1.0}}, 422, "unknown_method_or_parameter", "rho"),
    "a parameter out of range": ({"parameters": {"level": 3.0}}, 422, "unknown_method_or_parameter", "level"),
    "a parameter that is no number": ({"parameters": {"level": "NaN"}}, 422, "unknown_method_or_parameter", "level"),
    "a schedule of four fields": ({"cron": "0 2 * *"}, 422, "bad_cron", "five fields"),
    "a 61st minute": ({"cron": "61 2 * * *"}, 422, "bad_cron", "minute"),
    "a day that never comes": ({"cron": "0 2 31 2 *"}, 422, "bad_cron", "none of these months"),
    "an unknown time zone": ({"timezone": "Mars/Olympus"}, 422, "invalid_input", "time zone"),
    "a reserved name": ({"name": "champion"}, 422, "invalid_input", "champion"),
    "a name that is taken": ({"name": "pumps"}, 409, "conflict", "pumps"),
    "more sites than it names": ({"sites": ["plant-east"], "min_sites": 2}, 422, "invalid_input", "names 1"),
    "one site twice": ({"sites": ["plant-east"] * 2, "min_sites": 2}, 422, "invalid_input", "names 1"),
    "a sum over two, one of them twice": (
        {"sites": ["plant-east", "plant-west", "plant-east"]}, 422, "cohort_too_small", 'reveal = "each site"',
    ),
    "an unknown norm": ({"spec": {"transport_norm": "l3"}}, 422, "invalid_input", "body.spec.transport_norm"),
    "a negative radius": ({"spec": {"radius": {"rule": "fixed", "value": -1}}}, 422, "invalid_input", "radius"),
    "a cost of zero": ({"spec": {"label_flip_cost": 0}}, 422, "invalid_input", "label_flip_cost"),
    "a radius that is no number": (
        {"spec": {"radius": {"rule": "fixed", "value": "NaN"}}}, 422, "invalid_input", "spec.radius.value",
    ),
    "a cost that is no number": ({"spec": {"label_flip_cost": "NaN"}}, 422, "invalid_input", "spec.label_flip_cost"),
    "a beta of zero": ({"spec": {"radius": {"value": 0}}}, 422, "invalid_input", "must be above 0"),
    "a site's beta of zero": (
        {"site_settings": {"plant-east": {"radius": {"value": 0}}}}, 422, "invalid_input", "site_settings.plant-east",
    ),
    "weights that do not sum to 1": (
        {"sites": ["plant-east", "plant-west"],
         "site_settings": {"plant-east": {"weight": 0.5}, "plant-west": {"weight": 0.6}}},
        422, "invalid_input", "sum to 1, they sum to 1.1",
    ),
    "a weight for one site only": (
        {"sites": ["plant-east", "plant-west"], "site_settings": {"plant-east": {"weight": 1.0}}},
        422, "invalid_input", "there is none for plant-west",
    ),
    "settings of a site that is not there": (
        {"site_settings": {"nobody": {"label_flip_cost": 2.0}}}, 422, "unknown_site", "not enrolled: nobody",
    ),
    "a wait for a site that is not there": (
        {"reveal": "each site", "method": "level-bundle", "waiting": {"sites": {"nobody": 30.0}}},
        422, "unknown_site", "not enrolled: nobody",
    ),
    "a lift that is not the one of its fingerprint": (
        {"spec": {"lift": {"components": 3, "bandwidth": 1.0, "fingerprint": "0" * 64}}}, 422, "lifts_differ", "seed 0",
    ),
    "a step that is not allowed": (
        {"method": "fdr-sm", "parameters": {"step_power": 2.0}}, 422, "unknown_method_or_parameter", "step_power",
    ),
    "a grid of one": (
        {"tuning": {"radius": [1.0, 1.0]}}, 422, "unknown_method_or_parameter",
        "two candidates at least to choose from, got 1: give a second radius",
    ),
    "a tuning for less than one training": (
        {"tuning": {"radius": [1.0, 3.0], "budget": 0.5}}, 422, "invalid_input",
        "a tuning costs from 1 to 3 trainings, got a budget of 0.5",
    ),
    "a tuning by another word": (
        {"tuning": "often"}, 422, "invalid_input", 'body.tuning: a tuning is "auto", or a table of what is tried',
    ),
    "a grid that is no list": (
        {"tuning": {"radius": 3.0}}, 422, "invalid_input", "body.tuning.radius: Input should be a list",
    ),
    "a lift by its kind alone": (
        {"spec": {"lift": "spline"}}, 422, "invalid_input", "body.spec.lift: the kind of a lift is fourier, spline,",
    ),
    "a loss of networks by a method with a ball": (
        {"spec": {"loss": "cross_entropy"}}, 422, "unknown_method_or_parameter", "or the loss hinge",
    ),
    "a coverage of nothing": ({"coverage": 0}, 422, "invalid_input", "body.coverage: Input should be greater than 0"),
    "a lift under a polytope": (
        {"spec": {"support": SLAB, "lift": {"kind": "spline", "segments": 3}}}, 422, "invalid_input",
        "spec: a polytope speaks of the features themselves: leave out the lift, or the polytope",
    ),
    "a lift to be tried under a polytope": (
        {"spec": {"support": SLAB}, "tuning": {"lifts": ["none", {"kind": "spline", "segments": 3}]}}, 422,
        "unknown_method_or_parameter", "leave the lifts out of the tuning",
    ),
    "a lift in a norm that there is not": (
        {"spec": {"transport_norm": "l3", "lift": {"kind": "spline", "segments": 3}}}, 422, "invalid_input",
        "spec.transport_norm",
    ),
    "a lift under noise": (
        {"method": "level-bundle-plain", "noise": {"epsilon": 4.0, "delta": 1e-5},
         "spec": {"lift": {"kind": "spline", "segments": 3}}},
        422, "unknown_method_or_parameter", "leave out the lift",
    ),
    "a lift before a network": (
        {"method": "fedavg", "reveal": "each site", "spec": {
            "loss": {"name": "cross_entropy"}, "lift": {"kind": "spline", "segments": 3},
        }}, 422, "invalid_input", "leave out the lift",
    ),
    "a coverage in words": ({"coverage": "0.9"}, 422, "invalid_input", "body.coverage: Input should be a valid number"),
    "a tuning that tries nothing": ({"tuning": {}}, 422, "unknown_method_or_parameter", "choose from, got 1"),
    "a coverage of all": ({"coverage": 1.0}, 422, "invalid_input", "body.coverage: Input should be less than 1"),
    "a coverage that a shift takes to 1": (
        {"coverage": 0.95, "coverage_shift": 0.1}, 422, "invalid_input", "ask for less than 0.9",
    ),
    "an unknown field": ({"colour": "red"}, 422, "invalid_input", "body.colour"),
}


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_a_plan_that_cannot_work_is_refused_and_nothing_written(lasting_world: Any, case: str) -> None:
    changes, status, code, said = REFUSED[case]
    before = lasting_world.snapshot()
    answer = send(lasting_world, "POST", PATH, PLAN | changes)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert said in answer.json()["detail"]
    assert lasting_world.snapshot() == before


def test_unknown_plans_and_runs_are_not_found(lasting_world: Any) -> None:
    before = lasting_world.snapshot()
    for path in (f"{PATH}/nobody/pause", f"{PATH}/nobody/trigger", f"/v1/admin/runs/{'0' * 32}/cancel"):
        assert send(lasting_world, "POST", path).status_code == 404
    assert send(lasting_world, "POST", f"/v1/admin/runs/{'ab' * 16}/cancel").status_code == 409  # it has ended
    assert lasting_world.snapshot() == before


def test_a_plan_with_a_suspended_site_is_not_triggered(any_world: Any) -> None:
    any_world.backend.store.sites.suspend("plant-west")
    answer = send(any_world, "POST", f"{PATH}/pumps/trigger")
    assert (answer.status_code, answer.json()["code"]) == (422, "suspended_site")
    assert any_world.events() == []
    written = send(any_world, "POST", PATH, PLAN | {"sites": ["plant-east", "plant-west"], "reveal": "each site"})
    assert written.status_code == 201, "it may be written meanwhile"


def test_asset_types_are_put_version_by_version(any_world: Any) -> None:
    path = "/v1/admin/asset-types/triplex-pump"
    body = builtin_asset_type("triplex-pump").model_dump(mode="json")
    assert send(any_world, "PUT", path, body).status_code == 200
    assert any_world.events() == []  # the same again
    changed = send(any_world, "PUT", path, body | {"description": "another"})
    assert (changed.status_code, changed.json()["code"]) == (409, "conflict")
    newer = send(any_world, "PUT", path, body | {"description": "another", "version": 2})
    assert newer.status_code == 200
    assert send(any_world, "GET", path).json() == newer.json()
    listed = send(any_world, "GET", "/v1/admin/asset-types").json()["asset_types"]
    mine = [item["asset_type"] for item in listed if item["asset_type"]["name"] == "triplex-pump"]
    assert [item["version"] for item in mine] == [1, 2]
    other = send(any_world, "PUT", "/v1/admin/asset-types/turbine", body)
    assert (other.status_code, other.json()["code"]) == (422, "invalid_input")
    twice = send(any_world, "PUT", path, body | {"version": 3, "features": body["features"] * 2})
    assert "feature named twice" in twice.json()["detail"]
    assert any_world.events() == ["asset_type.put"]
