"""The audit trail: appended to and read, never changed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select, true, update
from sqlalchemy.orm import Session

from services.contracts.access.identity import Role
from services.contracts.errors import ConflictError, UnavailableError
from services.contracts.history.audit import GENESIS, AuditEvent, ChainReport
from services.contracts.time_span import check_order
from services.round_store.database.documents import metadata, sentence
from services.round_store.database.queries import narrowed, page, table_of
from services.round_store.database.session import Repository, utc_now
from services.round_store.tables.audit import AuditEventRow, AuditHeadRow

HEAD = 1
"""Key of the only row of ``audit_head``."""
_AT_ONCE = 500  # events that are read together
_TURN = select(table_of(AuditHeadRow).c.id).where(AuditHeadRow.id == HEAD).with_for_update()
_LOST = "the audit trail has lost its head; restore the database from a backup"


class AuditRepository(Repository):
    """Audit events in a chain of hashes.

    Append in the transaction that makes the change (``RoundStore.atomic``), after it: then neither is there without the
    other, and the turn that writers take is short.
    """

    def take_turn(self) -> None:
        """Wait for all who write to the trail, and keep them waiting until the transaction ends.

        For a change that is made elsewhere before its event is appended.
        """
        with self._scope.write() as session:
            hold_turn(session)

    def append(
        self,
        *,
        actor: str,
        role: Role | None,
        action: str,
        target: str,
        reason: str = "",
        before: dict[str, Any] | None = None,
        after: dict[str, Any] | None = None,
    ) -> AuditEvent:
        """Append an event; writers take turns, so the chain never forks."""
        with self._scope.write() as session:
            head = audit_head(session, lock=True)
            event = AuditEvent.sealed(
                number=head.number + 1,
                at=utc_now(session),
                actor=sentence(actor, 120),
                role=role,
                action=sentence(action, 120),
                target=sentence(target, 200),
                reason=sentence(reason),
                before=metadata(before),
                after=metadata(after),
                previous_hash=head.hash,
            )
            session.execute(insert(AuditEventRow).values(dict(event) | {"role": role.value if role else None}))
            session.execute(
                update(AuditHeadRow).where(AuditHeadRow.id == HEAD).values(number=event.number, hash=event.hash)
            )
            return event

    def list_events(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        target: str | None = None,
        limit: int = 100,
        offset: int = 0,
        before: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[AuditEvent]:
        """Events, newest first; of one actor, action, target or time, or numbered below ``before``, where given.

        ``InvalidInputError`` where ``until`` comes before ``since``, ``ConflictError`` where one cannot be read.
        """
        check_order(since, until)
        wanted = narrowed(
            select(AuditEventRow).order_by(AuditEventRow.number.desc()),
            (AuditEventRow.actor, actor), (AuditEventRow.action, action), (AuditEventRow.target, target),
        )
        if before is not None:
            wanted = wanted.where(AuditEventRow.number < before)
        if since is not None:
            wanted = wanted.where(AuditEventRow.at >= since)
        if until is not None:
            wanted = wanted.where(AuditEventRow.at < until)
        with self._scope.read() as session:
            try:
                return [AuditEvent.of_record(row) for row in session.scalars(page(wanted, limit, offset))]
            except (ValueError, RecursionError):  # a column is no JSON, or no time
                raise ConflictError(
                    "one of these events was changed and cannot be read any more: `ballast audit verify` says which",
                    code="unreadable_event",
                ) from None

    def verify_chain(self) -> ChainReport:
        """Check every event against its hash and its predecessor, and the end against the head.

        The chain shows a change by anyone who does not recompute all that follows. Against one who can write to the
        database and does, keep ``head`` elsewhere from time to time and compare.
        """
        with self._scope.read() as session:
            head = audit_head(session)
            number, previous, problem = 0, GENESIS, ""
            try:
                for row in _in_order(session):
                    if problem := _problem(row, number + 1, previous):
                        break
                    number, previous = row.number, row.hash
            except (ValueError, RecursionError):
                problem = f"event {number + 1} was changed: it cannot be read any more"
            if problem:
                return ChainReport(ok=False, events=number, head=previous, problem=problem)
            if (head.number, head.hash) != (number, previous):
                problem = f"the trail ends with event {number}, but {head.number} were written"
                return ChainReport(ok=False, events=number, head=previous, problem=problem)
            return ChainReport(ok=True, events=number, head=previous)


def _in_order(session: Session) -> Iterator[AuditEventRow]:
    """Events by their numbers, many read at once; ``ValueError`` or ``RecursionError`` at one that cannot be read."""
    number, at_once = 0, _AT_ONCE
    while True:
        later = AuditEventRow.number > number if number else true()
        wanted = select(AuditEventRow).where(later).order_by(AuditEventRow.number)
        try:
            with session.scalars(wanted.execution_options(yield_per=at_once)) as rows:
                for row in rows:
                    yield row
                    number = row.number
            return
        except (ValueError, RecursionError):  # a column is no JSON, or no time: one by one then
            if at_once == 1:
                raise
            at_once = 1


def _problem(row: AuditEventRow, number: int, previous: str) -> str:
    if row.number != number:
        return f"event {number} is missing"
    if row.previous_hash != previous:
        return f"event {number} does not follow the one before it"
    try:
        event = AuditEvent.of_record(row)
    except ValueError:
        return f"event {number} was changed: it is no valid event any more"
    return "" if event.expected_hash() == row.hash else f"event {number} was changed after it was written"


def audit_head(session: Session, *, lock: bool = False) -> AuditHeadRow:
    """Row that says where the trail ends; locked, it is the writers' turn. ``UnavailableError`` where it is lost."""
    row = session.get(AuditHeadRow, HEAD, with_for_update=lock or None, populate_existing=True)
    if row is None:
        raise UnavailableError(_LOST)
    return row


def hold_turn(session: Session) -> None:
    """Take the writers' turn until the transaction ends; ``UnavailableError`` where the head is lost.

    What was changed so far is written first: all lock what an event tells of, then the head.
    """
    session.flush()
    if session.execute(_TURN).first() is None:
        raise UnavailableError(_LOST)
