"""Runs: their life from pending to an end, their rounds, and the lease of the process that drives them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, and_, or_, select, update
from sqlalchemy.orm import Session

from models.basics import FloatArray
from models.methods.growth import Added
from services.contracts.errors import ConflictError, InvalidInputError
from services.contracts.events import EventKind
from services.contracts.plan import Plan
from services.contracts.run import Exchange, Leaving, RoundRecord, Run, RunStart, RunStatus, SiteAnswer, SiteTermsRecord
from services.round_store import rounds, run_states
from services.round_store.documents import document, sentence
from services.round_store.events import note, note_answers, note_drift
from services.round_store.model_versions import tell_unfinished
from services.round_store.queries import insert_new, narrowed, page, rows_touched, stored_row
from services.round_store.session import Repository, utc_now
from services.round_store.tables import UNFINISHED_STATUSES, EvidenceRow, RunExchangeRow, RunRow

FINAL = ("completed", "failed", "cancelled")
OVERTAKEN = "overtaken"
"""Code of the error where another process has driven an unfinished run further: nothing is wrong with the run."""
_ENDS: dict[str, EventKind] = {"completed": "run.completed", "failed": "run.failed", "cancelled": "run.cancelled"}


class RunRepository(Repository):
    """Runs, rounds and method state; what the coordinator calls its ``RunStore``."""

    def create_run(self, plan: Plan, run_id: str | None = None, leaving: Leaving | None = None) -> Run:
        """New pending run of a plan, without a plant that left where one is given.

        ``ConflictError`` while the plan has an unfinished one, or the id is taken.
        """
        with self._scope.write() as session:
            now = utc_now(session)
            run = Run(
                run_id=run_id or uuid.uuid4().hex, plan=plan, status="pending", created_at=now, updated_at=now,
                leaving=leaving,
            )
            other = session.scalar(
                select(RunRow.run_id).where(RunRow.plan_name == plan.name, RunRow.status.in_(UNFINISHED_STATUSES))
            )
            if other is not None:
                raise ConflictError(f"plan {plan.name} has an unfinished run: {other}", code="run_unfinished")
            documents: dict[str, Any] = {"plan": document(plan), "sites": [], "absentees": [], "excluded": [],
                         "leaving": None if leaving is None else document(leaving)}
            row = RunRow(plan_name=plan.name, **(dict(run) | documents))
            insert_new(session, row, f"plan {plan.name} has an unfinished run, or run {run.run_id} is there")
            return run

    def get_run(self, run_id: str) -> Run:
        """Run by id; raise ``NotFoundError``."""
        with self._scope.read() as session:
            return Run.of_record(_row(session, run_id))

    def list_runs(
        self, plan: str | None = None, status: RunStatus | None = None, limit: int = 100, offset: int = 0,
        after: tuple[datetime, str] | None = None,
    ) -> list[Run]:
        """Runs, newest first; of one plan or status, or further down than ``after`` (time, id), where given."""
        newest_first = select(RunRow).order_by(RunRow.created_at.desc(), RunRow.run_id)
        wanted = narrowed(newest_first, (RunRow.plan_name, plan), (RunRow.status, status))
        if after is not None:
            at, run_id = after
            wanted = wanted.where(or_(RunRow.created_at < at, and_(RunRow.created_at == at, RunRow.run_id > run_id)))
        return self._runs(page(wanted, limit, offset))

    def unfinished_runs(self, plan: str | None = None) -> list[Run]:
        """Pending and running runs, oldest first."""
        wanted = select(RunRow).where(RunRow.status.in_(UNFINISHED_STATUSES)).order_by(RunRow.created_at, RunRow.run_id)
        return self._runs(narrowed(wanted, (RunRow.plan_name, plan)))

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
            free = RunRow.lease_until.is_(None)
            unled = or_(
                RunRow.lease_until < moment, and_(free, RunRow.updated_at < moment - timedelta(seconds=grace_seconds))
            )
            if lease_seconds is not None:
                end = _end_of_leases(moment, lease_seconds)
                unled = or_(unled, RunRow.lease_until > end, and_(free, RunRow.updated_at > end))
            wanted = select(RunRow).where(RunRow.status.in_(UNFINISHED_STATUSES), unled)
            return [Run.of_record(row) for row in session.scalars(wanted.order_by(RunRow.created_at, RunRow.run_id))]

    def begin_run(
        self, run_id: str, sites: Sequence[SiteTermsRecord], absentees: Sequence[SiteAnswer] = (),
        start: RunStart | None = None, digests: Mapping[str, str] | None = None,
    ) -> Run:
        """Set a pending run to running, with the sites' scalars and those that did not join.

        ``start``: with what it begins; ``digests``: what each site said of its rows and terms.
        ``ConflictError`` if it is not pending, ``OVERTAKEN`` where another process has begun it.
        """
        began: dict[str, Any] = {"start": None if start is None else document(start), "digests": dict(digests or {})}
        terms = [document(site) for site in sites]
        missing = [document(rounds.cleaned(answer)) for answer in absentees]
        with self._scope.write() as session:
            began |= {"status": "running", "sites": terms, "absentees": missing}
            run = _changed(session, run_id, ("pending",), "begun", **began)
            note(session, "run.begun", plan=run.plan.name, run_id=run_id)
            note_answers(session, run.plan.name, run_id, 0, run.absentees)
            note_drift(session, run)
            return run

    def samples_before(self, run_id: str) -> dict[str, int]:
        """Rows that each site said it had in the last completed run of this run's plan; {} where there is none."""
        return {site.site_id: site.n_samples for last in self.completed_before(run_id) for site in last.sites}

    def completed_before(self, run_id: str, limit: int = 1) -> list[Run]:
        """Completed runs of this run's plan, the last one first."""
        with self._scope.read() as session:
            plan = _row(session, run_id).plan_name
            completed = select(RunRow).where(
                RunRow.plan_name == plan, RunRow.status == "completed", RunRow.run_id != run_id
            )
            last = session.scalars(completed.order_by(RunRow.created_at.desc(), RunRow.run_id.desc()).limit(limit))
            return [Run.of_record(row) for row in last]

    def set_tuned(self, run_id: str, plan: Plan, sites: Sequence[SiteTermsRecord]) -> Run:
        """Give a run that has no round yet the terms that its tuning chose.

        ``ConflictError`` where it is not running, has a round, or was tuned already.
        """
        with self._scope.write() as session:
            row = _row(session, run_id, lock=True)
            if row.status != "running" or row.rounds or Plan.model_validate(row.plan).tuned is not None:
                raise ConflictError(f"run {run_id} is {row.status} after {row.rounds} rounds and cannot be tuned")
            row.plan, row.sites, row.updated_at = document(plan), [document(site) for site in sites], utc_now(session)
            return Run.of_record(row)

    def load_state(self, run_id: str) -> tuple[int, dict[str, FloatArray]] | None:
        """Last committed round and the method state after it; None before the first round and after the end."""
        with self._scope.read() as session:
            ended = _row(session, run_id).status in FINAL
            return None if ended else run_states.read_state(session, run_id)

    def load_end(self, run_id: str) -> dict[str, FloatArray] | None:
        """Method state at the end of a completed run, from which the plan's next one goes on; None where it is gone."""
        with self._scope.read() as session:
            kept = run_states.read_state(session, run_id) if _row(session, run_id).status == "completed" else None
            return None if kept is None else kept[1]

    def get_digests(self, run_id: str) -> dict[str, str]:
        """What each site said of its rows and terms when it joined, by site id; {} where nothing was."""
        with self._scope.read() as session:
            return dict(_row(session, run_id).digests or {})

    def commit_round(
        self, record: RoundRecord, state: Mapping[str, FloatArray], exchanges: Mapping[str, Exchange] | None = None,
        evidence: Mapping[str, bytes] | None = None, added: Mapping[str, Added] | None = None,
    ) -> None:
        """Commit record, site answers, exclusions, method state and the run's bounds in one transaction.

        ``state`` is what the method state is now, but for the arrays that grow: of those ``added`` has the new rows.
        With them the frames of the round's ``exchanges``, kept while the run lasts, and the ``evidence`` against sites
        that contradicted themselves, kept for good; both by site.
        ``ConflictError`` when the run is not running, or (``OVERTAKEN``) the round is not the one after the last, also
        for a round that is there; ``InvalidInputError`` for a record with a NaN or with two answers of one site.
        """
        rounds.check_record(record)
        with self._scope.write() as session:
            # One statement takes the row's lock and decides who commits this round.
            taken = session.execute(
                update(RunRow)
                .where(RunRow.run_id == record.run_id, RunRow.status == "running", RunRow.rounds == record.round - 1)
                .values(
                    rounds=record.round, upper=record.upper, lower=record.lower, gap=record.gap,
                    fresh_weight=record.fresh_weight, updated_at=utc_now(session),
                )
            )
            if not rows_touched(taken):
                row = _row(session, record.run_id)
                code = OVERTAKEN if row.status == "running" else None
                raise ConflictError(_why_not(row, record.round), code=code)
            rounds.insert_round(session, record)
            if left_out := rounds.exclusions(record):
                row = _row(session, record.run_id)
                row.excluded = [*row.excluded, *map(document, left_out)]
            run_states.replace_state(session, record.run_id, record.round, state, added or {})
            rounds.insert_exchanges(session, record, exchanges or {})
            rounds.insert_evidence(session, record.run_id, evidence or {})
            plan = _row(session, record.run_id).plan_name
            note(
                session, "run.round", plan=plan, run_id=record.run_id, round=record.round, upper=record.upper,
                lower=record.lower, gap=record.gap,
            )
            note_answers(session, plan, record.run_id, record.round, record.answers)

    def get_exchange(self, run_id: str, round_: int, site_id: str) -> Exchange | None:
        """Task and answer of a committed round of an unfinished run; None where there are none."""
        with self._scope.read() as session:
            row = session.get(RunExchangeRow, (run_id, round_, site_id))
            return None if row is None else (row.task, row.answer)

    def get_evidence(self, run_id: str, site_id: str) -> bytes | None:
        """Evidence file against a site that contradicted itself; None where there is none."""
        with self._scope.read() as session:
            _row(session, run_id)
            row = session.get(EvidenceRow, (run_id, site_id))
            return None if row is None else row.document

    def keep_case(self, run_id: str, cohort: str, case: bytes) -> None:
        """Keep what an auditor is to get of a cohort, in the place of an earlier case of it."""
        with self._scope.write() as session:
            _row(session, run_id, lock=True)
            rounds.replace_case(session, run_id, cohort, case)

    def get_cases(self, run_id: str) -> dict[str, bytes]:
        """What is kept as evidence of a run, by site, or by cohort where it is a case for an auditor."""
        with self._scope.read() as session:
            _row(session, run_id)
            return rounds.read_evidence(session, run_id)

    def get_rounds(self, run_id: str, after: int = 0, limit: int | None = None) -> list[RoundRecord]:
        """Committed rounds later than ``after``, in order; raise ``NotFoundError`` for an unknown run."""
        with self._scope.read() as session:
            _row(session, run_id)
            return rounds.read_rounds(session, run_id, after, limit)

    def finish_run(self, run_id: str, status: str, reason: str) -> Run:
        """Set the final status, drop method state, frames and lease; once more with the same status changes nothing.

        A version that the run registered, and whose gates nobody judged, says from then on how its run ended.
        The state of a completed run whose plan starts warm stays, in the place of that of the plan's runs before.
        ``InvalidInputError`` for a status that is not final, ``ConflictError`` where the run has ended with another.
        """
        if status not in FINAL:
            raise InvalidInputError(f"a run ends {', '.join(FINAL)}, not {status}")
        with self._scope.write() as session:
            row = _row(session, run_id, lock=True)
            if row.status in FINAL and row.status != status:
                raise ConflictError(f"run {run_id} has ended already: {row.status}")
            if row.status not in FINAL:
                row.status, row.reason, row.updated_at = status, sentence(reason), utc_now(session)
                row.lease_owner = row.lease_until = None
                plan = Plan.model_validate(row.plan)
                if status != "completed" or not plan.warm_start or plan.noise is not None:
                    run_states.drop_state(session, run_id)
                if status == "completed":
                    for other in session.scalars(_earlier(row)):
                        run_states.drop_state(session, other)
                rounds.drop_exchanges(session, run_id)
                note(session, _ENDS[status], plan=row.plan_name, run_id=run_id, reason=reason)
                if status != "completed":
                    tell_unfinished(session, run_id, f"its run {status} after it was registered: {reason}")
            return Run.of_record(row)

    def request_cancel(self, run_id: str) -> Run:
        """Ask the process that drives the run to stop; ``ConflictError`` when the run has ended."""
        return self._change(run_id, UNFINISHED_STATUSES, "cancelled", cancel_requested=True)

    def set_flow_run_id(self, run_id: str, flow_run_id: str) -> Run:
        """Say which flow run drives the run."""
        return self._change(run_id, UNFINISHED_STATUSES, "given a flow run", flow_run_id=flow_run_id)

    def set_result(self, run_id: str, mlflow_run_id: str, model_version: str) -> Run:
        """Say where the result stands in the registry."""
        found = {"mlflow_run_id": mlflow_run_id, "model_version": model_version}
        return self._change(run_id, UNFINISHED_STATUSES + FINAL, "given a result", **found)

    def renew_lease(self, run_id: str, owner: str, seconds: float) -> bool:
        """Take or prolong the lease; False when another's has not expired or the run has ended.

        One that ends later than any that is given now counts as expired: the clock was put back since.
        """
        with self._scope.write() as session:
            now = utc_now(session)
            expired = or_(RunRow.lease_until < now, RunRow.lease_until > _end_of_leases(now, seconds))
            free = or_(RunRow.lease_until.is_(None), expired, RunRow.lease_owner == owner)
            taken = session.execute(
                update(RunRow)
                .where(RunRow.run_id == run_id, RunRow.status.in_(UNFINISHED_STATUSES), free)
                .values(lease_owner=owner, lease_until=now + timedelta(seconds=seconds))
            )
            if rows_touched(taken):
                return True
            _row(session, run_id)
            return False

    def release_lease(self, run_id: str, owner: str) -> None:
        """Give the lease back; nothing happens when it is another's."""
        with self._scope.write() as session:
            session.execute(
                update(RunRow)
                .where(RunRow.run_id == run_id, RunRow.lease_owner == owner)
                .values(lease_owner=None, lease_until=None, updated_at=utc_now(session))
            )

    def _runs(self, wanted: Select[tuple[RunRow]]) -> list[Run]:
        with self._scope.read() as session:
            return [Run.of_record(row) for row in session.scalars(wanted)]

    def _change(self, run_id: str, allowed: Sequence[str], done: str, **values: Any) -> Run:
        with self._scope.write() as session:
            return _changed(session, run_id, allowed, done, **values)


def _end_of_leases(now: datetime, seconds: float) -> datetime:
    """No lease that is given for ``seconds`` ends later; twice as much, as two clocks may differ a little."""
    return now + timedelta(seconds=2 * seconds)


def _changed(session: Session, run_id: str, allowed: Sequence[str], done: str, **values: Any) -> Run:
    row = _row(session, run_id, lock=True)
    if row.status not in allowed:
        code = OVERTAKEN if row.status == "running" else None
        raise ConflictError(f"run {run_id} is {row.status} and cannot be {done}", code=code)
    for name, value in values.items():
        setattr(row, name, value)
    row.updated_at = utc_now(session)
    return Run.of_record(row)


def _row(session: Session, run_id: str, *, lock: bool = False) -> RunRow:
    return stored_row(session, RunRow, run_id, f"no run {run_id}", lock=lock)


def _earlier(row: RunRow) -> Select[tuple[str]]:
    """Ended runs of the same plan but this one."""
    return select(RunRow.run_id).where(
        RunRow.plan_name == row.plan_name, RunRow.run_id != row.run_id, RunRow.status.in_(FINAL)
    )


def _why_not(row: RunRow, wanted: int) -> str:
    if row.status != "running":
        return f"run {row.run_id} is {row.status}: round {wanted} cannot be committed"
    return f"round {wanted} of run {row.run_id} cannot be committed: the next is round {row.rounds + 1}"
