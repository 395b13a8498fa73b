"""Rounds of runs: committed one after the other with the method state, and read again."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import bindparam, select, update

from models.basics import FloatArray
from models.methods.growth import Added
from services.contracts.errors import ConflictError
from services.contracts.history.run import Exchange, RoundRecord
from services.round_store.database.documents import document, sentence
from services.round_store.database.queries import rows_touched, table_of
from services.round_store.database.session import Repository, utc_now
from services.round_store.operation.events import note, note_answers
from services.round_store.runs import rounds, run_states
from services.round_store.runs.run_rows import FINAL, OVERTAKEN, run_row
from services.round_store.tables.runs import EvidenceRow, RunExchangeRow, RunRow

_TAKEN = update(table_of(RunRow)).where(
    RunRow.run_id == bindparam("of_run"), RunRow.status == "running", RunRow.rounds == bindparam("before")
)
"""Takes the row's lock and decides who commits a round. Made once, as making a statement costs as much as its work."""
_PLAN = select(table_of(RunRow).c.plan_name).where(RunRow.run_id == bindparam("of_run"))


class RoundRepository(Repository):
    """Rounds of runs, the frames and the evidence that came with them, and the method state after the last."""

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
            now = utc_now(session)
            bounds = {name: getattr(record, name) for name in ("upper", "lower", "gap", "fresh_weight")}
            of_round = {"of_run": record.run_id, "before": record.round - 1, "rounds": record.round}
            taken = session.execute(_TAKEN, of_round | bounds | {"updated_at": now})
            if not rows_touched(taken):
                row = run_row(session, record.run_id)
                code = OVERTAKEN if row.status == "running" else None
                raise ConflictError(_why_not(row, record.round), code=code)
            rounds.insert_round(session, record, now)
            if left_out := rounds.exclusions(record):
                row = run_row(session, record.run_id)
                row.excluded = [*row.excluded, *map(document, left_out)]
            run_states.replace_state(session, record.run_id, record.round, state, added or {})
            rounds.insert_exchanges(session, record, exchanges or {})
            rounds.insert_evidence(session, record.run_id, evidence or {})
            plan: str = session.execute(_PLAN, {"of_run": record.run_id}).scalar_one()
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
            run_row(session, run_id)
            row = session.get(EvidenceRow, (run_id, site_id))
            return None if row is None else row.document

    def keep_case(self, run_id: str, cohort: str, case: bytes) -> None:
        """Keep what an auditor is to get of a cohort, in the place of an earlier case of it."""
        with self._scope.write() as session:
            run_row(session, run_id, lock=True)
            rounds.replace_case(session, run_id, cohort, case)

    def add_verdict(self, run_id: str, found: str) -> None:
        """Say in the reason of a run what an auditor found of it since it ended, before what it ended with."""
        with self._scope.write() as session:
            row = run_row(session, run_id, lock=True)
            if row.status in FINAL:
                row.reason = sentence(f"{found}; before the verdict: {row.reason}" if row.reason else found)
                row.updated_at = utc_now(session)

    def get_cases(self, run_id: str) -> dict[str, bytes]:
        """What is kept as evidence of a run, by site, or by cohort where it is a case for an auditor."""
        with self._scope.read() as session:
            run_row(session, run_id)
            return rounds.read_evidence(session, run_id)

    def get_rounds(self, run_id: str, after: int = 0, limit: int | None = None) -> list[RoundRecord]:
        """Committed rounds later than ``after``, in order; raise ``NotFoundError`` for an unknown run."""
        with self._scope.read() as session:
            run_row(session, run_id)
            return rounds.read_rounds(session, run_id, after, limit)

    def load_state(self, run_id: str) -> tuple[int, dict[str, FloatArray]] | None:
        """Last committed round and the method state after it; None before the first round and after the end."""
        with self._scope.read() as session:
            ended = run_row(session, run_id).status in FINAL
            return None if ended else run_states.read_state(session, run_id)

    def load_end(self, run_id: str) -> dict[str, FloatArray] | None:
        """Method state at the end of a completed run, from which the plan's next one goes on; None where it is gone."""
        with self._scope.read() as session:
            kept = run_states.read_state(session, run_id) if run_row(session, run_id).status == "completed" else None
            return None if kept is None else kept[1]


def _why_not(row: RunRow, wanted: int) -> str:
    if row.status != "running":
        return f"run {row.run_id} is {row.status}: round {wanted} cannot be committed"
    return f"round {wanted} of run {row.run_id} cannot be committed: the next is round {row.rounds + 1}"
