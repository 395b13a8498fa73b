"""What the registry asks of MLflow about models and versions. Its global state stays untouched."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from services.contracts.errors import ConflictError, NotFoundError, UnavailableError
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.report import ModelReport
from services.registry import labels
from services.registry.descriptions import model_description, version_description
from services.registry.mlflow_connection import MlflowConnection, again_if_refused, if_there, page_by_page, unless_there
from services.registry.mlflow_runs import MlflowRuns
from services.registry.model_files import DOCUMENT, document_text, read_document, sha256, write_model
from services.registry.run_log import REPORT, final_metrics, parameters, read_report
from services.verification.version import CERTIFICATE


class MlflowStore(MlflowConnection):
    """Models and versions of one MLflow, by its address, and its :attr:`runs`; errors are MLflow's own, or as said."""

    def __init__(self, tracking_uri: str, artifact_root: str | None) -> None:
        super().__init__(tracking_uri)
        self.runs = MlflowRuns(self, artifact_root)

    def ensure_model(self, version: ModelVersion) -> None:
        """Create the model of a version where it is missing; ``ConflictError`` where the name is somebody else's."""
        tags = {labels.MANAGED: "true", labels.ASSET_TYPE: version.asset_type.name}
        about = model_description(version.asset_type)
        unless_there(lambda: self.client.create_registered_model(version.name, tags, about))
        held = self.client.get_registered_model(version.name).tags
        if held.get(labels.MANAGED) != "true":
            raise ConflictError(f"MLflow has a model {version.name} that is not Ballast's: give this one another name")
        kind = labels.asset_type_of(version.name, held)
        if kind != version.asset_type.name:
            raise ConflictError(f"model {version.name} is for asset type {kind}, not {version.asset_type.name}")

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
            raise NotFoundError(missing + ("" if number else self._instead(name, wanted))) from None
        if labels.RUN_ID not in entry.tags:
            raise NotFoundError(f"version {entry.version} of model {name} in MLflow is not Ballast's")
        return entry

    def entry_if_there(self, name: str, number: str) -> Any | None:
        """MLflow's entry of a version by its number; None where there is none of Ballast's."""
        try:
            return self.entry(name, number)
        except NotFoundError:
            return None

    def _instead(self, name: str, alias: str) -> str:
        """What a model without a champion has to offer; nothing where it is not there either."""
        from mlflow.exceptions import MlflowException

        if alias != labels.CHAMPION:
            return ""
        try:
            found = self.model(name)[0].get(labels.CHALLENGER)
        except (MlflowException, NotFoundError):
            return ""
        return "" if found is None else f"; its challenger, version {found}, answers to the alias {labels.CHALLENGER!r}"

    def entries(self, name: str, run_id: str | None = None) -> list[Any]:
        """MLflow's entries of Ballast's versions of a model, the oldest first; those of one run where it is given."""
        labels.check_known_name(name)
        wanted = f"name = '{name}'" + (f" AND tags.`{labels.RUN_ID}` = '{run_id}'" if run_id else "")
        found = page_by_page(self.client.search_model_versions, wanted)
        return sorted((entry for entry in found if labels.RUN_ID in entry.tags), key=lambda entry: int(entry.version))

    def newest_first(self, name: str, together: int) -> Iterator[Any]:
        """MLflow's entries of Ballast's versions of a model, the newest first; so many are asked for together.

        Between two pages a version may be registered, and one is then given twice.
        """
        labels.check_known_name(name)
        search = partial(self.client.search_model_versions, max_results=together, order_by=["version_number DESC"])
        return (entry for entry in page_by_page(search, f"name = '{name}'") if labels.RUN_ID in entry.tags)

    def models(self) -> list[Any]:
        """MLflow's entries of Ballast's models, by name."""
        found = page_by_page(self.client.search_registered_models, f"tags.`{labels.MANAGED}` = 'true'")
        return sorted(found, key=lambda entry: str(entry.name))

    def model(self, name: str) -> tuple[dict[str, str], dict[str, str]]:
        """Aliases (with the version of each) and tags of a model; ``NotFoundError`` where it is not there."""
        from mlflow.exceptions import MlflowException

        labels.check_known_name(name)
        try:
            held = self.client.get_registered_model(name)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            raise NotFoundError(f"no model {name!r} in the registry") from None
        return {alias: str(version) for alias, version in held.aliases.items()}, dict(held.tags)

    def point(self, name: str, alias: str, version: str) -> None:
        """Let an alias point at a version; of two processes that do so at once the later write stands."""
        again_if_refused(lambda: self.client.set_registered_model_alias(name, alias, version))

    def tag(self, name: str, key: str, value: str) -> None:
        """Set a tag of a model; of two processes that do so at once the later write stands."""
        again_if_refused(lambda: self.client.set_registered_model_tag(name, key, value))

    def load(self, entry: Any) -> ModelVersion:
        """The whole version of an entry, held to its digest."""
        from mlflow.artifacts import download_artifacts
        from mlflow.exceptions import MlflowException

        where = f"version {entry.version} of model {entry.name}"
        with tempfile.TemporaryDirectory() as scratch:
            address = f"{entry.source.rstrip('/')}/artifacts/{DOCUMENT}"
            try:
                path = download_artifacts(artifact_uri=address, dst_path=scratch, tracking_uri=self._uri)
            except MlflowException as error:  # which says of a file that is gone that there is no such version
                raise UnavailableError(f"the files of {where} are gone, or their store does not answer") from error
            text = _text(Path(path))
        version = read_document(text, entry.tags.get(labels.DOCUMENT_SHA256, ""), where)
        return version.model_copy(update={"version": str(entry.version)})

    def load_report(self, version: ModelVersion) -> ModelReport | None:
        """The report that was logged with a version; None where there is none that this release can read."""
        run_id = self.entry(version.name, version.version).run_id
        if all(file.path != REPORT for file in self.client.list_artifacts(run_id)):
            return None
        with tempfile.TemporaryDirectory() as scratch:
            text = _text(Path(self.client.download_artifacts(run_id, REPORT, scratch)))
        return read_report(text, version)

    def load_certificate(self, version: ModelVersion) -> bytes | None:
        """The certificate file that was logged with a version; None where there is none."""
        run_id = self.entry(version.name, version.version).run_id
        if all(file.path != CERTIFICATE for file in self.client.list_artifacts(run_id)):
            return None
        with tempfile.TemporaryDirectory() as scratch:
            return Path(self.client.download_artifacts(run_id, CERTIFICATE, scratch)).read_bytes()

    def forget(self, entry: Any) -> list[str]:
        """Delete a version, its logged model, its run and their files; what only MLflow's own host can delete.

        Done once more after a crash in between it deletes what is left.
        """
        run = if_there(lambda: self.client.get_run(entry.run_id))
        places = [entry.source] if run is None else [run.info.artifact_uri, entry.source]
        for alias, number in self.model(entry.name)[0].items():
            if number == str(entry.version):
                self.client.delete_registered_model_alias(entry.name, alias)
        # The version goes last: what is found again after a crash is found by it.
        left = [] if all([_without_files(place) for place in places]) else [f"files under {places[0]}"]
        if not self._purged(entry.run_id, _logged_model(entry)):
            left.append(f"run {entry.run_id} is marked as deleted; `mlflow gc` on MLflow's own host takes it away")
        for tag in sorted(entry.tags, key=labels.RUN_ID.__eq__):  # the one that it is found by goes last
            self.client.delete_model_version_tag(entry.name, entry.version, tag)
        self.client.delete_model_version(entry.name, entry.version)
        return left

    def _purged(self, run_id: str, model_id: str) -> bool:
        """Whether run and logged model could be deleted for good: MLflow's client alone can but mark them."""
        from mlflow.tracking._tracking_service.utils import _get_store

        store = _get_store(self._uri)
        hard = hasattr(store, "_hard_delete_run") and hasattr(store, "_hard_delete_logged_model")
        if_there(lambda: self.client.delete_logged_model(model_id))
        run = if_there(lambda: self.client.get_run(run_id))
        if run is not None and run.info.lifecycle_stage == "active":
            self.client.delete_run(run_id)
        if hard:
            if_there(lambda: store._hard_delete_logged_model(model_id))  # noqa: SLF001 - what `mlflow gc` calls
            if run is not None:
                store._hard_delete_run(run_id)  # noqa: SLF001
        return hard

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


def _text(file: Path) -> str:
    """Text of a file; what is no UTF-8 in it stands as another character, so that no digest of it is the right one."""
    return file.read_text(encoding="utf-8", errors="replace")


def _logged_model(entry: Any) -> str:
    """Id of the logged model whose files are a version's: their folder. MLflow's own store names it in no version."""
    return str(getattr(entry, "model_id", None) or entry.source.rstrip("/").rsplit("/", 2)[-2])


def _without_files(place: str) -> bool:
    """Delete a folder of artifacts; whether it is gone."""
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    try:
        get_artifact_repository(place).delete_artifacts()
    except (NotImplementedError, OSError) as error:
        return isinstance(error, FileNotFoundError)
    return True
