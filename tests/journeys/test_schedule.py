"""The flows process on a real Prefect: schedules, triggers, and runs whose process was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import wait_until

ROUNDS = 250
"""Many more than there can be between the tenth round and a kill."""


@pytest.fixture(scope="module")
def runner(works: Any) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        with (works.home / "runner.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "flows.runner"], env=works.environment, stdout=log, stderr=log,
                start_new_session=True,
            )
        started.append(process)
        return process

    yield start
    for process in started:
        stop(process, signal.SIGKILL)


@pytest.fixture(scope="module")
def running(runner: Any) -> list[subprocess.Popen[bytes]]:
    """The flows process; a test that kills it puts the next one in its place."""
    return [runner()]


def stop(process: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass
    process.wait()


def ask_prefect(works: Any, path: str, body: dict[str, Any] | None = None) -> Any:
    request = urllib.request.Request(
        f"{works.environment['PREFECT_API_URL']}{path}", headers={"Content-Type": "application/json"},
        data=None if body is None else json.dumps(body).encode(),
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def deployment(works: Any, plan: str) -> dict[str, Any] | None:
    found = ask_prefect(works, "/deployments/filter", {"deployments": {"name": {"any_": [plan]}}})
    return dict(found[0]) if found else None


def flow_process_of(works: Any, run_id: str) -> int | None:
    """Process id of the flow run that drives a run, from Linux's process table."""
    wanted = f"PREFECT__FLOW_RUN_ID={works.store.runs.get_run(run_id).flow_run_id}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes()
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if wanted in environment.split(b"\0") and b"python" in command:
                return int(entry.name)
    return None


@pytest.fixture(scope="module")
def weekly(works: Any, running: Any) -> str:
    """A plan with a schedule, whose deployment Prefect has."""
    works.plan("weekly", cron="0 3 * * 1", max_rounds=20)
    wait_until(lambda: deployment(works, "weekly") is not None, "deployment")
    return "weekly"


def test_a_cron_plan_has_scheduled_runs_in_prefect(works: Any, weekly: str) -> None:
    made = deployment(works, weekly)
    assert made is not None
    assert made["schedules"][0]["schedule"]["cron"] == "0 3 * * 1"

    def scheduled() -> bool:
        state = {"state": {"type": {"any_": ["SCHEDULED"]}}}
        wanted = {"deployments": {"id": {"any_": [made["id"]]}}, "flow_runs": state}
        return len(ask_prefect(works, "/flow_runs/filter", wanted)) > 0

    wait_until(scheduled, "scheduled flow run")


def test_pausing_a_plan_pauses_its_schedule(works: Any, weekly: str) -> None:
    def shown() -> object:
        return (deployment(works, weekly) or {}).get("paused")

    works.store.plans.set_paused(weekly, True)
    wait_until(lambda: shown() is True, "paused deployment")
    works.store.plans.set_paused(weekly, False)
    wait_until(lambda: shown() is False, "resumed deployment")


def test_a_triggered_plan_is_trained(works: Any, running: Any) -> None:
    plan = works.plan("triggered", max_rounds=20)
    run = works.store.runs.create_run(plan)
    wait_until(lambda: works.store.runs.get_run(run.run_id).status in ("completed", "failed"), "end of the run")
    done = works.store.runs.get_run(run.run_id)
    assert done.status == "completed", done.reason
    assert done.flow_run_id and done.mlflow_run_id and done.model_version


def test_a_killed_flow_run_is_picked_up_again(works: Any, running: Any) -> None:
    plan = works.plan("flow-run-killed", max_rounds=ROUNDS)
    run = works.store.runs.create_run(plan)
    wait_until(lambda: works.store.runs.get_run(run.run_id).rounds >= 10, "tenth round")
    process = flow_process_of(works, run.run_id)
    assert process is not None
    os.kill(process, signal.SIGKILL)
    first = works.store.runs.get_run(run.run_id)
    wait_until(lambda: works.store.runs.get_run(run.run_id).status in ("completed", "failed"), "end of the run")
    done = works.store.runs.get_run(run.run_id)
    assert done.status == "completed", done.reason
    assert done.rounds == ROUNDS
    assert done.flow_run_id != first.flow_run_id


def test_flow_and_runner_killed_together(works: Any, running: Any, runner: Any) -> None:
    plan = works.plan("both-killed", max_rounds=ROUNDS)
    run = works.store.runs.create_run(plan)
    wait_until(lambda: works.store.runs.get_run(run.run_id).rounds >= 10, "tenth round")
    process = flow_process_of(works, run.run_id)
    stop(running[0], signal.SIGKILL)
    if process is not None:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass
    left = works.store.runs.get_run(run.run_id)
    assert left.status == "running"
    running[0] = runner()
    wait_until(lambda: works.store.runs.get_run(run.run_id).status in ("completed", "failed"), "end of the run")
    done = works.store.runs.get_run(run.run_id)
    assert done.status == "completed", done.reason
    assert [record.round for record in works.store.runs.get_rounds(run.run_id)] == list(range(1, ROUNDS + 1))
    buried = ask_prefect(works, f"/flow_runs/{left.flow_run_id}")
    assert buried["state"]["type"] == "CRASHED"
