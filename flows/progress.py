"""Progress of a run: a line a second in the terminal, and artifacts in Prefect."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from uuid import UUID

from prefect.artifacts import acreate_progress_artifact, aupdate_progress_artifact
from prefect.logging import get_run_logger

from flows.artifacts import RunBoard, unless_away
from services.contracts.history.run import RoundRecord, Run

SHORTEST_INTERVAL_SECONDS = 1.0  # between two lines in the terminal, however quick the rounds are
BOARD_SECONDS = 10.0  # between two writings of table and chart
PAUSE = 10.0
"""So many times as long as Prefect took for what its pages show it is left alone: one that hangs holds up no run."""


class Progress:
    """Reports rounds as they are committed, at most once a second.

    Progress is how far the gap has come from its first value to the wanted one on a logarithmic scale, or the share of
    the round limit that is used up, whichever is further.
    """

    def __init__(self, run: Run, rounds: Sequence[RoundRecord] = ()) -> None:
        """``rounds`` are those of the run before this process took it up."""
        self._run = run
        self._board = RunBoard(run, rounds)
        self._shown_at = time.monotonic()
        self._artifact: UUID | None = None
        self._first_gap = math.nan
        self._told_at = self._write_at = 0.0
        self._log = get_run_logger()

    async def __call__(self, record: RoundRecord) -> None:
        """Tell of a round."""
        self._board.note(record)
        if math.isnan(self._first_gap) and math.isfinite(record.gap):
            self._first_gap = record.gap
        if time.monotonic() - self._told_at < SHORTEST_INTERVAL_SECONDS:
            return
        self._told_at = began = time.monotonic()
        self._tell(record)
        if began < self._write_at:
            return
        await self._write(self.percentage(record))
        if time.monotonic() - self._shown_at >= BOARD_SECONDS:
            await self._board.write()
            self._shown_at = time.monotonic()
        self._write_at = time.monotonic() + PAUSE * (time.monotonic() - began)

    async def finish(self, rounds: int, gap: float) -> None:
        """Tell that training has ended."""
        self._log.info("training ended after %d rounds with a certified gap of %.2e", rounds, gap)
        if self._artifact is not None:
            async with unless_away("progress of the run"):
                await aupdate_progress_artifact(self._artifact, 100.0)

    async def show(self) -> None:
        """Write table and chart as they stand, also of a run that fails: the table says who was missing."""
        await self._board.write()

    def percentage(self, record: RoundRecord) -> float:
        """Progress in percent."""
        plan = self._run.plan
        by_rounds = record.round / plan.max_rounds
        by_gap = 0.0
        if 0 < record.gap < self._first_gap and self._first_gap > plan.gap:
            by_gap = math.log(self._first_gap / record.gap) / math.log(self._first_gap / plan.gap)
        return min(99.0, 100.0 * max(by_rounds, by_gap))

    def _tell(self, record: RoundRecord) -> None:
        there = [answer.site_id for answer in record.answers if answer.status == "accepted"]
        away = [f"{answer.site_id} ({answer.code})" for answer in record.answers if answer.status != "accepted"]
        self._log.info(
            "round %d: gap %.2e, worst-case risk at most %.5f, %d sites%s", record.round, record.gap, record.upper,
            len(there), f", without {', '.join(away)}" if away else "",
        )

    async def _write(self, percentage: float) -> None:
        async with unless_away("progress of the run"):
            if self._artifact is None:
                self._artifact = await acreate_progress_artifact(
                    progress=percentage, key=f"run-{self._run.run_id[:12]}",
                    description=f"Training of plan {self._run.plan.name}, run {self._run.run_id}",
                )
            else:
                await aupdate_progress_artifact(self._artifact, percentage)
