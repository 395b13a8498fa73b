"""The registry: model versions in MLflow, by name, number and alias."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from services.contracts.errors import ConflictError, NotFoundError
from services.contracts.model_version import ModelVersion
from services.contracts.plan import Gates
from services.contracts.registered import ModelSummary, VersionSummary
from services.contracts.run import RoundRecord
from services.registry import history, labels
from services.registry.gates import check_gates, failed_gates
from services.registry.guard import mlflow_errors
from services.registry.model_files import DOCUMENT, document_text, read_document, sha256, write_model
from services.registry.quiet import quiet_mlflow
from services.registry.run_log import chunks, metric_rows, parameters, write_report_files


class ModelRegistry:
    """Model versions in MLflow.

    ``tracking_uri``: ``sqlite:///...``, ``postgresql://...`` or the ``http`` address of an MLflow server; it holds the
    registry too. ``artifact_root``: folder or URI under which a model's files are put; None leaves the choice to the
    server. MLflow is imported (2.5 s) and the database made (4 s, once) at the first call, or at :meth:`prepare`. Safe
    to use from many threads.
    """

    def __init__(self, tracking_uri: str, artifact_root: str | Path | None = None) -> None:
        self._uri = tracking_uri
        self._root = artifact_root.resolve().as_uri() if isinstance(artifact_root, Path) else artifact_root
        self._writing = threading.RLock()
        self._connecting = threading.Lock()

    def prepare(self) -> None:
        """Import MLflow and open the store, making missing tables; ``UnavailableError`` when that cannot be."""
        client = self._client
        with mlflow_errors("open its store"):
            client.search_registered_models(max_results=1)

    # ---- writing

    def register(
        self,
        version: ModelVersion,
        rounds: Sequence[RoundRecord],
        report: Mapping[str, Any],
        attachments: Mapping[str, str] | None = None,
    ) -> ModelVersion:
        """Put a trained model into the registry and make it challenger.

        The same Ballast run registered again gives the version that it has already, so that a flow which died after
        this call and before it wrote the number down goes on. ``report`` becomes ``report.json`` of the MLflow run,
        ``attachments`` (file name, text) stand beside it.

        Raises
        ------
        InvalidInputError
            For a reserved name.
        ConflictError
            When the name belongs to a model that Ballast did not make, or the version is one for another asset type.
        """
        labels.check_new_name(version.name)
        name = version.name
        client = self._client
        with self._writing, mlflow_errors(f"register run {version.run_id} as model {name}"):
            self._ensure_model(version)
            entry = self._entry_of_run(name, version.run_id)
            if entry is None:
                mlflow_run = self._open_run(version)
                self._log_run(mlflow_run, version, rounds, report, attachments or {})
                created = self._create_version(mlflow_run, version)
                entry = self._entry_of_run(name, version.run_id) or created
                if entry.version != created.version:  # another process registered the same run at the same time
                    client.delete_model_version(name, created.version)
            client.set_terminated(entry.run_id, "FINISHED")
            newest = max(int(other.version) for other in self._entries(name))
            client.set_registered_model_alias(name, labels.CHALLENGER, str(newest))
            return self._load(entry)

    def promote(
        self, name: str, version: str, *, gates: Gates | None = None, actor: str = "", reason: str = ""
    ) -> ModelVersion:
        """Make a version champion; one that is champion already stays it.

        The alias changes in one write: a reader sees the old champion or the new one. Of two promotions at the same
        time from two processes the later write wins, and the line of champions stays good.

        Raises
        ------
        NotFoundError
            When there is no such version.
        ConflictError
            When ``gates`` are given and one does not hold; nothing was changed.
        """
        with self._writing, mlflow_errors(f"promote version {version} of model {name}"):
            entry = self._entry(name, version)
            promoted = self._load(entry)
            failed = failed_gates(check_gates(gates, promoted)) if gates else ""
            if failed:
                raise ConflictError(f"version {entry.version} of model {name} is not promoted: {failed}")
            line = self._line(name)
            number = str(entry.version)
            if line and line[-1] == number and self._aliases(name).get(labels.CHAMPION) == number:
                return promoted
            after = history.promoted(line, number)
            self._client.set_registered_model_tag(name, labels.CHAMPIONS, history.render(after))
            self._set_champion(name, after)
            self._note(name, number, "promoted", actor, reason)
            return promoted

    def rollback(self, name: str, *, actor: str = "", reason: str = "") -> ModelVersion:
        """Make the champion before this one champion again, and so on back through the line of champions.

        Raises
        ------
        NotFoundError
            When there is no such model.
        ConflictError
            When it has no champion, or none before this one.
        """
        with self._writing, mlflow_errors(f"roll back model {name}"):
            if self._aliases(name).get(labels.CHAMPION) is None:
                raise ConflictError(f"model {name} has no champion to roll back from")
            existing = frozenset(str(entry.version) for entry in self._entries(name))
            after = history.rolled_back(self._line(name), existing)
            if not after:
                raise ConflictError(f"model {name} has no champion before the present one; promote a version by number")
            restored = self._load(self._entry(name, after[-1]))
            self._set_champion(name, after)
            self._client.set_registered_model_tag(name, labels.CHAMPIONS, history.render(after))
            self._note(name, after[-1], "rolled_back_to", actor, reason)
            return restored

    # ---- reading

    def resolve(self, name: str, alias_or_version: str) -> str:
        """Version number behind an alias or a number; ``NotFoundError`` when there is none. One query."""
        with mlflow_errors(f"read model {name}"):
            return str(self._entry(name, alias_or_version).version)

    def get(self, name: str, alias_or_version: str) -> ModelVersion:
        """The whole version, read from its document and held to its digest.

        Raises
        ------
        NotFoundError
            When there is no such model, version or alias.
        ConflictError
            When the document is not the one that was registered.
        """
        with mlflow_errors(f"read model {name}"):
            return self._load(self._entry(name, alias_or_version))

    def champion(self, name: str) -> ModelVersion:
        """The champion; ``NotFoundError`` when none was promoted yet."""
        return self.get(name, labels.CHAMPION)

    def versions(self, name: str) -> tuple[VersionSummary, ...]:
        """Versions of a model by their labels, the newest first."""
        with mlflow_errors(f"list versions of model {name}"):
            aliases = self._aliases(name)
            found = [labels.summary(entry, aliases) for entry in self._entries(name)]
        return tuple(sorted(found, key=lambda item: -int(item.version)))

    def models(self) -> tuple[ModelSummary, ...]:
        """Models that Ballast made, by name."""
        with mlflow_errors("list models"):
            entries = self._pages(self._client.search_registered_models, f"tags.`{labels.MANAGED}` = 'true'")
            return tuple(
                ModelSummary(
                    name=entry.name,
                    asset_type=entry.tags["ballast.asset_type"],
                    champion=_text(entry.aliases.get(labels.CHAMPION)),
                    challenger=_text(entry.aliases.get(labels.CHALLENGER)),
                    previous_champion=_text(entry.aliases.get(labels.PREVIOUS)),
                )
                for entry in sorted(entries, key=lambda entry: str(entry.name))
            )

    def mlflow_run_id(self, name: str, version: str) -> str:
        """Id of the MLflow run that a version came from; takes an alias too."""
        with mlflow_errors(f"read model {name}"):
            return str(self._entry(name, version).run_id)

    # ---- MLflow

    @cached_property
    def _mlflow_client(self) -> Any:
        quiet_mlflow()
        from mlflow import MlflowClient

        with mlflow_errors("open its store"):
            return MlflowClient(tracking_uri=self._uri, registry_uri=self._uri)

    @property
    def _client(self) -> Any:
        with self._connecting:
            return self._mlflow_client

    def _ensure_model(self, version: ModelVersion) -> None:
        from mlflow.exceptions import MlflowException

        tags = {labels.MANAGED: "true", "ballast.asset_type": version.asset_type.name}
        about = version.asset_type.description or f"Fault diagnosis of {version.asset_type.name}"
        try:
            self._client.create_registered_model(version.name, tags, about)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        held = self._client.get_registered_model(version.name).tags
        if held.get(labels.MANAGED) != "true":
            raise ConflictError(f"MLflow has a model {version.name} that is not Ballast's: give this one another name")
        if held["ballast.asset_type"] != version.asset_type.name:
            raise ConflictError(
                f"model {version.name} is for asset type {held['ballast.asset_type']}, not {version.asset_type.name}"
            )

    def _open_run(self, version: ModelVersion) -> str:
        """MLflow run of a Ballast run: the one that a broken registration left, or a new one."""
        experiment = self._experiment(version.name)
        found = self._client.search_runs([experiment], f"tags.`{labels.RUN_ID}` = '{version.run_id}'", max_results=1)
        if found:
            return str(found[0].info.run_id)
        tags = {
            labels.RUN_ID: version.run_id,
            "ballast.plan": version.plan,
            "ballast.method": version.method,
            "ballast.gap": repr(version.certified_gap),
            "ballast.worst_case_risk": repr(version.worst_case_risk),
            "ballast.fingerprint": version.asset_type.fingerprint,
        }
        started = int(version.created_at.timestamp() * 1000)
        name = f"{version.plan}-{version.run_id[:8]}"
        return str(self._client.create_run(experiment, started, tags, name).info.run_id)

    def _experiment(self, name: str) -> str:
        from mlflow.exceptions import MlflowException

        title = f"ballast-{name}"
        location = f"{self._root.rstrip('/')}/{name}" if self._root else None
        try:
            return str(self._client.create_experiment(title, artifact_location=location))
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        held = self._client.get_experiment_by_name(title)
        if held is None or held.lifecycle_stage != "active":
            raise ConflictError(f"the experiment {title} was deleted in MLflow: restore it there")
        return str(held.experiment_id)

    def _log_run(
        self,
        mlflow_run: str,
        version: ModelVersion,
        rounds: Sequence[RoundRecord],
        report: Mapping[str, Any],
        attachments: Mapping[str, str],
    ) -> None:
        from mlflow.entities import Metric, Param

        params = [Param(key, value) for key, value in parameters(version).items()]
        self._client.log_batch(mlflow_run, params=params)
        metrics = [Metric(*row) for row in metric_rows(version, rounds)]
        for batch in chunks(metrics):
            self._client.log_batch(mlflow_run, metrics=batch)
        with tempfile.TemporaryDirectory() as scratch:
            write_report_files(Path(scratch), report, attachments)
            self._client.log_artifacts(mlflow_run, scratch)

    def _create_version(self, mlflow_run: str, version: ModelVersion) -> Any:
        from mlflow.entities import LoggedModelOutput

        text = document_text(version)
        experiment = self._client.get_run(mlflow_run).info.experiment_id
        logged = self._client.create_logged_model(experiment, version.name, source_run_id=mlflow_run)
        identity = {
            "artifact_path": logged.artifact_location,
            "model_uuid": logged.model_id,
            "model_id": logged.model_id,
            "run_id": mlflow_run,
        }
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "model"
            write_model(folder, Path(scratch), version, text, identity)
            self._client.log_model_artifacts(logged.model_id, str(folder))
        self._client.finalize_logged_model(logged.model_id, "READY")
        self._client.log_outputs(mlflow_run, [LoggedModelOutput(logged.model_id, step=version.rounds)])
        # The address of the files, not models:/<id>: MLflow would look that id up in its global store, not in ours.
        return self._client.create_model_version(
            version.name,
            source=logged.artifact_location,
            run_id=mlflow_run,
            tags=labels.version_tags(version, sha256(text)),
            description=f"Certified gap {version.certified_gap:.3g} after {version.rounds} rounds of {version.method}",
            model_id=logged.model_id,
        )

    def _entry(self, name: str, alias_or_version: str) -> Any:
        from mlflow.exceptions import MlflowException

        labels.check_known_name(name)
        wanted = str(alias_or_version)
        number = wanted.isascii() and wanted.isdigit()
        try:
            if number:
                entry = self._client.get_model_version(name, str(int(wanted)))
            else:
                entry = self._client.get_model_version_by_alias(name, wanted)
        except MlflowException as error:
            if error.error_code not in {"RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"}:
                raise
            what = "version" if number else "alias"
            raise NotFoundError(f"model {name} with {what} {wanted[:60]} is not in the registry") from None
        if labels.RUN_ID not in entry.tags:
            raise NotFoundError(f"model {name} version {entry.version} in MLflow is not Ballast's")
        return entry

    def _entries(self, name: str) -> list[Any]:
        labels.check_known_name(name)
        found = self._pages(self._client.search_model_versions, f"name = '{name}'")
        return [entry for entry in found if labels.RUN_ID in entry.tags]

    def _entry_of_run(self, name: str, run_id: str) -> Any | None:
        found = [entry for entry in self._entries(name) if entry.tags[labels.RUN_ID] == run_id]
        return min(found, key=lambda entry: int(entry.version), default=None)

    def _pages(self, search: Any, wanted: str) -> list[Any]:
        found: list[Any] = []
        token = None
        while True:
            page = search(filter_string=wanted, page_token=token)
            found.extend(page)
            token = page.token
            if not token:
                return found

    def _load(self, entry: Any) -> ModelVersion:
        from mlflow.artifacts import download_artifacts

        with tempfile.TemporaryDirectory() as scratch:
            address = f"{entry.source.rstrip('/')}/artifacts/{DOCUMENT}"
            path = download_artifacts(artifact_uri=address, dst_path=scratch, tracking_uri=self._uri)
            text = Path(path).read_text(encoding="utf-8")
        where = f"version {entry.version} of model {entry.name}"
        version = read_document(text, entry.tags.get(labels.DOCUMENT_SHA256, ""), where)
        return version.model_copy(update={"version": str(entry.version)})

    def _aliases(self, name: str) -> dict[str, str]:
        labels.check_known_name(name)
        held = self._client.get_registered_model(name)
        return {alias: str(version) for alias, version in held.aliases.items()}

    def _line(self, name: str) -> tuple[str, ...]:
        held = self._client.get_registered_model(name)
        champion = held.aliases.get(labels.CHAMPION)
        return history.line_up_to(history.parse(held.tags.get(labels.CHAMPIONS)), _text(champion))

    def _set_champion(self, name: str, line: tuple[str, ...]) -> None:
        self._client.set_registered_model_alias(name, labels.CHAMPION, line[-1])
        before = history.previous(line)
        if before is not None:
            self._client.set_registered_model_alias(name, labels.PREVIOUS, before)
        elif labels.PREVIOUS in self._aliases(name):
            self._client.delete_registered_model_alias(name, labels.PREVIOUS)

    def _note(self, name: str, version: str, what: str, actor: str, reason: str) -> None:
        for key, value in ((f"ballast.{what}_by", actor), (f"ballast.{what}_because", reason)):
            if value:
                self._client.set_model_version_tag(name, version, key, value)


def _text(version: object) -> str | None:
    return None if version is None else str(version)
