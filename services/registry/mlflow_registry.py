"""The registry: model versions in MLflow, by name, number and alias."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Container, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from services.contracts.errors import ConflictError, NotFoundError
from services.contracts.history.run import RoundRecord, Run
from services.contracts.machines.asset_type import AssetType
from services.contracts.plans.gates import Gates
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.report import ModelReport
from services.contracts.versions.version_facts import ModelSummary, VersionSummary
from services.registry import history, labels
from services.registry.error_translation import mlflow_errors
from services.registry.gates import check_gates, failed_gates
from services.registry.mlflow_store import MlflowStore
from services.registry.standing_versions import StandingVersions

ALL_TOGETHER: Final = 10_000
"""Versions that are asked for at once where all are wanted: 27 years of nights."""


class ModelRegistry:
    """Model versions in MLflow.

    ``tracking_uri``: ``sqlite:///...``, ``postgresql://...`` or the ``http`` address of an MLflow server; it holds the
    registry too. ``artifact_root``: folder or URI under which a model's files are put; None leaves the choice to the
    server. MLflow is imported (2.5 s) and the database made (4 s, once) at the first call, or at :meth:`prepare`. Safe
    to use from many threads.

    Every method raises ``UnavailableError`` when the database, the server or the artifact store does not answer.
    """

    def __init__(self, tracking_uri: str, artifact_root: str | Path | None = None) -> None:
        # Without a named driver SQLAlchemy would look for psycopg2.
        uri = re.sub(r"^postgres(ql)?://", "postgresql+psycopg://", tracking_uri)
        root = str(artifact_root or "")
        if root and "://" not in root:
            root = Path(root).resolve().as_uri()
        self._store = MlflowStore(uri, root or None)
        self._writing = threading.RLock()

    def prepare(self) -> None:
        """Import MLflow and open the store, making its tables where they are missing."""
        _ = self._store.client

    def start_run(self, run: Run, asset_type: AssetType) -> str:
        """Show in MLflow that a run has begun; id of its MLflow run, which :meth:`register` then completes."""
        labels.check_new_name(run.plan.name)
        with self._writing, mlflow_errors(f"note the start of run {run.run_id}"):
            return self._store.runs.start_run(run, asset_type)

    def end_run(self, run: Run, status: str) -> None:
        """Show in MLflow that a run ended, and how: completed, cancelled, or failed."""
        with self._writing, mlflow_errors(f"note the end of run {run.run_id}"):
            self._store.runs.end_run(run, labels.ENDINGS[status])

    def running(self) -> list[str]:
        """Ids of the Ballast runs that stand as running in MLflow."""
        with mlflow_errors("list the runs that stand as running"):
            return self._store.runs.running()

    def register(
        self,
        version: ModelVersion,
        rounds: Sequence[RoundRecord],
        report: ModelReport | Mapping[str, Any],
        attachments: Mapping[str, str | bytes] | None = None,
    ) -> ModelVersion:
        """Put a trained model into the registry and make it challenger; gives it back with its number.

        The same Ballast run registered again gives the version that it has already, so that a flow which died after
        this call and before it wrote the number down goes on. ``report`` becomes ``report.json`` of the MLflow run,
        ``attachments`` (file name, text or bytes) stand beside it.

        Raises
        ------
        InvalidInputError
            For a reserved name, or an attachment's name that is not a plain file name.
        ConflictError
            When the name belongs to a model of another asset type or to one that Ballast did not make.
        """
        labels.check_new_name(version.name)
        name, client = version.name, self._store.client
        with self._writing, mlflow_errors(f"register run {version.run_id} as model {name}"):
            self._store.ensure_model(version)
            known = self._store.entries(name, version.run_id)
            if not known:
                mlflow_run = self._store.runs.open_run(version)
                self._store.runs.log_run(mlflow_run, version, rounds, report, attachments or {})
                created = self._store.create_version(mlflow_run, version)
                known = self._store.entries(name, version.run_id)
                if str(known[0].version) != str(created.version):
                    # Another process registered the same run at the same time: the lower number is the version.
                    client.delete_model_version(name, str(created.version))
            entry = known[0]
            client.set_terminated(entry.run_id, "FINISHED")
            newest = next(self._store.newest_first(name, 10), entry)
            self._store.point(name, labels.CHALLENGER, str(newest.version))
            return self._store.load(entry)

    def promote(
        self, name: str, version: str, *, gates: Gates | None = None, actor: str = "", reason: str = "",
        without: Collection[str] = (),
    ) -> ModelVersion:
        """Make a version (a number or an alias) champion; one that is champion already stays it.

        The alias changes in one write: a reader sees the old champion or the new one. Of two promotions at the same
        time from two processes the later write wins, and the line of champions stays good. ``without``: versions that
        are being deleted, and count as gone.

        Raises
        ------
        NotFoundError
            When there is no such version.
        ConflictError
            When ``gates`` are given and one does not hold; nothing was changed.
        """
        with self._writing, mlflow_errors(f"promote version {version} of model {name}"):
            entry = self._store.entry(name, version)
            number = str(entry.version)
            if number in without:
                raise NotFoundError(f"version {number} of model {name} is deleted with a plant that left")
            promoted = self._store.load(entry)
            failed = failed_gates(check_gates(gates, promoted)) if gates else ""
            if failed:
                raise ConflictError(f"version {number} of model {name} is not promoted: {failed}")
            aliases, tags = self._store.model(name)
            if aliases.get(labels.CHAMPION) == number:
                return promoted
            line = history.line_up_to(history.parse(tags.get(labels.CHAMPIONS)), aliases.get(labels.CHAMPION))
            after = history.promoted(line, number)
            self._store.tag(name, labels.CHAMPIONS, history.render(after))
            self._set_champion(name, after, aliases, StandingVersions(self._store, name, without))
            self._note(name, number, "promoted", actor, reason)
            return promoted

    def rollback(
        self, name: str, *, actor: str = "", reason: str = "", without: Collection[str] = ()
    ) -> ModelVersion:
        """Make the champion before this one champion again, and so on back through the line of champions.

        ``without``: versions that are being deleted, and count as gone.

        Raises
        ------
        NotFoundError
            When there is no such model.
        ConflictError
            When it has no champion, or none before this one.
        """
        with self._writing, mlflow_errors(f"roll back model {name}"):
            aliases, tags = self._store.model(name)
            champion = aliases.get(labels.CHAMPION)
            if champion is None:
                raise ConflictError(f"model {name} has no champion to roll back from")
            existing = StandingVersions(self._store, name, without)
            line = history.line_up_to(history.parse(tags.get(labels.CHAMPIONS)), champion)
            after = history.rolled_back(line, existing)
            if not after:
                raise ConflictError(f"model {name} has no champion before version {champion}; promote one by number")
            restored = self._store.load(self._store.entry(name, after[-1]))
            self._set_champion(name, after, aliases, existing)
            self._store.tag(name, labels.CHAMPIONS, history.render(after))
            self._note(name, after[-1], "rolled_back_to", actor, reason)
            return restored

    def resolve(self, name: str, alias_or_version: str) -> str:
        """Version number behind an alias or a number; ``NotFoundError`` when there is none. One query."""
        with mlflow_errors(f"read model {name}"):
            return str(self._store.entry(name, alias_or_version).version)

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
            return self._store.load(self._store.entry(name, alias_or_version))

    def report(self, version: ModelVersion) -> ModelReport | None:
        """The report that a version was registered with; None where it has none.

        ``ConflictError`` when the report's certificate is not the version's.
        """
        with mlflow_errors(f"read the report of version {version.version} of model {version.name}"):
            return self._store.load_report(version)

    def certificate(self, version: ModelVersion) -> bytes | None:
        """The certificate file that a version was registered with; None where it has none."""
        with mlflow_errors(f"read the certificate of version {version.version} of model {version.name}"):
            return self._store.load_certificate(version)

    def versions(self, name: str, newest: int | None = None) -> tuple[VersionSummary, ...]:
        """Versions of a model by their labels, the newest first, so many where it is said; else all.

        ``NotFoundError`` when there is no such model.
        """
        with mlflow_errors(f"list the versions of model {name}"):
            aliases, _ = self._store.model(name)
            found = islice(self._store.newest_first(name, newest or ALL_TOGETHER), newest)
            return tuple(labels.summary(entry, aliases) for entry in found)

    def summary(self, name: str, alias_or_version: str) -> VersionSummary:
        """One version by its labels; ``NotFoundError`` when there is none."""
        with mlflow_errors(f"read model {name}"):
            return labels.summary(self._store.entry(name, alias_or_version), self._store.model(name)[0])

    def models(self) -> tuple[ModelSummary, ...]:
        """Models that Ballast made, by name."""
        with mlflow_errors("list the models"):
            return tuple(labels.model_summary(entry) for entry in self._store.models())

    def aliases(self, name: str) -> dict[str, str]:
        """Where the aliases of a model point, as MLflow has them; ``NotFoundError`` when there is no such model."""
        with mlflow_errors(f"read model {name}"):
            return {alias: str(version) for alias, version in self._store.model(name)[0].items()}

    def point(self, name: str, alias: str, version: str | None) -> None:
        """Put an alias back to where the store says it points; None takes it away. Nothing is judged."""
        with self._writing, mlflow_errors(f"put the alias {alias} of model {name} back"):
            if version is None:
                self._store.client.delete_registered_model_alias(name, alias)
            else:
                self._store.point(name, alias, version)

    def forget(self, name: str, versions: Sequence[str]) -> tuple[str, ...]:
        """Delete versions for good, with their runs, files and figures; what could not be deleted, in words.

        Aliases of theirs go too. A version that is not there any more is no error.
        """
        left: list[str] = []
        with self._writing, mlflow_errors(f"delete versions of model {name}"):
            for number in versions:
                if (entry := self._store.entry_if_there(name, number)) is not None:
                    left += self._store.forget(entry)
        return tuple(left)

    def mlflow_run_id(self, name: str, alias_or_version: str) -> str:
        """Id of the MLflow run that a version came from."""
        with mlflow_errors(f"read model {name}"):
            return str(self._store.entry(name, alias_or_version).run_id)

    def _set_champion(
        self, name: str, line: tuple[str, ...], aliases: Mapping[str, str], existing: Container[str]
    ) -> None:
        self._store.point(name, labels.CHAMPION, line[-1])
        before = history.previous(line, existing)
        if before is not None:
            self._store.point(name, labels.PREVIOUS, before)
        elif labels.PREVIOUS in aliases:
            self._store.client.delete_registered_model_alias(name, labels.PREVIOUS)

    def _note(self, name: str, version: str, what: str, actor: str, reason: str) -> None:
        for key, value in ((f"ballast.{what}_by", actor), (f"ballast.{what}_because", reason)):
            if value:
                self._store.client.set_model_version_tag(name, version, key, value)
