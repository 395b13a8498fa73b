"""Rounds between rows and contracts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from services.contracts.errors import InvalidInputError
from services.contracts.history.run import Exchange, ExcludedSite, RoundRecord, SiteAnswer
from services.round_store.database.documents import sentence
from services.round_store.database.many_rows import insert_rows
from services.round_store.database.queries import table_of
from services.round_store.tables.runs import EvidenceRow, RoundRow, RunExchangeRow, SiteUpdateRow

_ROUND = insert(table_of(RoundRow))
"""Made once: making a statement costs as much as carrying it out."""


def check_record(record: RoundRecord) -> None:
    """Raise :class:`InvalidInputError` for a round that must not be stored: no number, or a site twice."""
    numbers = {name: getattr(record, name) for name in ("seconds", "upper", "lower", "gap", "fresh_weight")}
    wrong = sorted(name for name, value in numbers.items() if math.isnan(value))
    if wrong:
        raise InvalidInputError(f"round {record.round}: {', '.join(wrong)} is not a number")
    told = Counter(answer.site_id for answer in record.answers)
    twice = sorted(site for site, times in told.items() if times > 1)
    if twice:
        raise InvalidInputError(f"round {record.round}: more than one answer of site {', '.join(twice)}")


def insert_round(session: Session, record: RoundRecord, now: datetime) -> None:
    """Write the round and what each site answered."""
    row = record.model_dump(exclude={"answers"})
    session.execute(_ROUND, row | {"committed_at": now})
    of_round = {"run_id": record.run_id, "round": record.round}
    insert_rows(session, table_of(SiteUpdateRow), [of_round | dict(cleaned(answer)) for answer in record.answers])


def exclusions(record: RoundRecord) -> list[ExcludedSite]:
    """Sites that the run goes on without from this round on."""
    return [
        ExcludedSite.of_record(cleaned(answer), round=record.round)
        for answer in record.answers
        if answer.status == "excluded"
    ]


def insert_exchanges(session: Session, record: RoundRecord, exchanges: Mapping[str, Exchange]) -> None:
    """Keep the frames that crossed the border in a round, by site, under the round of the question."""
    asked = {answer.site_id: answer.question or record.round for answer in record.answers}
    insert_rows(session, table_of(RunExchangeRow), [
        {"run_id": record.run_id, "round": asked.get(site, record.round), "site_id": site, "task": task, "answer": said}
        for site, (task, said) in exchanges.items()
    ])


def insert_evidence(session: Session, run_id: str, evidence: Mapping[str, bytes]) -> None:
    """Keep what proves that sites contradicted themselves."""
    rows = [{"run_id": run_id, "site_id": site, "document": found} for site, found in evidence.items()]
    insert_rows(session, table_of(EvidenceRow), rows)


def replace_case(session: Session, run_id: str, cohort: str, case: bytes) -> None:
    """Keep a case for an auditor as evidence, under the name of its cohort."""
    session.execute(delete(EvidenceRow).where(EvidenceRow.run_id == run_id, EvidenceRow.site_id == cohort))
    insert_evidence(session, run_id, {cohort: case})


def read_evidence(session: Session, run_id: str) -> dict[str, bytes]:
    """What is kept of a run, by site or cohort."""
    rows = session.scalars(select(EvidenceRow).where(EvidenceRow.run_id == run_id).order_by(EvidenceRow.site_id))
    return {row.site_id: row.document for row in rows}


def drop_exchanges(session: Session, run_id: str) -> None:
    """Forget the frames of a run."""
    session.execute(delete(RunExchangeRow).where(RunExchangeRow.run_id == run_id))


def read_rounds(session: Session, run_id: str, after: int, limit: int | None) -> list[RoundRecord]:
    """Rounds later than ``after``, in order, with their answers by site."""
    wanted = select(RoundRow).where(RoundRow.run_id == run_id, RoundRow.round > after).order_by(RoundRow.round)
    rows = session.scalars(wanted.limit(limit)).all()
    if not rows:
        return []
    answers: dict[int, list[SiteAnswer]] = {row.round: [] for row in rows}
    columns = [getattr(SiteUpdateRow, name) for name in ("round", *SiteAnswer.model_fields)]
    between = SiteUpdateRow.round.between(rows[0].round, rows[-1].round)
    updates = select(*columns).where(SiteUpdateRow.run_id == run_id, between).order_by(SiteUpdateRow.site_id)
    for update_ in session.execute(updates):
        answers[update_.round].append(SiteAnswer.of_record(update_))
    return [RoundRecord.of_record(row, answers=tuple(answers[row.round])) for row in rows]


def cleaned(answer: SiteAnswer) -> SiteAnswer:
    """Answer whose code and reason, which may come from a site, are cut and cleaned."""
    if not answer.code and not answer.reason:  # as of nearly all
        return answer
    code, reason = sentence(answer.code, 80), sentence(answer.reason)
    if (code, reason) == (answer.code, answer.reason):
        return answer
    return answer.model_copy(update={"code": code, "reason": reason})
