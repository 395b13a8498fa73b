"""Model versions and the history of their aliases."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from services.contracts.errors import ConflictError, InvalidInputError
from services.contracts.history.records import AliasChange, VersionRecord, VersionStatus
from services.round_store.database.documents import metadata, sentence
from services.round_store.database.queries import insert_new, page, stored_row
from services.round_store.database.session import Repository, utc_now
from services.round_store.operation.events import note
from services.round_store.tables.runs import RunRow
from services.round_store.tables.versions import AliasChangeRow, ModelVersionRow


class ModelVersionRepository(Repository):
    """Where each version in the registry came from, what it scored, and which aliases it bore when."""

    def add(
        self, name: str, version: str, run_id: str, metrics: Mapping[str, Any], signed_sha256: str | None = None
    ) -> VersionRecord:
        """Record a version that the registry holds; what its run recorded before it was killed is given back.

        ``signed_sha256``: digest of what the OEM signed, to which the registry is held ever after.

        ``ConflictError`` when it is recorded for another run, ``NotFoundError`` where there is no such run.
        """
        with self._scope.write() as session:
            stored_row(session, RunRow, run_id, f"no run {run_id}")
            row = ModelVersionRow(
                name=name,
                version=version,
                run_id=run_id,
                status="registered",
                reason="",
                signed_sha256=signed_sha256,
                metrics=metadata(dict(metrics)),
                created_at=utc_now(session),
            )
            taken = f"version {version} of model {name} is recorded already"
            if (known := session.get(ModelVersionRow, (name, version))) is not None:
                if known.run_id == run_id:
                    return VersionRecord.of_record(known)
                raise ConflictError(taken)
            insert_new(session, row, taken)
            return VersionRecord.of_record(row)

    def set_status(self, name: str, version: str, status: VersionStatus, reason: str = "") -> VersionRecord:
        """Say whether the gates held."""
        with self._scope.write() as session:
            row = _row(session, name, version)
            row.status, row.reason = status, sentence(reason)
            if status == "gates_failed":
                note(session, "gate.refused", plan=name, run_id=row.run_id, version=version, reason=reason)
            return VersionRecord.of_record(row)

    def mark_forgotten(self, name: str, versions: Collection[str], reason: str) -> None:
        """Say of versions that the registry's are deleted for good; one that the store does not know is no error."""
        ours = ModelVersionRow.name == name, ModelVersionRow.version.in_(versions)
        with self._scope.write() as session:
            session.execute(update(ModelVersionRow).where(*ours).values(status="forgotten", reason=sentence(reason)))

    def forgotten(self, names: Collection[str]) -> frozenset[tuple[str, str]]:
        """Model and number of the versions of these models that were forgotten."""
        wanted = select(ModelVersionRow.name, ModelVersionRow.version).where(
            ModelVersionRow.name.in_(names), ModelVersionRow.status == "forgotten"
        )
        with self._scope.read() as session:
            return frozenset((name, version) for name, version in session.execute(wanted))

    def forgotten_numbers(self, name: str) -> frozenset[str]:
        """Numbers of the versions of one model that were forgotten."""
        return frozenset(number for _, number in self.forgotten({name}))

    def get(self, name: str, version: str) -> VersionRecord:
        """Version of a model; raise ``NotFoundError``."""
        with self._scope.read() as session:
            return VersionRecord.of_record(_row(session, name, version))

    def list_versions(self, name: str, *, limit: int, with_forgotten: bool = False) -> list[VersionRecord]:
        """Versions of a model, newest first, but for those that were forgotten."""
        newest_first = select(ModelVersionRow).order_by(ModelVersionRow.created_at.desc(), ModelVersionRow.version)
        ours = newest_first.where(ModelVersionRow.name == name)
        wanted = page(ours if with_forgotten else ours.where(ModelVersionRow.status != "forgotten"), limit, 0)
        with self._scope.read() as session:
            return [VersionRecord.of_record(row) for row in session.scalars(wanted)]

    def numbers(self, name: str, runs: Collection[str] | None = None) -> tuple[str, ...]:
        """Numbers of all versions of a model but those that were forgotten, the newest first; of these runs alone."""
        ours = ModelVersionRow.name == name, ModelVersionRow.status != "forgotten"
        wanted = select(ModelVersionRow.version, ModelVersionRow.run_id, ModelVersionRow.created_at).where(*ours)
        with self._scope.read() as session:
            found = sorted(session.execute(wanted), key=lambda row: (row.created_at, int(row.version)), reverse=True)
        return tuple(row.version for row in found if runs is None or row.run_id in runs)

    def record_alias(self, name: str, alias: str, version: str | None, actor: str, reason: str) -> AliasChange:
        """Record that an alias was set to a version, or taken away (None); ``InvalidInputError`` without a reason."""
        if not reason.strip():
            raise InvalidInputError(f"moving the alias {alias} needs a reason")
        with self._scope.write() as session:
            return _record(session, name, alias, version, actor, reason)

    def follow_alias(self, name: str, alias: str, version: str | None, actor: str, reason: str) -> AliasChange | None:
        """Record where an alias points now, if that is new; None where it is not, or the version is not the store's."""
        with self._scope.write() as session:
            last = _last_change(session, name, alias)
            if version == (last.version if last else None):
                return None
            if version is not None and session.get(ModelVersionRow, (name, version)) is None:
                return None
            return _record(session, name, alias, version, actor, reason)

    def alias(self, name: str, alias: str) -> AliasChange | None:
        """The last change of an alias: where it ought to point. None where it was never recorded."""
        with self._scope.read() as session:
            last = _last_change(session, name, alias)
            return None if last is None else AliasChange.of_record(last)

    def had_alias(self, name: str, alias: str, version: str) -> bool:
        """Whether an alias was ever set to a version."""
        wanted = select(AliasChangeRow.number).where(
            AliasChangeRow.name == name, AliasChangeRow.alias == alias, AliasChangeRow.version == version
        )
        with self._scope.read() as session:
            return session.scalar(wanted.limit(1)) is not None

    def models(self) -> list[str]:
        """Names of the models of which the store knows a version."""
        with self._scope.read() as session:
            return list(session.scalars(select(ModelVersionRow.name).distinct().order_by(ModelVersionRow.name)))


def tell_unfinished(session: Session, run_id: str, reason: str) -> None:
    """Say of a version whose gates nobody judged, for its run ended before, that they do not hold, and why."""
    wanted = select(ModelVersionRow).where(ModelVersionRow.run_id == run_id, ModelVersionRow.status == "registered")
    for row in session.scalars(wanted):
        row.status, row.reason = "gates_failed", sentence(reason)
        note(session, "gate.refused", plan=row.name, run_id=run_id, version=row.version, reason=reason)


def _record(session: Session, name: str, alias: str, version: str | None, actor: str, reason: str) -> AliasChange:
    if version is not None:
        _row(session, name, version)
    last = _last_change(session, name, alias)
    row = AliasChangeRow(
        name=name,
        alias=alias,
        version=version,
        previous_version=last.version if last else None,
        actor=sentence(actor, 120),
        reason=sentence(reason),
        at=utc_now(session),
    )
    session.add(row)
    session.flush()
    if alias == "champion":
        note(session, "model.promoted", plan=name, version=version, reason=reason)
    return AliasChange.of_record(row)


def _last_change(session: Session, name: str, alias: str) -> AliasChangeRow | None:
    wanted = select(AliasChangeRow).where(AliasChangeRow.name == name, AliasChangeRow.alias == alias)
    return session.scalar(wanted.order_by(AliasChangeRow.number.desc()).limit(1))


def _row(session: Session, name: str, version: str) -> ModelVersionRow:
    return stored_row(session, ModelVersionRow, (name, version), f"no version {version} of model {name}")
