"""Two flows processes, each with a home folder of its own, on one store and one Prefect: they share the runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flows.labels import run_tag
from services.contracts.history.run import Run
from tests.journeys.asking import ask_prefect, deployment, until_prefect
from tests.journeys.flows_process import FlowsProcess
from tests.waiting import PATIENCE, wait_until

LOG = "runner.log"
PLANS = ("shared-a", "shared-b", "shared-c")


PATIENT = f"""
import asyncio, flows.runner
from services.process.log_lines import set_up_logs
from services.process.settings import Settings
flows.runner.BEGIN_SECONDS = {PATIENCE}
set_up_logs(Settings.load().logging)
asyncio.run(flows.runner.serve())
"""
"""The flows process, which waits for a flow run of another as long as a loaded machine may take to start one."""


@pytest.fixture
def both(works: Any, alone: None, tmp_path: Path) -> Iterator[tuple[FlowsProcess, FlowsProcess]]:
    """Two flows processes, the second as on another machine."""
    settings, home = works.settings, tmp_path / "second"
    home.mkdir(mode=0o700)
    servers = ", ".join(f'"{server}"' for server in settings.nats_servers)
    (home / "ballast.toml").write_text(
        f'database_url = "{settings.database}"\nlease_seconds = {settings.lease_seconds}\n'
        f'[prefect]\napi_url = "{settings.prefect.api_url}"\n'
        f'[nats]\nservers = [{servers}]\nseed_file = "{settings.nats_seed}"\nca_file = "{settings.nats_authority}"\n'
        f'[mlflow]\ntracking_uri = "{settings.tracking_uri}"\nartifact_root = "{settings.artifact_root}"\n'
    )
    there = works.environment | {"BALLAST_HOME": str(home), "PREFECT_HOME": str(tmp_path / "prefect")}
    one = FlowsProcess(works, program=("-c", PATIENT))
    other = FlowsProcess(replace(works, home=home, environment=there), program=("-c", PATIENT))
    one.start()
    other.start()
    yield one, other
    one.kill()
    other.kill()


def flow_runs(works: Any, run: Run) -> list[dict[str, Any]]:
    """All flow runs of a run in Prefect, whoever began them."""
    wanted = {"flow_runs": {"tags": {"all_": [run_tag(run)]}}}
    return list(ask_prefect(works, "/flow_runs/filter", wanted))


def test_each_run_has_one_flow_run_and_goes_on_where_one_process_is_killed(
    works: Any, both: tuple[FlowsProcess, FlowsProcess]
) -> None:
    def are_at_work() -> bool:
        return all("plan shared-c: schedule" in (each.works.home / LOG).read_text() for each in both)

    for name in PLANS:
        works.plan(name)  # of so many rounds that none ends before the last one has begun
    wait_until(are_at_work, "both flows processes")
    until_prefect(lambda: all(deployment(works, name) is not None for name in PLANS), "deployments")
    runs = [works.store.runs.create_run(works.store.plans.get(name).plan) for name in PLANS]
    for name in PLANS:
        works.wait_for_round(name, 2)
    begun = {run.plan.name: flow_runs(works, run) for run in runs}
    assert {name: len(each) for name, each in begun.items()} == dict.fromkeys(PLANS, 1)
    both[1].kill()
    ended = {name: works.wait_for_run(name) for name in PLANS}
    assert {name: run.status for name, run in ended.items()} == dict.fromkeys(PLANS, "completed"), ended
    for run in ended.values():
        numbers = [record.round for record in works.store.runs.get_rounds(run.run_id)]
        assert numbers == list(range(1, run.rounds + 1)), "no round twice, none left out"
        names = [each["state"]["name"] for each in flow_runs(works, run)]
        assert names.count("Completed") == 1, names
        (version,) = works.store.model_versions.list_versions(run.plan.name, limit=5)
        assert version.run_id == run.run_id
    run = works.store.runs.create_run(works.store.plans.get(PLANS[0]).plan)
    works.wait_for_round(PLANS[0], 2)
    assert both[0].end() == 0
    said = (works.home / LOG).read_text()
    assert "told to end" in said and "Traceback" not in said and "never awaited" not in said, said
    works.store.runs.finish_run(run.run_id, "cancelled", "its process has ended")
