"""One row of the table of runs: what the repositories of runs share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from services.contracts.errors import ConflictError
from services.contracts.history.run import Run
from services.round_store.database.queries import stored_row
from services.round_store.database.session import utc_now
from services.round_store.tables.runs import RunRow

FINAL = ("completed", "failed", "cancelled")
OVERTAKEN = "overtaken"
"""Code of the error where another process has driven an unfinished run further: nothing is wrong with the run."""


def run_row(session: Session, run_id: str, *, lock: bool = False) -> RunRow:
    """Row of a run, locked for this transaction where wanted; ``NotFoundError`` where there is none."""
    return stored_row(session, RunRow, run_id, f"no run {run_id}", lock=lock)


def changed(session: Session, run_id: str, allowed: Sequence[str], done: str, **values: Any) -> Run:
    """A run with other values; ``ConflictError`` where its status is not one of those that allow it."""
    row = run_row(session, run_id, lock=True)
    if row.status not in allowed:
        code = OVERTAKEN if row.status == "running" else None
        raise ConflictError(f"run {run_id} is {row.status} and cannot be {done}", code=code)
    for name, value in values.items():
        setattr(row, name, value)
    row.updated_at = utc_now(session)
    return Run.of_record(row)
