"""Somebody with the whole power of Prefect's API starts nothing: flows take orders from the store alone."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from services.registry.mlflow_registry import ModelRegistry
from tests.journeys.asking import ask_prefect, deployment, until_prefect
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def left(works: Any, alone: None) -> str:
    """MLflow run of a run that ended after its process had died: nobody told MLflow."""
    run = works.store.runs.create_run(works.plan("left"))
    mlflow_run = registry_of(works).start_run(run, works.store.asset_types.get("rig").asset_type)
    works.store.runs.finish_run(run.run_id, "failed", "of the test")
    return mlflow_run


@pytest.fixture(scope="module")
def yearly(works: Any, left: str, running: Any) -> dict[str, Any]:
    """Deployment of a plan whose date is far; beside it one whose date comes while the others are looked at."""
    works.plan("minutely", cron="* * * * *", max_rounds=5)
    works.plan("yearly", cron="0 3 1 1 *", max_rounds=5)
    until_prefect(lambda: deployment(works, "yearly") is not None, "deployment")
    return deployment(works, "yearly") or {}


@pytest.fixture(scope="module")
def theirs(works: Any, yearly: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Id of a flow run of a deployment that somebody made, and the file that it would leave."""
    folder = tmp_path_factory.mktemp("theirs")
    ran, module = folder / "ran", folder / "theirs.py"
    module.write_text(f"open({str(ran)!r}, 'w').close()\n")
    body = {"name": "theirs", "flow_id": yearly["flow_id"], "entrypoint": f"{module}:theirs", "path": str(folder),
            "tags": ["ballast"]}
    return start(works, ask_prefect(works, "/deployments/", body)["id"], {}), ran


@pytest.fixture(scope="module")
def refused(works: Any, yearly: dict[str, Any], theirs: tuple[str, Path]) -> dict[str, Any]:
    """End of a flow run that somebody ordered; the runner has looked for work after theirs was ordered too."""
    return end_of(works, start(works, yearly["id"], {"plan": "yearly"}))


def registry_of(works: Any) -> ModelRegistry:
    return ModelRegistry(works.settings.tracking_uri, works.settings.artifact_root)


def start(works: Any, deployment_id: str, parameters: dict[str, Any]) -> str:
    """Id of a flow run that somebody orders in Prefect for now."""
    body = {"parameters": parameters, "state": {"type": "SCHEDULED"}}
    return str(ask_prefect(works, f"/deployments/{deployment_id}/create_flow_run", body)["id"])


def end_of(works: Any, flow_run_id: str) -> dict[str, Any]:
    """State in which a flow run ended."""
    found: dict[str, Any] = {}

    def ended() -> bool:
        found.update(ask_prefect(works, f"/flow_runs/{flow_run_id}")["state"])
        return found["type"] in ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")

    until_prefect(ended, "end of the flow run")
    return found


def test_a_flow_run_that_somebody_creates_is_refused_with_one_line(works: Any, refused: dict[str, Any]) -> None:
    assert refused["type"] == "FAILED"
    assert "nobody asked for this run of plan 'yearly': its next date is" in refused["message"]
    assert works.store.runs.list_runs(plan="yearly") == []


def test_changed_parameters_are_refused(works: Any, yearly: dict[str, Any]) -> None:
    works.plan("never", max_rounds=5)
    ended = works.store.runs.create_run(works.store.plans.get("never").plan)
    works.store.runs.finish_run(ended.run_id, "failed", "of the test")
    # Both are changed; tests/flows/test_orders.py has what is said of the others.
    state = end_of(works, start(works, yearly["id"], {"plan": "never", "run_id": ended.run_id}))
    assert state["type"] == "FAILED" and "has ended: failed" in state["message"], state["message"]
    assert works.store.runs.list_runs(plan="yearly") == []
    assert [run.run_id for run in works.store.runs.list_runs(plan="never")] == [ended.run_id]


def test_a_new_deployment_is_never_started(works: Any, theirs: tuple[str, Path], refused: dict[str, Any]) -> None:
    flow_run, ran = theirs
    assert "nobody asked" in refused["message"]
    assert ask_prefect(works, f"/flow_runs/{flow_run}")["state"]["type"] in ("SCHEDULED", "PENDING")
    assert not ran.exists()


def test_a_date_of_the_schedule_is_taken(works: Any, yearly: dict[str, Any]) -> None:
    wait_until(lambda: works.newest_run("minutely") is not None, "run of the schedule", 0.25)
    works.store.plans.set_paused("minutely", True)
    run = works.wait_for_run("minutely")
    assert run.status == "completed", run.reason
    flow_run = ask_prefect(works, f"/flow_runs/{run.flow_run_id}")
    date = datetime.fromisoformat(flow_run["expected_start_time"])
    assert flow_run["auto_scheduled"] and date.second == 0 and date <= run.created_at, flow_run


def test_a_deployment_that_somebody_changed_runs_our_flow_and_nothing_else(
    works: Any, yearly: dict[str, Any], tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    module = tmp_path / "theirs.py"
    module.write_text(f"import prefect\nopen({str(ran)!r}, 'w').close()\n\n@prefect.flow\ndef theirs(plan): ...\n")
    change = {"entrypoint": f"{module}:theirs", "path": str(tmp_path), "parameters": {"plan": "never"},
              "pull_steps": [{"prefect.deployments.steps.run_shell_script": {"script": f"touch {ran}"}}]}
    ask_prefect(works, f"/deployments/{yearly['id']}", change, method="PATCH")
    assert (deployment(works, "yearly") or {})["entrypoint"] == f"{module}:theirs"
    state = end_of(works, start(works, yearly["id"], {"plan": "yearly"}))
    assert "nobody asked for this run" in state["message"]
    # Cancelled while it runs: then Prefect's runner looks for the hooks of the flow.
    works.plan("cancelled-in-prefect", max_rounds=5000)
    until_prefect(lambda: deployment(works, "cancelled-in-prefect") is not None, "deployment")
    ask_prefect(works, f"/deployments/{deployment(works, 'cancelled-in-prefect')['id']}", change, method="PATCH")
    run = works.store.runs.create_run(works.store.plans.get("cancelled-in-prefect").plan)
    wait_until(lambda: works.store.runs.get_run(run.run_id).rounds >= 5, "fifth round")
    first = works.store.runs.get_run(run.run_id).flow_run_id
    cancelling = {"state": {"type": "CANCELLING", "name": "Cancelling"}}
    ask_prefect(works, f"/flow_runs/{first}/set_state", cancelling)
    # It is no order of the store's: the run is picked up again, until the store says that it is cancelled.
    wait_until(lambda: works.store.runs.get_run(run.run_id).flow_run_id != first, "next flow run")
    works.store.runs.request_cancel(run.run_id)
    wait_until(lambda: works.store.runs.get_run(run.run_id).status == "cancelled", "cancelled run")
    assert not ran.exists()


def test_a_run_that_ended_unknown_to_mlflow_ends_there_once_a_flows_process_is_there(works: Any, left: str) -> None:
    client = registry_of(works)._store.client
    wait_until(lambda: client.get_run(left).info.status == "FAILED", "end in MLflow")


def test_what_somebody_paused_or_took_away_in_prefect_is_as_the_plan_says_again(works: Any) -> None:
    """Else no date of the plan would come any more, and nobody be told."""
    works.plan("kept", cron="0 3 1 1 *", timezone="Europe/Vienna")
    until_prefect(lambda: deployment(works, "kept") is not None, "deployment")

    def is_whole() -> bool:
        found = deployment(works, "kept")
        dates = [] if found is None else [each["schedule"]["cron"] for each in found["schedules"] if each["active"]]
        return found is not None and not found["paused"] and dates == ["0 3 1 1 *"]

    until_prefect(is_whole, "deployment with its dates")
    for spoil in (paused, without_dates, deleted):
        spoil(works, str((deployment(works, "kept") or {})["id"]))
        assert not is_whole()
        until_prefect(is_whole, f"deployment as it was, after {spoil.__name__}")
    works.store.plans.set_paused("kept", True)
    until_prefect(lambda: bool((deployment(works, "kept") or {"paused": False})["paused"]), "paused deployment")
    ask_prefect(works, f"/deployments/{(deployment(works, 'kept') or {})['id']}", {"paused": False}, method="PATCH")
    until_prefect(lambda: bool((deployment(works, "kept") or {"paused": False})["paused"]), "paused deployment again")


def paused(works: Any, deployment_id: str) -> None:
    ask_prefect(works, f"/deployments/{deployment_id}", {"paused": True}, method="PATCH")


def without_dates(works: Any, deployment_id: str) -> None:
    for each in ask_prefect(works, f"/deployments/{deployment_id}/schedules"):
        ask_prefect(works, f"/deployments/{deployment_id}/schedules/{each['id']}", {"active": False}, method="PATCH")


def deleted(works: Any, deployment_id: str) -> None:
    ask_prefect(works, f"/deployments/{deployment_id}", method="DELETE")
