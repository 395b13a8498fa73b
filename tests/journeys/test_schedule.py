"""The flows process on a real Prefect: schedules, triggers, and runs whose process was killed."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from sqlalchemy import text

from tests.journeys.asking import ask_prefect, deployment, until_prefect
from tests.journeys.standing import standing
from tests.waiting import wait_until

ROUNDS = 40
"""Many more than there can be between the third round and the stop of a plant, for whose answer the next one waits."""


def flow_process_of(works: Any, run_id: str) -> int:
    """Process id of the flow run that drives a run: the lease names its holder by host, process and a number."""
    with works.store.engine.connect() as connection:
        wanted = text("SELECT lease_owner FROM runs WHERE run_id = :id")
        holder = connection.execute(wanted, {"id": run_id}).scalar_one()
    return int(holder.split(":")[1])


@pytest.fixture(scope="module")
def weekly(works: Any, running: Any) -> str:
    """A plan with a schedule, whose deployment Prefect has."""
    works.plan("weekly", cron="0 3 * * 1", max_rounds=20)
    until_prefect(lambda: deployment(works, "weekly") is not None, "deployment")
    return "weekly"


def test_a_cron_plan_has_scheduled_runs_in_prefect(works: Any, weekly: str) -> None:
    made = deployment(works, weekly)
    assert made is not None
    assert made["schedules"][0]["schedule"]["cron"] == "0 3 * * 1"

    def scheduled() -> bool:
        state = {"state": {"type": {"any_": ["SCHEDULED"]}}}
        wanted = {"deployments": {"id": {"any_": [made["id"]]}}, "flow_runs": state}
        return len(ask_prefect(works, "/flow_runs/filter", wanted)) > 0

    until_prefect(scheduled, "scheduled flow run")


def test_pausing_a_plan_pauses_its_schedule(works: Any, weekly: str) -> None:
    def shown() -> object:
        return (deployment(works, weekly) or {}).get("paused")

    works.store.plans.set_paused(weekly, True)
    until_prefect(lambda: shown() is True, "paused deployment")
    works.store.plans.set_paused(weekly, False)
    until_prefect(lambda: shown() is False, "resumed deployment")


def test_a_killed_flow_run_is_picked_up_again(works: Any, running: Any) -> None:
    plan = works.plan("flow-run-killed", max_rounds=ROUNDS)
    run = works.store.runs.create_run(plan)
    wait_until(lambda: works.store.runs.get_run(run.run_id).rounds >= 3, "third round")
    with standing(works, "plant-2"):
        os.kill(flow_process_of(works, run.run_id), signal.SIGKILL)
        first = works.store.runs.get_run(run.run_id)
    assert first.rounds < ROUNDS
    done = works.wait_for_run("flow-run-killed")
    assert done.status == "completed", done.reason
    assert done.rounds == ROUNDS
    assert done.flow_run_id != first.flow_run_id


def test_flow_and_runner_killed_together(works: Any, running: Any) -> None:
    plan = works.plan("both-killed", max_rounds=ROUNDS)
    run = works.store.runs.create_run(plan)
    wait_until(lambda: works.store.runs.get_run(run.run_id).rounds >= 3, "third round")
    with standing(works, "plant-2"):
        process = flow_process_of(works, run.run_id)
        running.kill()
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass
        left = works.store.runs.get_run(run.run_id)
    assert left.status == "running"
    running.start()
    done = works.wait_for_run("both-killed")
    assert done.status == "completed", done.reason
    assert [record.round for record in works.store.runs.get_rounds(run.run_id)] == list(range(1, ROUNDS + 1))
    buried = ask_prefect(works, f"/flow_runs/{left.flow_run_id}")
    assert buried["state"]["type"] == "CRASHED"


def test_a_flow_run_that_was_being_started_at_a_kill_does_not_stay_pending(works: Any, running: Any) -> None:
    """The process that was to start it is gone before the flow told the store of itself."""
    plan = works.plan("half-started", max_rounds=3)
    until_prefect(lambda: deployment(works, "half-started") is not None, "deployment")
    running.kill()
    try:
        run = works.store.runs.create_run(plan)
        begun = {"state": {"type": "PENDING", "name": "Submitting"}, "tags": [f"run:{run.run_id}"],
                 "parameters": {"plan": "half-started", "run_id": run.run_id}}
        made = deployment(works, "half-started") or {}
        left = ask_prefect(works, f"/deployments/{made['id']}/create_flow_run", begun)
        assert left["state"]["type"] == "PENDING"
    finally:
        running.start()
    done = works.wait_for_run("half-started")
    assert done.status == "completed", done.reason
    assert done.flow_run_id != left["id"]
    assert ask_prefect(works, f"/flow_runs/{left['id']}")["state"]["type"] == "CRASHED"


def test_what_another_process_is_starting_is_left_to_it(works: Any) -> None:
    """Two that run flows both see a run that waits; neither tells Prefect that the other's flow run has crashed."""
    plan = works.plan("started-twice", max_rounds=3)
    until_prefect(lambda: deployment(works, "started-twice") is not None, "deployment")
    made = deployment(works, "started-twice") or {}
    run = works.store.runs.create_run(plan)
    begun = {"state": {"type": "PENDING", "name": "Submitting"}, "tags": [f"run:{run.run_id}"],
             "parameters": {"plan": "started-twice", "run_id": run.run_id}}
    other = ask_prefect(works, f"/deployments/{made['id']}/create_flow_run", begun)
    done = works.wait_for_run("started-twice")
    assert done.status == "completed" and done.flow_run_id != other["id"], done.reason
    assert ask_prefect(works, f"/flow_runs/{other['id']}")["state"]["type"] == "PENDING"


def flow_runs_of(works: Any, plan: str) -> list[dict[str, Any]]:
    """Flow runs of a plan that have started, as Prefect shows them."""
    wanted = {"deployments": {"name": {"any_": [plan]}}}
    found = ask_prefect(works, "/flow_runs/filter", wanted)
    begun = [each for each in found if each["state"] is not None]  # none yet: it is just being made
    return [each for each in begun if each["state"]["type"] not in ("SCHEDULED", "PENDING")]


def test_a_date_that_comes_during_a_run_is_skipped_and_nothing_looks_failed(works: Any, running: Any) -> None:
    plan = works.plan("busy", cron="* * * * *", max_rounds=10_000, round_deadline_seconds=600)
    run = works.store.runs.create_run(plan)
    wait_until(lambda: works.store.runs.get_run(run.run_id).rounds >= 1, "first round")

    def skipped() -> list[dict[str, Any]]:
        return [each for each in flow_runs_of(works, "busy") if each["state"]["name"] == "Skipped"]

    with standing(works, "plant-2"):  # the round waits, for its deadline is far
        until_prefect(lambda: skipped() != [], "skipped date")
        works.store.plans.set_paused("busy", True)
        works.store.runs.request_cancel(run.run_id)
    wait_until(lambda: works.store.runs.get_run(run.run_id).status == "cancelled", "cancelled run")
    first = works.store.runs.get_run(run.run_id).flow_run_id
    end = f"/flow_runs/{first}"
    until_prefect(lambda: ask_prefect(works, end)["state"]["type"] == "CANCELLED", "cancelled flow run")
    found = flow_runs_of(works, "busy")
    assert {each["state"]["name"] for each in found} == {"Skipped", "Cancelled"}, found
    assert all("is being driven by another process" in each["state"]["message"] for each in skipped())
    assert len(works.store.runs.list_runs(plan="busy")) == 1


def test_an_archived_plan_leaves_prefect(works: Any, running: Any) -> None:
    plan = works.plan("old", cron="0 3 * * 1")
    until_prefect(lambda: deployment(works, "old") is not None, "deployment")
    works.store.plans.set_archived("old", True)
    until_prefect(lambda: deployment(works, "old") is None, "end of the deployment")
    run = works.store.runs.create_run(plan)  # nothing would start it, nor could it be cancelled
    wait_until(lambda: works.store.runs.get_run(run.run_id).status == "cancelled", "end of what nothing starts")
    works.store.plans.set_archived("old", False)
    until_prefect(lambda: deployment(works, "old") is not None, "deployment again")
