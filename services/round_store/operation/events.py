"""Events: written in the transaction of what they tell, read by whoever follows them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, insert, select
from sqlalchemy.orm import Session

from services.contracts.history.events import DRIFTED, NEVER_TRUE, Event, EventKind
from services.round_store.database.documents import metadata, sentence
from services.round_store.database.queries import MAX_PAGE, new_key, table_of
from services.round_store.database.session import Repository, utc_now
from services.round_store.operation.audit import hold_turn
from services.round_store.tables.operation import EventRow

if TYPE_CHECKING:
    from services.contracts.history.run import Run, SiteAnswer

_EVENT = insert(table_of(EventRow))
KEPT = timedelta(days=30)
PRUNED_EVERY = 500
"""Events between two looks for old ones."""


class EventRepository(Repository):
    """Events in the order of their numbers, which is that of their commits: a reader who has one has all before it."""

    def after(self, number: int, kinds: Collection[str] = (), limit: int = MAX_PAGE) -> list[Event]:
        """Events numbered above ``number``, in order; of some kinds where given."""
        wanted = select(EventRow).where(EventRow.number > number).order_by(EventRow.number)
        if kinds:
            wanted = wanted.where(EventRow.kind.in_(kinds))
        with self._scope.read() as session:
            found = session.scalars(wanted.limit(min(limit, MAX_PAGE)))
            return [Event.model_validate({"number": row.number, "at": row.at, "kind": row.kind} | row.document)
                    for row in found]

    def convicted(self, plan: str, run_id: str, reasons: Mapping[str, str]) -> None:
        """Write down which sites an auditor's verdict convicts, with the reason by site."""
        with self._scope.write() as session:
            for site_id, reason in reasons.items():
                note(
                    session, "site.convicted", plan=plan, run_id=run_id, site_id=site_id, code="verdict", reason=reason
                )

    def span(self) -> tuple[int, int]:
        """Numbers of the oldest and the newest event that is kept; (1, 0) where there is none."""
        with self._scope.read() as session:
            first, last = session.execute(select(func.min(EventRow.number), func.max(EventRow.number))).one()
            return (1, 0) if last is None else (first, last)


def note(session: Session, kind: EventKind, **fields: Any) -> None:
    """Write an event in the transaction of what it tells, after it.

    Writers take turns on the audit trail's head, so that no number is committed after a greater one.
    """
    hold_turn(session)
    told = {name: sentence(value) if isinstance(value, str) else value for name, value in fields.items()}
    row = {"at": utc_now(session), "kind": kind, "document": metadata(told) or {}}
    if new_key(session.execute(_EVENT, row)) % PRUNED_EVERY == 0:
        session.execute(delete(EventRow).where(EventRow.at < utc_now(session) - KEPT))


def note_drift(session: Session, run: Run) -> None:
    """Write down which sites of a run tell that their readings have moved."""
    for site in run.sites:
        if site.drift is not None and site.drift >= DRIFTED:
            note(
                session, "site.drifted", plan=run.plan.name, run_id=run.run_id, site_id=site.site_id, drift=site.drift
            )


def note_answers(session: Session, plan: str, run_id: str, round_: int, answers: Collection[SiteAnswer]) -> None:
    """Write down which sites are convicted, or left out for less, and which refused for their exposure."""
    for answer in answers:
        kind: EventKind
        if answer.status == "excluded":
            kind = "site.convicted" if answer.code in NEVER_TRUE else "site.left_out"
        elif answer.status == "refused_by_site" and answer.code == "exposure_limit":
            kind = "exposure.refused"
        else:
            continue
        note(
            session, kind, plan=plan, run_id=run_id, round=round_, site_id=answer.site_id, code=answer.code,
            reason=answer.reason,
        )
