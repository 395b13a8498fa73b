"""The method state of an unfinished run: what is of the present, and round by round what was added to it.

A commit replaces the present arrays and adds one part with the rows that the round added to those that grow; reading
puts the parts together. A part says at which row each of its arrays goes on; one that begins at row 0 replaces what
stood there of that array, and where all begin there, as after an exclusion, the parts before it are deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Select, bindparam, delete, insert, select, update
from sqlalchemy.orm import Session

from models.basics import FloatArray
from models.methods.growth import Added
from services.contracts.errors import BallastError
from services.contracts.wire.codec import Frame, FrameError, pack_arrays, unpack
from services.round_store.database.queries import rows_touched, table_of
from services.round_store.tables.runs import RunStatePartRow, RunStateRow

_PART = insert(table_of(RunStatePartRow))
_FIRST = insert(table_of(RunStateRow))
_NEXT = update(table_of(RunStateRow)).where(RunStateRow.run_id == bindparam("of_run"))


class DamagedStateError(BallastError):
    """The stored state of a run is not what was committed."""

    code = "damaged_state"


def replace_state(
    session: Session, run_id: str, round_: int, present: Mapping[str, FloatArray], added: Mapping[str, Added]
) -> None:
    """Put the method state after a round in the place of the one before it, of which the parts are kept."""
    if all(each.start == 0 for each in added.values()):
        session.execute(delete(RunStatePartRow).where(RunStatePartRow.run_id == run_id))
    if added:
        starts = {name: [each.axis, each.start] for name, each in added.items()}
        header = {"run_id": run_id, "round": round_, "starts": starts}
        frame = pack_arrays(header, {name: each.rows for name, each in added.items()})
        session.execute(_PART, {"run_id": run_id, "round": round_, "frame": frame})
    grown = {name: each.start + each.rows.shape[each.axis] for name, each in added.items()}
    values = {"round": round_, "frame": pack_arrays({"run_id": run_id, "round": round_, "grown": grown}, present)}
    found = session.execute(_NEXT, {"of_run": run_id, **values})
    if not rows_touched(found):
        session.execute(_FIRST, {"run_id": run_id, **values})


def read_state(session: Session, run_id: str) -> tuple[int, dict[str, FloatArray]] | None:
    """Last committed round and the state after it; :class:`DamagedStateError` where it is not what was committed."""
    row = session.get(RunStateRow, run_id)
    if row is None:
        return None
    header, frame = _frame(run_id, row.round, row.frame)
    grown = header.pop("grown", {})  # a state from before there were parts has all of it in its frame
    if header:
        raise DamagedStateError(f"the stored state of run {run_id} is damaged: its header is not one of a state")
    wanted = select(RunStatePartRow).where(RunStatePartRow.run_id == run_id).order_by(RunStatePartRow.round)
    parts: dict[str, list[FloatArray]] = {}
    rows: dict[str, int] = {}
    axes: dict[str, int] = {}
    for part in session.scalars(wanted):
        header, of_round = _frame(run_id, part.round, part.frame)
        for name, (axis, start) in header["starts"].items():
            if start == 0:
                parts[name], rows[name], axes[name] = [], 0, axis
            if rows.get(name) != start or axes[name] != axis or part.round > row.round:
                raise DamagedStateError(f"the stored state of run {run_id} is damaged: a part of it is missing")
            parts[name].append(of_round.arrays[name])
            rows[name] += of_round.arrays[name].shape[axis]
    if {name: rows.get(name) for name in grown} != grown:
        raise DamagedStateError(f"the stored state of run {run_id} is damaged: a part of it is missing")
    joined = {name: np.concatenate(parts[name], axis=axes[name]) for name in grown}
    return row.round, {**joined, **frame.arrays}


def drop_states(session: Session, runs: Select[tuple[str]] | Sequence[str]) -> None:
    """Forget the method states of runs, by their ids or by a query, in two statements however many they are."""
    for table in (RunStatePartRow, RunStateRow):
        session.execute(delete(table_of(table)).where(table.run_id.in_(runs)))


def _frame(run_id: str, round_: int, stored: bytes) -> tuple[dict[str, Any], Frame]:
    """Header without the run and the round, which must be these, and the frame."""
    try:
        frame = unpack(stored)
    except FrameError as error:
        raise DamagedStateError(f"the stored state of run {run_id} is damaged: {error}") from None
    header = dict(frame.header)
    if (header.pop("run_id", None), header.pop("round", None)) != (run_id, round_):
        raise DamagedStateError(f"the stored state of run {run_id} belongs to another run or round")
    return header, frame
