"""Asset types, version by version."""

from __future__ import annotations

from sqlalchemy import func, select

from services.contracts.errors import ConflictError, NotFoundError
from services.contracts.history.records import AssetTypeRecord
from services.contracts.machines.asset_type import AssetType
from services.round_store.database.documents import document
from services.round_store.database.queries import insert_new, narrowed
from services.round_store.database.session import Repository, utc_now
from services.round_store.tables.plans import AssetTypeRow


class AssetTypeRepository(Repository):
    """Asset types. A stored version never changes: sites and models rely on its fingerprint."""

    def add(self, asset_type: AssetType) -> AssetTypeRecord:
        """Store a version; the same again changes nothing; ``ConflictError`` for another content or an old number."""
        with self._scope.write() as session:
            name, version, stored = asset_type.name, asset_type.version, document(asset_type)
            row = session.get(AssetTypeRow, (name, version))
            if row is None:
                newest = session.scalar(select(func.max(AssetTypeRow.version)).where(AssetTypeRow.name == name))
                if newest is not None and newest > version:
                    raise ConflictError(f"asset type {name} is at version {newest} already; {version} is older")
                now = utc_now(session)
                row = AssetTypeRow(
                    name=name, version=version, document=stored, fingerprint=asset_type.fingerprint, created_at=now
                )
                insert_new(session, row, f"asset type {name} version {version} has just been stored")
            elif AssetType.model_validate(row.document) != asset_type:
                raise ConflictError(
                    f"asset type {name} version {version} is stored with another content; give it the next version"
                )
            return _to_record(row)

    def get(self, name: str, version: int | None = None) -> AssetTypeRecord:
        """One version, or the newest; raise ``NotFoundError``."""
        wanted = narrowed(select(AssetTypeRow), (AssetTypeRow.name, name), (AssetTypeRow.version, version))
        with self._scope.read() as session:
            row = session.scalar(wanted.order_by(AssetTypeRow.version.desc()).limit(1))
            if row is None:
                raise NotFoundError(f"no asset type {name}" + ("" if version is None else f" version {version}"))
            return _to_record(row)

    def of_contract(self, name: str, fingerprint: str) -> AssetTypeRecord:
        """The version that has a fingerprint, which a run keeps from its beginning; raise ``NotFoundError``."""
        wanted = select(AssetTypeRow).where(AssetTypeRow.name == name, AssetTypeRow.fingerprint == fingerprint)
        with self._scope.read() as session:
            row = session.scalar(wanted.order_by(AssetTypeRow.version.desc()).limit(1))
            if row is None:
                raise NotFoundError(f"no version of asset type {name} has the fingerprint {fingerprint}")
            return _to_record(row)

    def list_asset_types(self) -> list[AssetTypeRecord]:
        """All versions, by name and number."""
        wanted = select(AssetTypeRow).order_by(AssetTypeRow.name, AssetTypeRow.version)
        with self._scope.read() as session:
            return [_to_record(row) for row in session.scalars(wanted)]


def _to_record(row: AssetTypeRow) -> AssetTypeRecord:
    return AssetTypeRecord.of_record(row, asset_type=row.document)
