"""What the registry asks of MLflow: experiments, runs, logged models, versions. Its global state stays untouched."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from services.contracts.asset_type import AssetType
from services.contracts.errors import ConflictError, NotFoundError
from services.contracts.model_version import ModelVersion
from services.contracts.report import ModelReport
from services.contracts.run import RoundRecord, Run
from services.registry import labels
from services.registry.datasets import dataset_inputs
from services.registry.descriptions import model_description, version_description
from services.registry.error_translation import mlflow_errors
from services.registry.mlflow_environment import silence_mlflow
from services.registry.model_files import DOCUMENT, document_text, read_document, sha256, write_model
from services.registry.run_log import (
    BATCH,
    REPORT,
    final_metrics,
    metric_rows,
    parameters,
    read_report,
    write_report_files,
)
from services.registry.store_lock import opening
from services.verification.version import CERTIFICATE


class MlflowStore:
    """One MLflow, by its address. What it raises is MLflow's own, unless said otherwise: see :mod:`guard`."""

    def __init__(self, tracking_uri: str, artifact_root: str | None) -> None:
        self._uri = tracking_uri
        self._root = artifact_root
        self._connecting = threading.Lock()

    @property
    def client(self) -> Any:
        """The MLflow client; the first call imports MLflow."""
        with self._connecting:
            return self._connected

    @cached_property
    def _connected(self) -> Any:
        silence_mlflow()
        from mlflow import MlflowClient

        with mlflow_errors("open its store"), opening(self._uri):
            client = MlflowClient(tracking_uri=self._uri, registry_uri=self._uri)
            client.search_registered_models(max_results=1)  # MLflow makes its tables at the first question
            return client

    # ---- models and versions

    def ensure_model(self, version: ModelVersion) -> None:
        """Create the model of a version where it is missing; ``ConflictError`` where the name is somebody else's."""
        tags = {labels.MANAGED: "true", labels.ASSET_TYPE: version.asset_type.name}
        about = model_description(version.asset_type)
        _unless_there(lambda: self.client.create_registered_model(version.name, tags, about))
        held = self.client.get_registered_model(version.name).tags
        if held.get(labels.MANAGED) != "true":
            raise ConflictError(f"MLflow has a model {version.name} that is not Ballast's: give this one another name")
        if held[labels.ASSET_TYPE] != version.asset_type.name:
            raise ConflictError(
                f"model {version.name} is for asset type {held[labels.ASSET_TYPE]}, not {version.asset_type.name}"
            )

    def entry(self, name: str, alias_or_version: str) -> Any:
        """MLflow's entry of a version; ``NotFoundError`` where there is none of Ballast's. One query."""
        from mlflow.exceptions import MlflowException

        labels.check_known_name(name)
        wanted = str(alias_or_version)
        number = wanted.isascii() and wanted.isdigit()
        missing = f"no model {name} with {'version' if number else 'alias'} {wanted[:60]!r} in the registry"
        if number and len(wanted) > 9:  # beyond what the database holds
            raise NotFoundError(missing)
        try:
            if number:
                entry = self.client.get_model_version(name, str(int(wanted)))
            else:
                entry = self.client.get_model_version_by_alias(name, wanted)
        except MlflowException as error:
            if error.error_code not in {"RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"}:
                raise
            raise NotFoundError(missing) from None
        if labels.RUN_ID not in entry.tags:
            raise NotFoundError(f"version {entry.version} of model {name} in MLflow is not Ballast's")
        return entry

    def entries(self, name: str, run_id: str | None = None) -> list[Any]:
        """MLflow's entries of Ballast's versions of a model, the oldest first; those of one run where it is given."""
        labels.check_known_name(name)
        wanted = f"name = '{name}'" + (f" AND tags.`{labels.RUN_ID}` = '{run_id}'" if run_id else "")
        found = _pages(self.client.search_model_versions, wanted)
        return sorted((entry for entry in found if labels.RUN_ID in entry.tags), key=lambda entry: int(entry.version))

    def models(self) -> list[Any]:
        """MLflow's entries of Ballast's models, by name."""
        found = _pages(self.client.search_registered_models, f"tags.`{labels.MANAGED}` = 'true'")
        return sorted(found, key=lambda entry: str(entry.name))

    def model(self, name: str) -> tuple[dict[str, str], dict[str, str]]:
        """Aliases (with the version of each) and tags of a model."""
        labels.check_known_name(name)
        held = self.client.get_registered_model(name)
        return {alias: str(version) for alias, version in held.aliases.items()}, dict(held.tags)

    def point(self, name: str, alias: str, version: str) -> None:
        """Let an alias point at a version; of two processes that do so at once the later write stands."""
        _again_if_refused(lambda: self.client.set_registered_model_alias(name, alias, version))

    def tag(self, name: str, key: str, value: str) -> None:
        """Set a tag of a model; of two processes that do so at once the later write stands."""
        _again_if_refused(lambda: self.client.set_registered_model_tag(name, key, value))

    def load(self, entry: Any) -> ModelVersion:
        """The whole version of an entry, held to its digest."""
        from mlflow.artifacts import download_artifacts

        with tempfile.TemporaryDirectory() as scratch:
            address = f"{entry.source.rstrip('/')}/artifacts/{DOCUMENT}"
            path = download_artifacts(artifact_uri=address, dst_path=scratch, tracking_uri=self._uri)
            text = Path(path).read_text(encoding="utf-8")
        where = f"version {entry.version} of model {entry.name}"
        version = read_document(text, entry.tags.get(labels.DOCUMENT_SHA256, ""), where)
        return version.model_copy(update={"version": str(entry.version)})

    def load_report(self, version: ModelVersion) -> ModelReport | None:
        """The report that was logged with a version; None where there is none that this release can read."""
        run_id = self.entry(version.name, version.version).run_id
        if all(file.path != REPORT for file in self.client.list_artifacts(run_id)):
            return None
        with tempfile.TemporaryDirectory() as scratch:
            text = Path(self.client.download_artifacts(run_id, REPORT, scratch)).read_text(encoding="utf-8")
        return read_report(text, version)

    def load_certificate(self, version: ModelVersion) -> bytes | None:
        """The certificate file that was logged with a version; None where there is none."""
        run_id = self.entry(version.name, version.version).run_id
        if all(file.path != CERTIFICATE for file in self.client.list_artifacts(run_id)):
            return None
        with tempfile.TemporaryDirectory() as scratch:
            return Path(self.client.download_artifacts(run_id, CERTIFICATE, scratch)).read_bytes()

    def forget(self, entry: Any) -> list[str]:
        """Delete a version, its logged model, its run and their files; what only MLflow's own host can delete."""
        run = self.client.get_run(entry.run_id)
        places, model_id = [run.info.artifact_uri, entry.source], str(getattr(entry, "model_id", None) or "")
        for alias, number in self.model(entry.name)[0].items():
            if number == str(entry.version):
                self.client.delete_registered_model_alias(entry.name, alias)
        # The version goes last: what is found again after a crash is found by it.
        left = [] if all([_without_files(place) for place in places]) else [f"files under {run.info.artifact_uri}"]
        if not self._purged(entry.run_id, model_id):
            left.append(f"run {entry.run_id} is marked as deleted; `mlflow gc` on MLflow's own host takes it away")
        for tag in entry.tags:
            self.client.delete_model_version_tag(entry.name, entry.version, tag)
        self.client.delete_model_version(entry.name, entry.version)
        return left

    def _purged(self, run_id: str, model_id: str) -> bool:
        """Whether run and logged model could be deleted for good: MLflow's client alone can but mark them."""
        from mlflow.tracking._tracking_service.utils import _get_store

        store = _get_store(self._uri)
        hard = hasattr(store, "_hard_delete_run") and hasattr(store, "_hard_delete_logged_model")
        if model_id:
            self.client.delete_logged_model(model_id)
        self.client.delete_run(run_id)
        if hard:
            if model_id:
                store._hard_delete_logged_model(model_id)  # noqa: SLF001 - what `mlflow gc` calls
            store._hard_delete_run(run_id)  # noqa: SLF001
        return hard

    # ---- runs

    def open_run(self, version: ModelVersion) -> str:
        """MLflow run of a Ballast run: the one of its start or of a broken registration, or a new one."""
        from mlflow.entities import RunTag

        tags = labels.run_tags(version)
        mlflow_run = self._run_of(version.name, version.run_id, int(version.created_at.timestamp() * 1000), tags)
        self.client.log_batch(mlflow_run, tags=[RunTag(key, value) for key, value in tags.items()])
        return mlflow_run

    def start_run(self, run: Run, asset_type: AssetType) -> str:
        """MLflow run of a Ballast run that begins, or goes on."""
        started = int(run.created_at.timestamp() * 1000)
        mlflow_run = self._run_of(run.plan.name, run.run_id, started, labels.started_tags(run, asset_type))
        self.client.set_terminated(mlflow_run, "RUNNING")
        return mlflow_run

    def end_run(self, run: Run, status: str) -> None:
        """Say how a run without a version ended, where MLflow has it."""
        experiment = self.client.get_experiment_by_name(_experiment_title(run.plan.name))
        for found in self._runs_of(experiment.experiment_id, run.run_id) if experiment is not None else ():
            self.client.set_terminated(found.info.run_id, status)

    def _run_of(self, model: str, run_id: str, started: int, tags: Mapping[str, str]) -> str:
        experiment = self._experiment(model)
        found = self._runs_of(experiment, run_id)
        if found:
            return str(found[0].info.run_id)
        title = f"{model}-{run_id[:8]}"
        return str(self.client.create_run(experiment, started, dict(tags), title).info.run_id)

    def _runs_of(self, experiment: str, run_id: str) -> Sequence[Any]:
        found: Sequence[Any] = self.client.search_runs(
            [experiment], f"tags.`{labels.RUN_ID}` = '{run_id}'", max_results=1
        )
        return found

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

        self.client.log_batch(mlflow_run, params=[Param(key, value) for key, value in parameters(version).items()])
        self.client.log_inputs(mlflow_run, datasets=dataset_inputs(version, report))
        metrics = [Metric(*row) for row in metric_rows(version, rounds)]
        for start in range(0, len(metrics), BATCH):
            self.client.log_batch(mlflow_run, metrics=metrics[start : start + BATCH])
        with tempfile.TemporaryDirectory() as scratch:
            write_report_files(Path(scratch), report, attachments)
            self.client.log_artifacts(mlflow_run, scratch)

    def create_version(self, mlflow_run: str, version: ModelVersion) -> Any:
        """Log the model of a version and enter it in the registry, labelled, in one write."""
        from mlflow.entities import LoggedModelOutput, Metric

        text = document_text(version)
        experiment = self.client.get_run(mlflow_run).info.experiment_id
        logged = self.client.create_logged_model(experiment, version.name, source_run_id=mlflow_run)
        identity = {
            "artifact_path": logged.artifact_location,
            "model_uuid": logged.model_id,
            "model_id": logged.model_id,
            "run_id": mlflow_run,
        }
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "model"
            write_model(folder, Path(scratch), version, text, identity)
            self.client.log_model_artifacts(logged.model_id, str(folder))
        self.client.finalize_logged_model(logged.model_id, "READY")
        # With the model's id as well as the run's: pages that compare models read these, pages of runs the others.
        self.client.log_model_params(logged.model_id, parameters(version))
        at = int(version.created_at.timestamp() * 1000)
        self.client.log_batch(mlflow_run, metrics=[
            Metric(name, value, at, version.rounds, model_id=logged.model_id, run_id=mlflow_run)
            for name, value in final_metrics(version).items()
        ])
        self.client.log_outputs(mlflow_run, [LoggedModelOutput(logged.model_id, step=version.rounds)])
        # The address of the files, not models:/<id>: MLflow would look that id up in its global store, not in ours.
        return self.client.create_model_version(
            version.name,
            source=logged.artifact_location,
            run_id=mlflow_run,
            tags=labels.version_tags(version, sha256(text)),
            description=version_description(version),
            model_id=logged.model_id,
        )

    def _experiment(self, name: str) -> str:
        title = _experiment_title(name)
        location = f"{self._root.rstrip('/')}/{name}" if self._root else None
        _unless_there(lambda: self.client.create_experiment(title, artifact_location=location))
        held = self.client.get_experiment_by_name(title)
        if held is None or held.lifecycle_stage != "active":
            raise ConflictError(f"the experiment {title} was deleted in MLflow: restore it there")
        return str(held.experiment_id)


def _without_files(place: str) -> bool:
    """Delete a folder of artifacts; whether it is gone."""
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    try:
        get_artifact_repository(place).delete_artifacts()
    except (NotImplementedError, OSError) as error:
        return isinstance(error, FileNotFoundError)
    return True


def _experiment_title(model: str) -> str:
    return f"ballast-{model}"


def _unless_there(create: Callable[[], object]) -> None:
    from mlflow.exceptions import MlflowException

    try:
        create()
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise


def _again_if_refused(write: Callable[[], object]) -> None:
    """MLflow looks for a row and then inserts it: of two at once one is refused, and finds it the next time."""
    from mlflow.exceptions import MlflowException

    try:
        write()
    except MlflowException as error:
        if error.error_code != "BAD_REQUEST":
            raise
        write()


def _pages(search: Callable[..., Any], wanted: str) -> list[Any]:
    found: list[Any] = []
    token = None
    while True:
        page = search(filter_string=wanted, page_token=token)
        found.extend(page)
        token = page.token
        if not token:
            return found
