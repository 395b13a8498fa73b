"""The draft of an unfinished run's version: what training and evaluation left, committed before the registry is asked.

It is an intent: whoever goes on with the run registers this version, and asks no plant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete
from sqlalchemy.orm import Session

from services.contracts.errors import InvalidInputError
from services.contracts.wire.codec import pack_arrays, unpack
from services.round_store.runs.run_states import DamagedStateError
from services.round_store.tables.runs import RunDraftRow

if TYPE_CHECKING:
    from services.contracts.versions.draft import VersionDraft


def insert_draft(session: Session, run_id: str, draft: VersionDraft) -> None:
    """Write the draft of a run that has none."""
    header = {"run_id": run_id, "version": draft.version.to_document(), "stopped": draft.stopped}
    arrays = {} if draft.counts is None else {"counts": draft.counts}
    session.add(RunDraftRow(run_id=run_id, frame=pack_arrays(header, arrays), certificate=draft.certificate))


def read_draft(session: Session, run_id: str) -> VersionDraft | None:
    """The draft, None where there is none; :class:`DamagedStateError` where it is not what was committed."""
    from services.contracts.versions.draft import VersionDraft  # most who look at runs ask for no draft
    from services.contracts.versions.model_version import ModelVersion

    row = session.get(RunDraftRow, run_id)
    if row is None:
        return None
    try:
        frame = unpack(row.frame)
        version = ModelVersion.from_document(frame.header["version"])
        stopped = str(frame.header["stopped"])
    except (InvalidInputError, KeyError, TypeError) as error:
        raise DamagedStateError(f"the stored draft of run {run_id} is damaged: {error}") from None
    if version.run_id != run_id:
        raise DamagedStateError(f"the stored draft of run {run_id} belongs to run {version.run_id}")
    return VersionDraft(version, stopped, row.certificate, frame.arrays.get("counts"))


def drop_draft(session: Session, run_id: str) -> None:
    """Forget the draft."""
    session.execute(delete(RunDraftRow).where(RunDraftRow.run_id == run_id))
