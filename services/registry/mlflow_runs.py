"""What the registry asks of MLflow about runs: an experiment a model, an MLflow run for each Ballast run."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from services.contracts.errors import ConflictError
from services.contracts.history.run import RoundRecord, Run
from services.contracts.machines.asset_type import AssetType
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.report import ModelReport
from services.registry import labels
from services.registry.datasets import dataset_inputs
from services.registry.mlflow_connection import MlflowConnection, unless_there
from services.registry.run_log import BATCH, metric_rows, parameters, write_report_files


class MlflowRuns:
    """Experiments and runs of one MLflow; ``artifact_root``: where new experiments keep their files."""

    def __init__(self, connection: MlflowConnection, artifact_root: str | None) -> None:
        self._connection = connection
        self._root = artifact_root

    def open_run(self, version: ModelVersion) -> str:
        """MLflow run of a Ballast run: the one of its start or of a broken registration, or a new one."""
        from mlflow.entities import RunTag

        tags = labels.run_tags(version)
        mlflow_run = self._run_of(version.name, version.run_id, int(version.created_at.timestamp() * 1000), tags)
        self._connection.client.log_batch(mlflow_run, tags=[RunTag(key, value) for key, value in tags.items()])
        return mlflow_run

    def start_run(self, run: Run, asset_type: AssetType) -> str:
        """MLflow run of a Ballast run that begins, or goes on."""
        started = int(run.created_at.timestamp() * 1000)
        mlflow_run = self._run_of(run.plan.name, run.run_id, started, labels.started_tags(run, asset_type))
        self._connection.client.set_terminated(mlflow_run, "RUNNING")
        return mlflow_run

    def running(self) -> list[str]:
        """Ballast runs that MLflow has for running."""
        of_ours = f"name LIKE '{_experiment_title('%')}'"
        experiments = [each.experiment_id for each in self._connection.client.search_experiments(filter_string=of_ours)]
        if not experiments:
            return []
        found = self._connection.client.search_runs(experiments, "attributes.status = 'RUNNING'")
        return [str(each.data.tags[labels.RUN_ID]) for each in found if labels.RUN_ID in each.data.tags]

    def end_run(self, run: Run, status: str) -> None:
        """Say how a run ended, where MLflow has it."""
        experiment = self._connection.client.get_experiment_by_name(_experiment_title(run.plan.name))
        for found in self._runs_of(experiment.experiment_id, run.run_id) if experiment is not None else ():
            self._connection.client.set_terminated(found.info.run_id, status)

    def log_run(
        self,
        mlflow_run: str,
        version: ModelVersion,
        rounds: Sequence[RoundRecord],
        report: ModelReport | Mapping[str, Any],
        attachments: Mapping[str, str | bytes],
    ) -> None:
        """Log parameters, what the plants told, all metrics in as few calls as MLflow takes, and the report's files."""
        from mlflow.entities import Metric, Param

        client = self._connection.client
        client.log_batch(mlflow_run, params=[Param(key, value) for key, value in parameters(version).items()])
        client.log_inputs(mlflow_run, datasets=dataset_inputs(version, report))
        metrics = [Metric(*row) for row in metric_rows(version, rounds)]
        for start in range(0, len(metrics), BATCH):
            client.log_batch(mlflow_run, metrics=metrics[start : start + BATCH])
        with tempfile.TemporaryDirectory() as scratch:
            write_report_files(Path(scratch), report, attachments)
            client.log_artifacts(mlflow_run, scratch)

    def _run_of(self, model: str, run_id: str, started: int, tags: Mapping[str, str]) -> str:
        experiment = self._experiment(model)
        found = self._runs_of(experiment, run_id)
        if found:
            return str(found[0].info.run_id)
        title = f"{model}-{run_id[:8]}"
        return str(self._connection.client.create_run(experiment, started, dict(tags), title).info.run_id)

    def _runs_of(self, experiment: str, run_id: str) -> Sequence[Any]:
        wanted = f"tags.`{labels.RUN_ID}` = '{run_id}'"
        found: Sequence[Any] = self._connection.client.search_runs([experiment], wanted, max_results=1)
        return found

    def _experiment(self, name: str) -> str:
        title = _experiment_title(name)
        location = f"{self._root.rstrip('/')}/{name}" if self._root else None
        unless_there(lambda: self._connection.client.create_experiment(title, artifact_location=location))
        held = self._connection.client.get_experiment_by_name(title)
        if held is None or held.lifecycle_stage != "active":
            raise ConflictError(f"the experiment {title} was deleted in MLflow: restore it there")
        return str(held.experiment_id)


def _experiment_title(model: str) -> str:
    return f"ballast-{model}"
