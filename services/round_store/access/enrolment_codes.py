"""Enrolment codes, with the hashes of their secrets."""

from __future__ import annotations

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from services.contracts.access.enrolment_records import CodeState, EnrolmentRecord, StoredCode
from services.contracts.errors import ConflictError, NotFoundError
from services.round_store.database.documents import sentence
from services.round_store.database.queries import insert_new, rows_touched
from services.round_store.database.session import Repository, utc_now
from services.round_store.tables.operation import EnrolmentCodeRow


class EnrolmentCodeRepository(Repository):
    """Codes by which plants enrol. A site has one that holds, at most."""

    def add(self, stored: StoredCode) -> EnrolmentRecord:
        """Store a code; those of the same site that were not used are revoked."""
        record = stored.record.model_copy(update={"description": sentence(stored.record.description)})
        with self._scope.write() as session:
            _revoke_unused(session, record.site_id)
            row = EnrolmentCodeRow(**dict(record), secret_sha256=stored.secret_sha256)
            insert_new(session, row, f"there is an enrolment code {record.code_id} already")
        return record

    def find(self, code_id: str) -> StoredCode | None:
        """Code and its secret's hash, to check a plant; None when there is none."""
        with self._scope.read() as session:
            row = session.get(EnrolmentCodeRow, code_id)
            if row is None:
                return None
            return StoredCode(record=EnrolmentRecord.of_record(row), secret_sha256=row.secret_sha256)

    def list_codes(self, site_id: str | None = None, *, state: CodeState | None = None) -> list[EnrolmentRecord]:
        """Codes of a site or of all, of one state or of all, also used, expired and revoked ones, newest first."""
        wanted = select(EnrolmentCodeRow).order_by(EnrolmentCodeRow.created_at.desc(), EnrolmentCodeRow.code_id)
        if site_id is not None:
            wanted = wanted.where(EnrolmentCodeRow.site_id == site_id)
        with self._scope.read() as session:
            now = utc_now(session)
            found = [EnrolmentRecord.of_record(row) for row in session.scalars(wanted)]
            return [each for each in found if state in (None, each.state_at(now))]

    def list_open(self) -> list[EnrolmentRecord]:
        """Codes of all sites that may still be used, newest first."""
        with self._scope.read() as session:
            found = session.scalars(
                select(EnrolmentCodeRow)
                .where(
                    EnrolmentCodeRow.used_at.is_(None), EnrolmentCodeRow.revoked_at.is_(None),
                    EnrolmentCodeRow.expires_at > utc_now(session),
                )
                .order_by(EnrolmentCodeRow.created_at.desc(), EnrolmentCodeRow.code_id)
            )
            return [EnrolmentRecord.of_record(row) for row in found]

    def use(self, code_id: str, public_key: str) -> bool:
        """Use a code up for a key; False where it was used, was revoked or has expired a moment ago."""
        with self._scope.write() as session:
            now = utc_now(session)
            taken = session.execute(
                update(EnrolmentCodeRow)
                .where(
                    EnrolmentCodeRow.code_id == code_id, EnrolmentCodeRow.used_at.is_(None),
                    EnrolmentCodeRow.revoked_at.is_(None), EnrolmentCodeRow.expires_at > now,
                )
                .values(used_at=now, used_key=public_key)
            )
            return rows_touched(taken) == 1

    def revoke(self, site_id: str, code_id: str) -> EnrolmentRecord:
        """Revoke a code of a site; once more changes nothing. ``NotFoundError``; ``ConflictError`` for a used one."""
        with self._scope.write() as session:
            row = session.get(EnrolmentCodeRow, code_id, with_for_update=True, populate_existing=True)
            if row is None or row.site_id != site_id:
                raise NotFoundError(f"no enrolment code {code_id[:40]} of site {site_id[:40]}")
            if row.used_at is not None:
                raise ConflictError(f"enrolment code {code_id} was used; to shut the plant out suspend or remove it")
            row.revoked_at = row.revoked_at or utc_now(session)
            return EnrolmentRecord.of_record(row)

    def revoke_unused(self, site_id: str) -> int:
        """Revoke every code of a site that was not used; how many there were."""
        with self._scope.write() as session:
            return _revoke_unused(session, site_id)


def _revoke_unused(session: Session, site_id: str) -> int:
    unused = (
        EnrolmentCodeRow.site_id == site_id, EnrolmentCodeRow.used_at.is_(None), EnrolmentCodeRow.revoked_at.is_(None)
    )
    return rows_touched(session.execute(
        update(EnrolmentCodeRow).where(*unused).values(revoked_at=utc_now(session))
    ))
