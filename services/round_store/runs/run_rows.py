"""One row of the table of runs: what the repositories of runs share."""

from __future__ import annotations

from sqlalchemy.orm import Session

from services.round_store.database.queries import stored_row
from services.round_store.tables.runs import RunRow

FINAL = ("completed", "failed", "cancelled")
OVERTAKEN = "overtaken"
"""Code of the error where another process has driven an unfinished run further: nothing is wrong with the run."""


def run_row(session: Session, run_id: str, *, lock: bool = False) -> RunRow:
    """Row of a run, locked for this transaction where wanted; ``NotFoundError`` where there is none."""
    return stored_row(session, RunRow, run_id, f"no run {run_id}", lock=lock)
