"""Runs: their life from pending to an end."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, and_, bindparam, or_, select

from services.contracts.errors import ConflictError, InvalidInputError, NotFoundError
from services.contracts.history.events import EventKind
from services.contracts.history.run import Leaving, Run, RunStart, RunStatus, SiteAnswer, SiteTermsRecord
from services.contracts.plans.plan import TUNE_ONLY, Plan
from services.round_store.database.documents import document, sentence
from services.round_store.database.queries import insert_new, narrowed, page, table_of
from services.round_store.database.session import utc_now
from services.round_store.operation.events import note, note_answers, note_drift
from services.round_store.runs import rounds, run_drafts, run_states
from services.round_store.runs.model_versions import tell_unfinished
from services.round_store.runs.run_leases import LeaseRepository
from services.round_store.runs.run_rounds import RoundRepository
from services.round_store.runs.run_rows import FINAL, OVERTAKEN, changed, run_row
from services.round_store.tables.runs import UNFINISHED_STATUSES, RunRow

if TYPE_CHECKING:
    from services.contracts.versions.draft import VersionDraft

_TRAINS = RunRow.plan["overrides"][TUNE_ONLY].as_boolean().is_not(True)
"""Not of the runs that tune alone."""
_CANCELLED = select(table_of(RunRow).c.cancel_requested).where(RunRow.run_id == bindparam("of_run"))
_ENDS: dict[str, EventKind] = {"completed": "run.completed", "failed": "run.failed", "cancelled": "run.cancelled"}


def new_run_id() -> str:
    """Id of a new run; by it the cohorts of a run on sums are dealt."""
    return uuid.uuid4().hex


class RunRepository(RoundRepository, LeaseRepository):
    """Runs, rounds and method state; what the coordinator calls its ``RunStore``."""

    def create_run(self, plan: Plan, run_id: str | None = None, leaving: Leaving | None = None) -> Run:
        """New pending run of a plan, without a plant that left where one is given.

        ``ConflictError`` while the plan has an unfinished one, or the id is taken.
        """
        with self._scope.write() as session:
            now = utc_now(session)
            run = Run(
                run_id=run_id or new_run_id(), plan=plan, status="pending", created_at=now, updated_at=now,
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
            taken = f"plan {plan.name} has an unfinished run, or run {run.run_id} is there"
            insert_new(session, row, taken, code=None if run_id else "run_unfinished")
            return run

    def get_run(self, run_id: str) -> Run:
        """Run by id; raise ``NotFoundError``."""
        with self._scope.read() as session:
            return Run.of_record(run_row(session, run_id))

    def is_cancelled(self, run_id: str) -> bool:
        """Whether somebody asked that the run stop; raise ``NotFoundError``. Asked in each round, so of one column."""
        with self._scope.read() as session:
            found: bool | None = session.execute(_CANCELLED, {"of_run": run_id}).scalar()
            if found is None:
                raise NotFoundError(f"no run {run_id}")
            return found

    def list_runs(
        self, plan: str | None = None, status: RunStatus | None = None, limit: int = 100, offset: int = 0,
        after: tuple[datetime, str] | None = None, tunings: bool = True,
    ) -> list[Run]:
        """Runs, newest first; of one plan or status, or further down than ``after`` (time, id), where given.

        ``tunings``: also those that tuned and trained nothing.
        """
        newest_first = select(RunRow).order_by(RunRow.created_at.desc(), RunRow.run_id)
        wanted = narrowed(newest_first, (RunRow.plan_name, plan), (RunRow.status, status))
        if not tunings:
            wanted = wanted.where(_TRAINS)
        if after is not None:
            at, run_id = after
            wanted = wanted.where(or_(RunRow.created_at < at, and_(RunRow.created_at == at, RunRow.run_id > run_id)))
        return self._runs(page(wanted, limit, offset))

    def unfinished_runs(self, plan: str | None = None) -> list[Run]:
        """Pending and running runs, oldest first."""
        wanted = select(RunRow).where(RunRow.status.in_(UNFINISHED_STATUSES)).order_by(RunRow.created_at, RunRow.run_id)
        return self._runs(narrowed(wanted, (RunRow.plan_name, plan)))

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
            run = changed(session, run_id, ("pending",), "begun", **began)
            note(session, "run.begun", plan=run.plan.name, run_id=run_id)
            note_answers(session, run.plan.name, run_id, 0, run.absentees)
            note_drift(session, run)
            return run

    def samples_before(self, run_id: str) -> dict[str, int]:
        """Rows that each site said it had in the last completed run of this run's plan; {} where there is none."""
        return {site.site_id: site.n_samples for last in self.completed_before(run_id) for site in last.sites}

    def completed_before(self, run_id: str, limit: int = 1, *, tunings: bool = False) -> list[Run]:
        """Completed runs of this run's plan, the last one first; ``tunings``: also those that trained nothing."""
        with self._scope.read() as session:
            plan = run_row(session, run_id).plan_name
            completed = select(RunRow).where(
                RunRow.plan_name == plan, RunRow.status == "completed", RunRow.run_id != run_id
            )
            if not tunings:
                completed = completed.where(_TRAINS)
            last = session.scalars(completed.order_by(RunRow.created_at.desc(), RunRow.run_id.desc()).limit(limit))
            return [Run.of_record(row) for row in last]

    def set_tuned(self, run_id: str, plan: Plan, sites: Sequence[SiteTermsRecord]) -> Run:
        """Give a run that has no round yet the terms that its tuning chose.

        ``ConflictError`` where it is not running, or (``OVERTAKEN``) has a round or was tuned already: by a process
        that went on while its lease had expired, from whose commits a later try goes on.
        """
        with self._scope.write() as session:
            row = run_row(session, run_id, lock=True)
            if row.status != "running" or row.rounds or Plan.model_validate(row.plan).tuned is not None:
                code = OVERTAKEN if row.status == "running" else None
                raise ConflictError(
                    f"run {run_id} is {row.status} after {row.rounds} rounds and cannot be tuned", code=code
                )
            row.plan, row.sites, row.updated_at = document(plan), [document(site) for site in sites], utc_now(session)
            return Run.of_record(row)

    def get_digests(self, run_id: str) -> dict[str, str]:
        """What each site said of its rows and terms when it joined, by site id; {} where nothing was."""
        with self._scope.read() as session:
            return dict(run_row(session, run_id).digests or {})

    def finish_run(self, run_id: str, status: str, reason: str, owner: str | None = None) -> Run:
        """Set the final status, drop state, draft, frames and lease; once more with the same status changes nothing.

        A version that the run registered, and whose gates nobody judged, says from then on how its run ended.
        The state of a completed run whose plan starts warm stays, in the place of that of the plan's runs before; one
        that tuned alone has none, and takes none's place.
        ``InvalidInputError`` for a status that is not final, ``ConflictError`` where the run has ended with another, or
        (``OVERTAKEN``) where an ``owner`` is given whose lease on it became another's: what ended there is not the run.
        An end whose commit was answered to nobody stands and is given back: no later try would find the run unfinished.
        """
        if status not in FINAL:
            raise InvalidInputError(f"a run ends {', '.join(FINAL)}, not {status}")
        with self._scope.write_for_certain() as session:
            row = run_row(session, run_id, lock=True)
            if row.status in FINAL and row.status != status:
                raise ConflictError(f"run {run_id} has ended already: {row.status}")
            if row.status not in FINAL:
                if owner is not None and row.lease_owner != owner:
                    raise ConflictError(f"run {run_id} was taken over by another process", code=OVERTAKEN)
                row.status, row.reason, row.updated_at = status, sentence(reason), utc_now(session)
                row.doing = ""
                row.lease_owner = row.lease_until = None
                plan = Plan.model_validate(row.plan)
                if status != "completed" or not plan.warm_start or plan.noise is not None:
                    run_states.drop_states(session, [run_id])
                if status == "completed" and not plan.tunes_only:
                    run_states.drop_states(session, _earlier(row))
                rounds.drop_exchanges(session, run_id)
                run_drafts.drop_draft(session, run_id)
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

    def set_doing(self, run_id: str, doing: str) -> None:
        """Say what an unfinished run does now; of one that has ended nothing is changed."""
        with self._scope.write() as session:
            row = run_row(session, run_id, lock=True)
            if row.status not in FINAL:
                row.doing, row.updated_at = sentence(doing), utc_now(session)

    def keep_draft(self, run_id: str, draft: VersionDraft) -> VersionDraft:
        """Commit the version that a run made, until the run ends; one that is there already stands, and is given back.

        ``ConflictError`` (``OVERTAKEN``) where another process has ended the run.
        """
        with self._scope.write() as session:
            row = run_row(session, run_id, lock=True)
            if row.status != "running":
                raise ConflictError(f"run {run_id} is {row.status} and makes no version", code=OVERTAKEN)
            known = run_drafts.read_draft(session, run_id)
            if known is None:
                run_drafts.insert_draft(session, run_id, draft)
            return known or draft

    def get_draft(self, run_id: str) -> VersionDraft | None:
        """The version that an unfinished run made; None before its evaluation is over, and after its end."""
        with self._scope.read() as session:
            return run_drafts.read_draft(session, run_id)

    def set_result(self, run_id: str, mlflow_run_id: str, model_version: str) -> Run:
        """Say where the result stands in the registry."""
        found = {"mlflow_run_id": mlflow_run_id, "model_version": model_version}
        return self._change(run_id, UNFINISHED_STATUSES + FINAL, "given a result", **found)

    def _runs(self, wanted: Select[tuple[RunRow]]) -> list[Run]:
        with self._scope.read() as session:
            return [Run.of_record(row) for row in session.scalars(wanted)]

    def _change(self, run_id: str, allowed: Sequence[str], done: str, **values: Any) -> Run:
        with self._scope.write() as session:
            return changed(session, run_id, allowed, done, **values)


def _earlier(row: RunRow) -> Select[tuple[str]]:
    """Ended runs of the same plan but this one."""
    return select(RunRow.run_id).where(
        RunRow.plan_name == row.plan_name, RunRow.run_id != row.run_id, RunRow.status.in_(FINAL)
    )
