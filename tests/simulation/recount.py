"""Rounds computed once more: each follows from the answers that it names and the rounds before it, counted once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from services.contracts.history.run import RoundRecord, Run
from services.contracts.machines.asset_type import AssetType
from services.contracts.wire.codec import unpack
from services.coordinator.training import Coordinator
from tests.simulation.steps import Steps


def recounted(
    run: Run, records: Sequence[RoundRecord], frames: Mapping[str, bytes], asset_type: AssetType,
    steps: Steps | None = None,
) -> tuple[int, str]:
    """Number of rounds that were computed once more, and what does not come out; empty where all does.

    ``frames`` are the answers by their SHA-256. A run on single answers; of one that goes on from an earlier run, or
    has late answers, the ``steps`` must have been watched. Where an answer of a round is not among the frames, the
    count ends before that round.
    """
    again = Coordinator(None, None, {site.site_id: "" for site in run.sites}, asset_type)
    at = again._parts.training(run.model_copy(update={"excluded": ()}))
    if run.start is not None and run.start.after is not None:
        if steps is None:
            return 0, ""
        at = replace(at, state=steps.begun.get(run.run_id, at.state))
    for record in records:
        at = replace(at, number=record.round)
        if convicted := [each for each in record.answers if each.status == "excluded"]:
            at = again._rounds.without(at, convicted)
        accepted = [each for each in record.answers if each.status == "accepted"]
        if any(each.payload_sha256 not in frames for each in accepted):
            return record.round - 1, ""
        answers = {each.site_id: unpack(frames[each.payload_sha256]).arrays for each in accepted}
        at = at.held_to(answers)
        if at.server.answers_late:
            due = frozenset(each.site_id for each in record.answers if each.status == "open")
            step = (run.run_id, record.round, frozenset(answers), due)
            if steps is None or step not in steps.away:
                return record.round - 1, "" if steps is None else f"nobody made the step to round {record.round}"
            at = at.stepped(answers, due, steps.away[step])
        else:
            at = at.stepped(answers)
        certificate = at.server.certificate(at.state)
        for bound in ("upper", "lower"):
            found, said = getattr(certificate, bound), getattr(record, bound)
            if not np.isclose(found, said, rtol=1e-7, atol=1e-9, equal_nan=True):
                where = f"{bound} bound of round {record.round} of run {run.run_id[:8]}"
                return record.round, f"{where} is {said!r}, its answers give {found!r}"
    return len(records), ""
