"""What requests with an idempotency key were answered, for a day."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import ColumnElement, delete, update

from services.round_store.database.queries import insert_new
from services.round_store.database.session import Repository, utc_now
from services.round_store.tables.operation import OutcomeRow

KEPT = timedelta(hours=24)
"""How long an outcome is kept."""


class Outcome(NamedTuple):
    """What an earlier request with the same key was; ``sealed`` None: it has not ended, or nobody knows how."""

    request_sha256: str
    sealed: bytes | None


class OutcomeRepository(Repository):
    """Outcomes by the token that asked and the SHA-256 of its key."""

    def begin(self, token_id: str, key_sha256: str, request_sha256: str) -> Outcome | None:
        """Take a key for a request; what an earlier request with it was, None where this one is the first.

        ``ConflictError`` where another takes it at the same moment. Outcomes older than a day are dropped.
        """
        with self._scope.write() as session:
            now = utc_now(session)
            session.execute(delete(OutcomeRow).where(OutcomeRow.created_at < now - KEPT))
            row = session.get(OutcomeRow, (token_id, key_sha256))
            if row is not None:
                return Outcome(row.request_sha256, row.sealed)
            taken = OutcomeRow(
                token_id=token_id, key_sha256=key_sha256, request_sha256=request_sha256, created_at=now, sealed=None
            )
            said = "another request with this Idempotency-Key has just begun"
            insert_new(session, taken, said, code="idempotency_unfinished")
            return None

    def finish(self, token_id: str, key_sha256: str, sealed: bytes) -> None:
        """Keep the outcome of the request that took a key."""
        with self._scope.write() as session:
            session.execute(update(OutcomeRow).where(*_is(token_id, key_sha256)).values(sealed=sealed))

    def forget(self, token_id: str, key_sha256: str) -> None:
        """Give a key back: its request changed nothing."""
        with self._scope.write() as session:
            session.execute(delete(OutcomeRow).where(*_is(token_id, key_sha256)))


def _is(token_id: str, key_sha256: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return OutcomeRow.token_id == token_id, OutcomeRow.key_sha256 == key_sha256
