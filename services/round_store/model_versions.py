"""Model versions and the history of their aliases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from services.contracts.errors import ConflictError, InvalidInputError, NotFoundError
from services.contracts.records import AliasChange, VersionRecord, VersionStatus
from services.round_store.documents import metadata, sentence
from services.round_store.queries import page
from services.round_store.session import SessionProvider, utc_now
from services.round_store.tables import AliasChangeRow, ModelVersionRow, RunRow

_FIELDS = tuple(VersionRecord.model_fields)
_ALIAS_FIELDS = tuple(AliasChange.model_fields)


class ModelVersionRepository:
    """Where each version in the registry came from, what it scored, and which aliases it bore when."""

    def __init__(self, scope: SessionProvider) -> None:
        self._scope = scope

    def add(self, name: str, version: str, run_id: str, metrics: Mapping[str, Any]) -> VersionRecord:
        """Record a version that the registry holds; ``ConflictError`` when it is recorded, ``NotFoundError`` no run."""
        with self._scope.write() as session:
            if session.get(RunRow, run_id) is None:
                raise NotFoundError(f"no run {run_id}")
            row = ModelVersionRow(
                name=name,
                version=version,
                run_id=run_id,
                status="registered",
                reason="",
                metrics=metadata(dict(metrics)),
                created_at=utc_now(session),
            )
            taken = f"version {version} of model {name} is recorded already"
            if session.get(ModelVersionRow, (name, version)) is not None:
                raise ConflictError(taken)
            session.add(row)
            try:
                session.flush()
            except IntegrityError:
                raise ConflictError(taken) from None
            return _to_record(row)

    def set_status(self, name: str, version: str, status: VersionStatus, reason: str = "") -> VersionRecord:
        """Say whether the gates held."""
        with self._scope.write() as session:
            row = _row(session, name, version)
            row.status, row.reason = status, sentence(reason)
            return _to_record(row)

    def get(self, name: str, version: str) -> VersionRecord:
        """Version of a model; raise ``NotFoundError``."""
        with self._scope.read() as session:
            return _to_record(_row(session, name, version))

    def list_versions(
        self, name: str | None = None, run_id: str | None = None, limit: int = 100, offset: int = 0
    ) -> list[VersionRecord]:
        """Versions, newest first; of one model or one run where given."""
        wanted = select(ModelVersionRow).order_by(ModelVersionRow.created_at.desc(), ModelVersionRow.version)
        if name is not None:
            wanted = wanted.where(ModelVersionRow.name == name)
        if run_id is not None:
            wanted = wanted.where(ModelVersionRow.run_id == run_id)
        at_most, skipped = page(limit, offset)
        with self._scope.read() as session:
            return [_to_record(row) for row in session.scalars(wanted.limit(at_most).offset(skipped))]

    def record_alias(self, name: str, alias: str, version: str | None, actor: str, reason: str) -> AliasChange:
        """Record that an alias was set to a version, or taken away (None); a reason is needed."""
        if not reason.strip():
            raise InvalidInputError(f"moving the alias {alias} needs a reason")
        with self._scope.write() as session:
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
            return _to_change(row)

    def follow_alias(self, name: str, alias: str, version: str | None, actor: str, reason: str) -> AliasChange | None:
        """Record where an alias points now, if that is new; None where it is not, or the version is not the store's."""
        with self._scope.write() as session:
            last = _last_change(session, name, alias)
            if version == (last.version if last else None):
                return None
            if version is not None and session.get(ModelVersionRow, (name, version)) is None:
                return None
            return self.record_alias(name, alias, version, actor, reason)

    def alias(self, name: str, alias: str) -> AliasChange | None:
        """The last change of an alias: where it ought to point. None where it was never recorded."""
        with self._scope.read() as session:
            last = _last_change(session, name, alias)
            return None if last is None else _to_change(last)

    def models(self) -> list[str]:
        """Names of the models of which the store knows a version."""
        with self._scope.read() as session:
            return list(session.scalars(select(ModelVersionRow.name).distinct().order_by(ModelVersionRow.name)))

    def alias_history(
        self, name: str, alias: str | None = None, limit: int = 100, offset: int = 0
    ) -> list[AliasChange]:
        """Changes of a model's aliases, newest first."""
        wanted = select(AliasChangeRow).where(AliasChangeRow.name == name).order_by(AliasChangeRow.number.desc())
        if alias is not None:
            wanted = wanted.where(AliasChangeRow.alias == alias)
        at_most, skipped = page(limit, offset)
        with self._scope.read() as session:
            return [_to_change(row) for row in session.scalars(wanted.limit(at_most).offset(skipped))]


def _last_change(session: Session, name: str, alias: str) -> AliasChangeRow | None:
    wanted = select(AliasChangeRow).where(AliasChangeRow.name == name, AliasChangeRow.alias == alias)
    return session.scalar(wanted.order_by(AliasChangeRow.number.desc()).limit(1))


def _row(session: Session, name: str, version: str) -> ModelVersionRow:
    row = session.get(ModelVersionRow, (name, version), populate_existing=True)
    if row is None:
        raise NotFoundError(f"no version {version} of model {name}")
    return row


def _to_record(row: ModelVersionRow) -> VersionRecord:
    return VersionRecord(**{name: getattr(row, name) for name in _FIELDS})


def _to_change(row: AliasChangeRow) -> AliasChange:
    return AliasChange(**{name: getattr(row, name) for name in _ALIAS_FIELDS})
