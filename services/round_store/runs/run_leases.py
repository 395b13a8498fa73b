"""The lease of the process that drives a run, and the runs that nobody drives."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, bindparam, or_, select, update

from services.contracts.history.run import Run
from services.round_store.database.queries import rows_touched
from services.round_store.database.session import Repository, utc_now
from services.round_store.runs.run_rows import run_row
from services.round_store.tables.runs import UNFINISHED_STATUSES, RunRow

_FREE = RunRow.lease_until.is_(None)
_UNFINISHED = RunRow.status.in_(UNFINISHED_STATUSES)
_UNLED = or_(
    RunRow.lease_until < bindparam("now"), and_(_FREE, RunRow.updated_at < bindparam("unchanged_since"))
)
_OF_LATER = or_(RunRow.lease_until > bindparam("end"), and_(_FREE, RunRow.updated_at > bindparam("end")))
_IN_ORDER = (RunRow.created_at, RunRow.run_id)
_STALE = select(RunRow).where(_UNFINISHED, _UNLED).order_by(*_IN_ORDER)
_STALE_BY_A_CLOCK = select(RunRow).where(_UNFINISHED, or_(_UNLED, _OF_LATER)).order_by(*_IN_ORDER)
"""Stated once: the watcher of the runs asks every second."""
_PROLONGED = update(RunRow).where(
    RunRow.run_id == bindparam("of_run"), _UNFINISHED, RunRow.lease_owner == bindparam("owner")
).values(lease_until=bindparam("until"))


class LeaseRepository(Repository):
    """Who drives which run, and until when."""

    def renew_lease(self, run_id: str, owner: str, seconds: float) -> bool:
        """Take or prolong the lease; False when another's has not expired or the run has ended.

        One that ends later than any that is given now counts as expired: the clock was put back since.
        """
        with self._scope.write() as session:
            now = utc_now(session)
            taken = session.execute(
                update(RunRow)
                .where(RunRow.run_id == run_id, _UNFINISHED, is_free_for(owner, now, seconds))
                .values(lease_owner=owner, lease_until=now + timedelta(seconds=seconds))
            )
            if rows_touched(taken):
                return True
            run_row(session, run_id)
            return False

    def prolong_lease(self, run_id: str, owner: str, seconds: float) -> bool:
        """Prolong the owner's own lease, expired or not; False where it is another's or nobody's, or the run ended.

        An owner that stood still while another took the lease, drove the run and died must not take it back unaware.
        """
        with self._scope.write() as session:
            until = utc_now(session) + timedelta(seconds=seconds)
            return rows_touched(session.execute(_PROLONGED, {"of_run": run_id, "owner": owner, "until": until})) > 0

    def release_lease(self, run_id: str, owner: str) -> None:
        """Give the lease back; nothing happens when it is another's."""
        with self._scope.write() as session:
            session.execute(
                update(RunRow)
                .where(RunRow.run_id == run_id, RunRow.lease_owner == owner)
                .values(lease_owner=None, lease_until=None, updated_at=utc_now(session))
            )

    def stale_runs(
        self, now: datetime | None = None, grace_seconds: float = 60.0, lease_seconds: float | None = None
    ) -> list[Run]:
        """Unfinished runs that nobody drives: the lease has expired, or none was held for ``grace_seconds``.

        ``now`` is by the database's clock where it is not given. With ``lease_seconds``, how long leases are given
        for, a lease that ends later than any that is given now, or a change as late, is of before the clock was put
        back, and holds nobody up.
        """
        with self._scope.read() as session:
            moment = utc_now(session) if now is None else now
            times = {"now": moment, "unchanged_since": moment - timedelta(seconds=grace_seconds)}
            if lease_seconds is None:
                found = session.scalars(_STALE, times)
            else:
                found = session.scalars(_STALE_BY_A_CLOCK, times | {"end": _end_of_leases(moment, lease_seconds)})
            return [Run.of_record(row) for row in found]


def is_free_for(owner: str, now: datetime, seconds: float) -> ColumnElement[bool]:
    """Whether an owner may take a run's lease for ``seconds``: nobody's, its own, expired, or of another clock."""
    expired = or_(RunRow.lease_until < now, RunRow.lease_until > _end_of_leases(now, seconds))
    return or_(RunRow.lease_until.is_(None), expired, RunRow.lease_owner == owner)


def _end_of_leases(now: datetime, seconds: float) -> datetime:
    """No lease that is given for ``seconds`` ends later; twice as much, as two clocks may differ a little."""
    return now + timedelta(seconds=2 * seconds)
