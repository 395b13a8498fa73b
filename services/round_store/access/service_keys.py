"""Fingerprints of the keys that all API processes of a service have in common; never a key."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from services.contracts.access.service_key import ServiceKey
from services.contracts.errors import ConflictError
from services.round_store.database.documents import sentence
from services.round_store.database.queries import insert_new
from services.round_store.database.session import Repository, utc_now
from services.round_store.tables.operation import ServiceKeyRow

LONGEST_PLACE = 300
"""Characters of where a key was used first that are kept: a host's name and a path."""


class ServiceKeyRepository(Repository):
    """Which keys are the service's: those that were used first, until one is replaced."""

    def find(self, name: str) -> ServiceKey | None:
        """Key of a name; None where none was ever used."""
        with self._scope.read() as session:
            row = session.get(ServiceKeyRow, name, populate_existing=True)
            return None if row is None else ServiceKey.of_record(row)

    def list_keys(self) -> list[ServiceKey]:
        """All of them, by name."""
        with self._scope.read() as session:
            rows = session.scalars(select(ServiceKeyRow).order_by(ServiceKeyRow.name))
            return [ServiceKey.of_record(row) for row in rows]

    def first(self, name: str, fingerprint: str, home: str) -> ServiceKey:
        """Let this be the service's key unless there is one; which it is. Of several at once the first has it."""
        found = self.find(name)
        if found is not None:
            return found
        try:
            with self._scope.write() as session:
                row = _row(session, name, fingerprint, home)
                insert_new(session, row, f"there is a key {name} already")
                return ServiceKey.of_record(row)
        except ConflictError:  # another process was a moment quicker
            found = self.find(name)
            if found is None:
                raise
            return found

    def replace(self, name: str, fingerprint: str, home: str) -> ServiceKey | None:
        """Let this be the service's key from now on, whatever it was; the one before, where there was one."""
        with self._scope.write() as session:
            row = session.get(ServiceKeyRow, name, with_for_update=True, populate_existing=True)
            before = None if row is None else ServiceKey.of_record(row)
            session.merge(_row(session, name, fingerprint, home))
            return before


def _row(session: Session, name: str, fingerprint: str, home: str) -> ServiceKeyRow:
    return ServiceKeyRow(
        name=name, fingerprint=fingerprint, home=sentence(home, LONGEST_PLACE), created_at=utc_now(session)
    )
