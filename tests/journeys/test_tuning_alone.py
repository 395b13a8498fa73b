"""A plan's tuning by itself: killed, it tunes again; it is cancelled; Prefect shows it, and the registry nothing."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mlflow
import pytest

from services.contracts.errors import NotFoundError
from services.contracts.overrides import tuning_alone
from services.contracts.run import Run
from services.registry.mlflow_registry import ModelRegistry
from tests.journeys.asking import ask_prefect
from tests.waiting import wait_until

GRID = {
    "radius": [0.3, 1.0, 3.0, 10.0], "label_flip_cost": [1.0, 4.0], "budget": 3.0,
    "lifts": ["none", {"kind": "spline", "segments": 6}],
}


def asked(works: Any, name: str) -> Run:
    """A run that tunes alone, of a plan that would train for long."""
    plan = works.plan(name, method="level-bundle", tuning=GRID)
    return Run.model_validate(works.store.runs.create_run(tuning_alone(plan)))


@contextmanager
def held_up(works: Any, run: Run, site: str) -> Iterator[None]:
    """A plant that stands still once the run has begun, so that its tuning does not come to its end."""
    wait_until(lambda: works.store.runs.get_run(run.run_id).status == "running", "join")
    works.agents[site].send_signal(signal.SIGSTOP)
    try:
        assert works.store.runs.get_run(run.run_id).plan.tuned is None
        yield
    finally:
        works.agents[site].send_signal(signal.SIGCONT)


def test_a_tuning_whose_process_is_killed_tunes_again(works: Any) -> None:
    run = asked(works, "tuning-killed")
    flow = works.start_flow("tuning-killed")
    with held_up(works, run, "plant-2"):
        flow.kill()
        flow.wait()
    works.train("tuning-killed")
    ended = works.wait_for_run("tuning-killed")
    assert (ended.run_id, ended.status, ended.rounds) == (run.run_id, "completed", 0), ended.reason
    assert ended.plan.tuned is not None and not ended.plan.tuned.reused_from


def test_a_tuning_is_cancelled(works: Any) -> None:
    run = asked(works, "tuning-cancelled")
    works.train("tuning-cancelled")
    with held_up(works, run, "plant-3"):
        works.store.runs.request_cancel(run.run_id)
    ended = works.wait_for_run("tuning-cancelled")
    assert (ended.run_id, ended.status, ended.plan.tuned) == (run.run_id, "cancelled", None)


def test_prefect_shows_a_tuning_and_the_registry_nothing(works: Any, running: Any) -> None:
    # The last one of this file: its flows process would start the runs of the others.
    run = asked(works, "looked-at")
    wait_until(lambda: works.store.runs.get_run(run.run_id).status == "completed", "end of the run")
    done = works.store.runs.get_run(run.run_id)
    assert done.plan.tuned is not None and done.reason.startswith("tuned, nothing was trained; chosen of 16 candidates")
    assert (done.rounds, done.model_version, done.mlflow_run_id) == (0, None, None)
    flow_run: dict[str, Any] = {}

    def over() -> bool:
        flow_run.update(ask_prefect(works, f"/flow_runs/{done.flow_run_id}"))
        return bool(flow_run["state"]["type"] == "COMPLETED")

    wait_until(over, "end of the flow run")
    assert flow_run["name"].startswith(f"looked-at-{run.run_id[:8]}-tuning")
    assert {"plan:looked-at", f"run:{run.run_id}", "set:tune_only=true"} <= set(flow_run["tags"])
    wanted = {"flow_runs": {"parent_flow_run_id": {"any_": [done.flow_run_id]}}}
    (below,) = ask_prefect(works, "/flow_runs/filter", wanted)
    assert ask_prefect(works, f"/flows/{below['flow_id']}")["name"] == "tune"
    registry = ModelRegistry(works.settings.tracking_uri, works.settings.artifact_root)
    with pytest.raises(NotFoundError):
        registry.versions("looked-at")
    names = [each.name for each in mlflow.MlflowClient(works.settings.tracking_uri).search_experiments()]
    assert not [name for name in names if "looked-at" in name]
    assert works.store.model_versions.list_versions("looked-at", limit=9) == []
