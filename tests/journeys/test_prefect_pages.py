"""What a run shows in Prefect's pages, asked of the real Prefect as its pages ask."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from typing import Any

import mlflow
import pytest

from services.contracts.errors import NotFoundError
from services.contracts.plans.overrides import with_overrides
from services.registry.mlflow_registry import ModelRegistry
from tests.journeys.asking import ask_prefect, deployment, until_prefect
from tests.journeys.tunings import asked
from tests.waiting import PATIENCE


@pytest.fixture(scope="module")
def done(works: Any, running: Any) -> Any:
    """A run with terms of its own, at its end."""
    plan = with_overrides(works.plan("shown", max_rounds=400), {"max_rounds": 4})
    run = works.store.runs.create_run(plan)
    works.wait_for_run("shown")
    until_prefect(lambda: flow_run(works, run.run_id)["state"]["type"] == "COMPLETED", "end of the flow run")
    return works.store.runs.get_run(run.run_id)


def flow_run(works: Any, run_id: str) -> dict[str, Any]:
    found = ask_prefect(works, f"/flow_runs/{works.store.runs.get_run(run_id).flow_run_id}")
    return dict(found)


def tasks(works: Any, flow_run_id: str) -> list[dict[str, Any]]:
    """Tasks of a flow run, in the order of their starts."""
    found = ask_prefect(works, "/task_runs/filter", {"task_runs": {"flow_run_id": {"any_": [flow_run_id]}}})
    return sorted(found, key=lambda task: str(task["start_time"]))


def artifacts(works: Any, run: Any) -> dict[str, Any]:
    wanted = {"artifacts": {"flow_run_id": {"any_": [run.flow_run_id]}}}
    return {each["key"]: each for each in ask_prefect(works, "/artifacts/filter", wanted)}


def test_a_triggered_plan_is_trained(done: Any) -> None:
    assert done.status == "completed", done.reason
    assert done.flow_run_id and done.mlflow_run_id and done.model_version


def test_the_steps_of_a_run_are_tasks(works: Any, done: Any) -> None:
    names = ["join", "train", "evaluate", "calibrate", "register", "promote"]

    def ended() -> list[str]:  # Prefect writes its tasks down a little later
        return [task["name"] for task in tasks(works, done.flow_run_id) if task["state"]["type"] == "COMPLETED"]

    until_prefect(lambda: len(ended()) == len(names), "tasks of the flow run")
    assert ended() == names
    retries = {task["name"]: task["empirical_policy"]["retries"] for task in tasks(works, done.flow_run_id)}
    assert retries == {name: 50 if name in ("register", "promote") else 0 for name in names}


def test_a_run_is_found_by_its_name_and_its_tags(works: Any, done: Any) -> None:
    shown = flow_run(works, done.run_id)
    assert shown["name"].startswith(f"shown-{done.run_id[:8]}")
    assert {
        "ballast", "plan:shown", "asset-type:rig", "method:fdr-sm", "reveal:each site", f"run:{done.run_id}",
        "set:max_rounds=4",
    } == set(shown["tags"])
    assert done.rounds == 4 and done.plan.overrides == {"max_rounds": 4}


def test_table_chart_and_link_stand_beside_the_run(works: Any, done: Any) -> None:
    found = artifacts(works, done)
    rows = {row["plant"]: row for row in json.loads(found["plants-shown"]["data"])}
    assert set(rows) == set(works.agents)
    assert all((row["weight"], row["answered"], row["missed"], row["last answer"]) == (0.25, 4, 0, 4)
               for row in rows.values())
    picture = found["gap-shown"]["data"]
    assert picture.startswith("data:image/svg+xml;base64,")
    assert b"Certified gap by round" in base64.b64decode(picture.partition(",")[2])
    assert f"/console/models/shown/versions/{done.model_version}" in found["version-shown"]["data"]
    assert "certified gap" in found["version-shown"]["description"]


FORGET = (
    "from flows.artifacts import forget_tables as forget; print(forget('shown', 'plant-2'), forget('shown', 'x'))"
)


def test_tables_with_a_plant_are_forgotten(works: Any, done: Any) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FORGET], env=works.environment, capture_output=True, text=True, timeout=PATIENCE,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ran.stdout.split() == ["1", "0"]
    assert "plants-shown" not in artifacts(works, done) and "gap-shown" in artifacts(works, done)
    latest = ask_prefect(works, "/artifacts/latest/filter", {"artifacts": {"key": {"any_": ["plants-shown"]}}})
    assert latest == []


def test_a_run_from_prefects_pages_says_where_to_ask_and_an_automation_hears_of_it(works: Any, done: Any) -> None:
    """An automation of Prefect's on failed flow runs of a plan, as its pages make one."""
    theirs = deployment(works, "shown")
    assert theirs is not None and "plan:shown" in theirs["tags"]
    failed = {
        "type": "event", "posture": "Reactive", "threshold": 1, "within": 0, "expect": ["prefect.flow-run.Failed"],
        "match": {"prefect.resource.id": "prefect.flow-run.*"},
        "match_related": {"prefect.resource.id": "prefect.tag.plan:shown", "prefect.resource.role": "tag"},
    }
    automation = ask_prefect(works, "/automations/", {
        "name": "of the test", "trigger": failed, "actions": [{"type": "do-nothing"}], "enabled": True,
    })
    time.sleep(3.0)  # Prefect's service of triggers takes it up a little later
    order = {"parameters": {"plan": "shown"}, "state": {"type": "SCHEDULED"}}
    asked = ask_prefect(works, f"/deployments/{theirs['id']}/create_flow_run", order)
    ended: dict[str, Any] = {}

    def failed_now() -> bool:
        ended.update(ask_prefect(works, f"/flow_runs/{asked['id']}")["state"])
        return bool(ended["type"] == "FAILED")

    until_prefect(failed_now, "refusal")
    assert "A run is asked for with `ballast plan trigger`" in ended["message"]

    def heard() -> bool:
        wanted = {"filter": {"event": {"name": ["prefect.automation.triggered"]}}, "limit": 20}
        found = ask_prefect(works, "/events/filter", wanted)["events"]
        return any(each["resource"]["prefect.resource.id"].endswith(str(automation["id"])) for each in found)

    until_prefect(heard, "automation")


def test_prefect_shows_a_tuning_and_the_registry_nothing(works: Any, running: Any) -> None:
    run = asked(works, "looked-at")
    done = works.wait_for_run("looked-at")
    assert done.plan.tuned is not None and done.reason.startswith("tuned, nothing was trained; chosen of 16 candidates")
    assert (done.rounds, done.model_version, done.mlflow_run_id) == (0, None, None)
    until_prefect(lambda: flow_run(works, run.run_id)["state"]["type"] == "COMPLETED", "end of the flow run")
    found = flow_run(works, run.run_id)
    assert found["name"].startswith(f"looked-at-{run.run_id[:8]}-tuning")
    assert {"plan:looked-at", f"run:{run.run_id}", "set:tune_only=true"} <= set(found["tags"])
    wanted = {"flow_runs": {"parent_flow_run_id": {"any_": [done.flow_run_id]}}}
    (below,) = ask_prefect(works, "/flow_runs/filter", wanted)
    assert ask_prefect(works, f"/flows/{below['flow_id']}")["name"] == "tune"
    registry = ModelRegistry(works.settings.tracking_uri, works.settings.artifact_root)
    with pytest.raises(NotFoundError):
        registry.versions("looked-at")
    names = [each.name for each in mlflow.MlflowClient(works.settings.tracking_uri).search_experiments()]
    assert not [name for name in names if "looked-at" in name]
    assert works.store.model_versions.list_versions("looked-at", limit=9) == []


STEPS = """
import asyncio, json, sys
from prefect import flow
from flows.steps import step
from services.contracts.errors import InvalidInputError, UnavailableError

AWAY = UnavailableError("MLflow does not answer")
LOCKED = UnavailableError("the database was locked", code="database_busy")
CASES = {"once": [AWAY], "always": [AWAY] * 9, "store": [LOCKED] * 9, "wrong": [InvalidInputError("no fit")] * 9}
told = {}

@flow(name="of-the-test", persist_result=False, validate_parameters=False)
async def tries(name, errors):
    async def work():
        told[name] = told.get(name, 0) + 1
        if told[name] <= len(errors):
            raise errors[told[name] - 1]
        return "done"
    try:
        return await step("register", work, (0.01, 0.01))
    except (InvalidInputError, UnavailableError) as error:
        return "raised" if error is errors[0] else "another"

for name, errors in CASES.items():
    said = asyncio.run(tries(name, errors))
    told[name] = [said, told[name]]
print(json.dumps(told))
"""


def test_only_what_may_pass_is_tried_again(works: Any) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", STEPS], env=works.environment, capture_output=True, text=True, timeout=PATIENCE,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert json.loads(ran.stdout.splitlines()[-1]) == {
        "once": ["done", 2], "always": ["raised", 3], "store": ["raised", 1], "wrong": ["raised", 1],
    }, "the store decides, and nothing of it is tried again"
    assert "Traceback" not in ran.stdout + ran.stderr and "NoneType" not in ran.stderr
