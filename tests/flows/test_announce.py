"""A run stands in MLflow from its start: running, then finished with its version, failed or killed."""

from __future__ import annotations

from typing import Any

import pytest

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


def test_a_registry_that_is_away_keeps_no_run_from_training(works: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise UnavailableError("no MLflow")

    run = works.context.store.runs.create_run(works.plan("unannounced"))
    monkeypatch.setattr(works.context.registry._store.runs, "start_run", away)
    announce(works.context, run)
    works.context.store.runs.finish_run(run.run_id, "failed", "of the test")
