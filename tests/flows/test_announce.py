"""A run stands in MLflow from its start: running, then finished with its version, failed or killed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flows import mlflow_ends
from flows.mlflow_ends import end_left_running
from flows.publish import announce
from flows.retrain import failure_recorded
from services.contracts.errors import InvalidInputError, UnavailableError
from services.coordinator.run_state.run_errors import RunCancelledError


def mlflow_run(works: Any, name: str) -> Any:
    client = works.context.registry._store.client
    experiment = client.get_experiment_by_name(f"ballast-{name}")
    (found,) = client.search_runs([experiment.experiment_id])
    return found


def test_the_run_of_the_start_is_the_one_of_the_version(works: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, store = works.plan("announced", max_rounds=5), works.context.store
    create = store.runs.create_run
    seen: list[Any] = []

    def created(plan: Any) -> Any:
        run = create(plan)
        announce(works.context, run)
        seen.append(mlflow_run(works, "announced"))
        announce(works.context, run)  # picked up again by another process
        return run

    monkeypatch.setattr(store.runs, "create_run", created)
    run, _, version = works.train(plan)
    found = mlflow_run(works, "announced")
    assert (seen[0].info.status, seen[0].data.tags["ballast.run_id"]) == ("RUNNING", run.run_id)
    assert "ballast.gap" not in seen[0].data.tags and "ballast.gap" in found.data.tags
    assert (found.info.run_id, found.info.status) == (seen[0].info.run_id, "FINISHED")
    assert works.context.registry.mlflow_run_id("announced", version.version) == found.info.run_id
    told = store.model_versions.get("announced", version.version).metrics
    assert told == {**version.figures, "fresh_weight": version.fresh_weight} and told["fresh_weight"] == 1.0


@pytest.mark.parametrize(("error", "status"), [
    (RunCancelledError("an operator cancelled the run"), "KILLED"), (InvalidInputError("it does not fit"), "FAILED"),
])
def test_a_run_without_a_version_ends_in_mlflow_too(works: Any, error: Exception, status: str) -> None:
    plan = works.plan(f"ends-{status.lower()}")
    run = works.context.store.runs.create_run(plan)
    announce(works.context, run)
    assert works.context.store.runs.renew_lease(run.run_id, "me", 60.0)
    with pytest.raises(type(error)), failure_recorded(works.context, run, "me"):
        raise error
    assert mlflow_run(works, plan.name).info.status == status


@pytest.mark.parametrize(("status", "told"), [("failed", "FAILED"), ("cancelled", "KILLED"), ("completed", "FINISHED")])
def test_what_ended_while_nobody_could_tell_mlflow_ends_there_later(works: Any, status: Any, told: str) -> None:
    """A process that dies, or an MLflow that is away, between the store's end and MLflow's; a run under way is left."""
    store = works.context.store
    plan = works.plan(f"left-{status}")
    run = store.runs.create_run(plan)
    announce(works.context, run)
    assert end_left_running(works.context) == [] and mlflow_run(works, plan.name).info.status == "RUNNING"
    store.runs.finish_run(run.run_id, status, "of the test")
    assert end_left_running(works.context) == [run.run_id] and mlflow_run(works, plan.name).info.status == told
    assert end_left_running(works.context) == []


def test_a_run_that_another_store_made_goes_on_in_mlflow(works: Any) -> None:
    stray = works.context.store.runs.create_run(works.plan("strays")).model_copy(update={"run_id": "e" * 32})
    announce(works.context, stray)
    assert end_left_running(works.context) == [] and mlflow_run(works, "strays").info.status == "RUNNING"


def test_mlflow_is_looked_at_again_where_it_was_away(works: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []

    def running() -> list[str]:
        looks.append("")
        if len(looks) == 1:
            raise UnavailableError("no MLflow")
        raise KeyboardInterrupt

    monkeypatch.setattr(works.context.registry, "running", running)
    monkeypatch.setattr(mlflow_ends, "LOOK_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(mlflow_ends.watch_ends(works.context))
    assert len(looks) == 2


def test_a_registry_that_is_away_keeps_no_run_from_training(works: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise UnavailableError("no MLflow")

    run = works.context.store.runs.create_run(works.plan("unannounced"))
    monkeypatch.setattr(works.context.registry._store.runs, "start_run", away)
    announce(works.context, run)
    works.context.store.runs.finish_run(run.run_id, "failed", "of the test")
