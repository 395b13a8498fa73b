"""What the store may forget: the rounds of old finished runs, and old events. Never the audit trail or evidence."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ColumnElement, and_, delete, exists, func, or_, select
from sqlalchemy.orm import Session

from services.contracts.base import Contract
from services.round_store.database.queries import rows_touched
from services.round_store.database.session import Repository
from services.round_store.operation.audit import hold_turn
from services.round_store.tables.operation import EventRow
from services.round_store.tables.runs import UNFINISHED_STATUSES, EvidenceRow, RoundRow, RunRow, SiteUpdateRow
from services.round_store.tables.versions import AliasChangeRow, ModelVersionRow


class Forgettable(Contract):
    """Runs whose rounds may go, and how many rounds and events these are."""

    runs: tuple[str, ...] = ()
    rounds: int = 0
    events: int = 0


class RetentionRepository(Repository):
    """Counts and drops what is old. A run itself stays, with its bounds, sites and end: only its rounds go."""

    def forgettable(
        self, rounds_before: datetime | None, events_before: datetime, keep_versions: int
    ) -> Forgettable:
        """Count what is older than two moments; ``rounds_before`` None: rounds are kept for ever.

        Kept are the rounds of runs whose version bore an alias once or is among the ``keep_versions`` newest of its
        model, of runs with evidence against a site, and of unfinished runs.
        """
        with self._scope.read() as session:
            events = session.scalar(select(func.count()).where(*_old_events(events_before))) or 0
            if rounds_before is None:
                return Forgettable(events=events)
            wanted = (
                select(RunRow.run_id, func.count()).join(RoundRow, RoundRow.run_id == RunRow.run_id)
                .where(RunRow.status.not_in(UNFINISHED_STATUSES), RunRow.updated_at < rounds_before)
                .group_by(RunRow.run_id).order_by(RunRow.run_id)
            )
            kept = _kept_runs(session, keep_versions)
            old = {run_id: count for run_id, count in session.execute(wanted) if run_id not in kept}
            return Forgettable(runs=tuple(old), rounds=sum(old.values()), events=events)

    def drop_rounds(self, run_id: str) -> int:
        """Drop the rounds of a finished run, and what the sites answered in them; how many.

        None of an unfinished run, nor of one that has become evidence since it was counted.
        """
        with self._scope.write() as session:
            row = session.get(RunRow, run_id, with_for_update=True)
            if row is None or row.status in UNFINISHED_STATUSES:
                return 0
            hold_turn(session)  # a promotion that is on its way comes first
            if session.scalar(select(_is_evidence(run_id))):
                return 0
            session.execute(delete(SiteUpdateRow).where(SiteUpdateRow.run_id == run_id))
            return rows_touched(session.execute(delete(RoundRow).where(RoundRow.run_id == run_id)))

    def drop_events(self, before: datetime) -> int:
        """Drop events; how many. The newest of all stays, however old."""
        with self._scope.write() as session:
            return rows_touched(session.execute(delete(EventRow).where(*_old_events(before))))


def _old_events(before: datetime) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Events that may go. Without the newest, numbers would begin at 1 again, and webhooks be told of none of them."""
    newest = select(func.max(EventRow.number)).scalar_subquery()
    return EventRow.at < before, EventRow.number < newest


def _is_evidence(run_id: str) -> ColumnElement[bool]:
    """Whether a run's version ever bore an alias, or the run convicted a site."""
    named = and_(ModelVersionRow.name == AliasChangeRow.name, ModelVersionRow.version == AliasChangeRow.version)
    bore_an_alias = exists().where(named, ModelVersionRow.run_id == run_id)
    return or_(exists().where(EvidenceRow.run_id == run_id), bore_an_alias)


def _kept_runs(session: Session, keep_versions: int) -> set[str]:
    """Runs whose rounds are evidence: of versions with an alias, then or now, of the newest ones, of convictions."""
    borne = select(AliasChangeRow.name, AliasChangeRow.version).where(AliasChangeRow.version.is_not(None))
    aliased = {(name, version) for name, version in session.execute(borne)}
    newest_first = select(ModelVersionRow).order_by(ModelVersionRow.name, ModelVersionRow.created_at.desc())
    kept, seen = set(session.scalars(select(EvidenceRow.run_id))), dict[str, int]()
    for row in session.scalars(newest_first):
        stands = row.status != "forgotten"
        seen[row.name] = seen.get(row.name, 0) + stands
        if (stands and seen[row.name] <= keep_versions) or (row.name, row.version) in aliased:
            kept.add(row.run_id)
    return kept
