"""One MLflow run for each Ballast run: found again where it is there, in its model's experiment, with all metrics."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from services.contracts.errors import ConflictError
from services.contracts.history.run import Run
from services.contracts.plans.plan import Plan
from services.contracts.versions.model_version import ModelVersion
from services.registry import labels, mlflow_runs
from services.registry.mlflow_runs import MlflowRuns
from services.registry.run_log import BATCH
from tests.services.registry.conftest import asset_type
from tests.versions import START

RUN = Run(
    run_id="ab" * 16, plan=Plan(name="pump", asset_type="triplex-pump"), status="running", created_at=START,
    updated_at=START,
)
MILLISECONDS = int(START.timestamp() * 1000)


class Client:
    """What is asked of MLflow, which has these ``runs``; ``state`` is that of its experiment, None: it has none."""

    def __init__(self, *runs: str, state: str | None = "active") -> None:
        self.runs, self.state = runs, state
        self.asked: list[tuple[str, Any]] = []

    def create_experiment(self, title: str, *, artifact_location: str | None) -> None:
        self.asked.append(("experiment", (title, artifact_location)))

    def get_experiment_by_name(self, title: str) -> Any:
        assert title == "ballast-pump"
        return None if self.state is None else SimpleNamespace(experiment_id="7", lifecycle_stage=self.state)

    def search_runs(self, experiments: list[str], wanted: str, *, max_results: int) -> list[Any]:
        assert (experiments, wanted) == (["7"], f"tags.`{labels.RUN_ID}` = '{RUN.run_id}'")
        return [SimpleNamespace(info=SimpleNamespace(run_id=each)) for each in self.runs[:max_results]]

    def create_run(self, experiment: str, started: int, tags: dict[str, str], title: str) -> Any:
        self.asked.append(("run", (experiment, started, tags, title)))
        return SimpleNamespace(info=SimpleNamespace(run_id="made"))

    def set_terminated(self, mlflow_run: str, status: str) -> None:
        self.asked.append(("status", (mlflow_run, status)))

    def log_batch(self, mlflow_run: str, **what: Any) -> None:
        self.asked.append(("log", (mlflow_run, what)))

    def log_inputs(self, mlflow_run: str, *, datasets: object) -> None:
        self.asked.append(("inputs", (mlflow_run, datasets)))

    def log_artifacts(self, mlflow_run: str, folder: str) -> None:
        self.asked.append(("files", mlflow_run))


def runs(client: Client, root: str | None = None) -> MlflowRuns:
    connection: Any = SimpleNamespace(client=client)
    return MlflowRuns(connection, root)


def test_a_run_that_begins_is_made_once_and_is_running_when_it_goes_on() -> None:
    client, kind = Client(), asset_type(2)
    assert runs(client).start_run(RUN, kind) == "made"
    tags = dict(labels.started_tags(RUN, kind))
    assert client.asked[1:] == [
        ("run", ("7", MILLISECONDS, tags, "pump-abababab")), ("status", ("made", "RUNNING")),
    ]
    client = Client("there", "another")
    assert runs(client).start_run(RUN, kind) == "there"
    assert client.asked[1:] == [("status", ("there", "RUNNING"))]


@pytest.mark.parametrize(("root", "place"), [
    (None, None), ("s3://b/", "s3://b/pump"), ("/srv/files", "/srv/files/pump"),
])
def test_an_experiment_keeps_its_files_in_a_folder_of_its_model(root: str | None, place: str | None) -> None:
    client = Client("there")
    runs(client, root).start_run(RUN, asset_type(2))
    assert client.asked[0] == ("experiment", ("ballast-pump", place))


@pytest.mark.parametrize("state", ["deleted", None])
def test_an_experiment_that_somebody_deleted_is_said(state: str | None) -> None:
    with pytest.raises(ConflictError, match="the experiment ballast-pump was deleted in MLflow"):
        runs(Client(state=state)).start_run(RUN, asset_type(2))


def test_an_end_is_told_where_mlflow_has_the_run_and_nothing_is_made_for_it() -> None:
    for client, told in (
        (Client("there"), [("status", ("there", "FAILED"))]), (Client(), []), (Client("there", state=None), []),
    ):
        runs(client).end_run(RUN, "FAILED")
        assert client.asked == told


def test_a_version_is_of_the_moment_when_it_was_made_and_its_labels_are_those_of_now(
    make_version: Callable[..., ModelVersion]
) -> None:
    version = make_version(name="pump", run_id=RUN.run_id, created_at=START)
    for client, mlflow_run in ((Client("there"), "there"), (Client(), "made")):
        assert runs(client).open_run(version) == mlflow_run
        name, (logged, what) = client.asked[-1]
        assert (name, logged) == ("log", mlflow_run)
        assert {tag.key: tag.value for tag in what["tags"]} == dict(labels.run_tags(version))
        if not client.runs:
            assert client.asked[-2][1][1] == MILLISECONDS


def test_all_metrics_are_logged_in_calls_that_mlflow_takes(
    make_version: Callable[..., ModelVersion], monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 2 * BATCH + 1
    monkeypatch.setattr(mlflow_runs, "metric_rows", lambda *_: [(f"m{k}", float(k), 0, 0) for k in range(count)])
    client = Client("there")
    runs(client).log_run("there", make_version(name="pump"), (), {}, {})
    calls = [[each.key for each in what["metrics"]] for _, (_, what) in _logged(client) if "metrics" in what]
    assert [len(call) for call in calls] == [BATCH, BATCH, 1]
    assert [key for call in calls for key in call] == [f"m{k}" for k in range(count)]
    assert client.asked[-1] == ("files", "there")


def _logged(client: Client) -> list[tuple[str, Any]]:
    return [each for each in client.asked if each[0] == "log"]
