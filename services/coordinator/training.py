"""The run of a plan, from the first question to the evaluated model: join, rounds, couple, evaluate."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from models.basics import FloatArray
from models.problem import Status
from services.contracts.evaluation.calibration import Calibration
from services.contracts.history.run import RoundRecord, Run
from services.contracts.machines.asset_type import AssetType
from services.coordinator.asking.ports import RunStore, SiteTransport
from services.coordinator.beginning.coupling import PlaneCoupling
from services.coordinator.beginning.joining import Joining
from services.coordinator.ending.judging import Judging
from services.coordinator.round_loop.rounds import Rounds
from services.coordinator.round_loop.run_parts import RunParts
from services.coordinator.run_state.evaluation import Evaluation
from services.coordinator.run_state.noisy_sums import most_rounds
from services.coordinator.run_state.training_state import TrainedModel, Training
from services.process.log_lines import about
from services.process.tracing import span

LOG = logging.getLogger("ballast.coordinator")
Progress = Callable[[RoundRecord], Awaitable[None]]


class Coordinator:
    """Runs plans. It holds nothing between calls but its parts: all that a run needs to go on is in the store.

    ``keys`` are the public keys of the sites that may take part, by site id.
    """

    def __init__(
        self, store: RunStore, transport: SiteTransport, keys: Mapping[str, str], asset_type: AssetType
    ) -> None:
        self._parts = RunParts(store, transport, keys, asset_type)
        self._joining, self._rounds = Joining(self._parts), Rounds(self._parts)
        self._judging = Judging(self._parts, self._rounds)
        self._coupling = PlaneCoupling(self._parts, self._joining)

    async def join(self, run: Run) -> Run:
        """Ask who takes part and fix the sites of the run with their scalars; a run that has them goes on as it is.

        ``TooFewSitesError`` or ``RunCancelledError`` where there is nobody to train with, or nobody wants it;
        ``InvalidInputError`` where the plan's loss does not fit the asset type, or the plan weighs some of the sites
        that are asked, or its weights do not sum to 1.
        """
        return await self._joining.join(run)

    async def tune(self, run: Run) -> Run:
        """Choose the terms of a run that has no round yet, where its plan says so; the run goes on with them.

        Nothing is stored before the choice, so a coordinator that is killed tunes again.

        ``TooFewSitesError`` or ``RunCancelledError`` as for the rounds; ``InvalidInputError`` where the budget does not
        pay for the grid, or nothing could be scored.
        """
        return await self._joining.tune(run)

    async def train(
        self, run: Run, progress: Progress | None = None, judged: Evaluation | None = None
    ) -> TrainedModel:
        """Run rounds from the last committed one until the method says stop or the plan's round limit is reached.

        ``judged``: an evaluation that convicted sites; without them it goes on, for a round at least.

        A site whose answers cannot be true is excluded: its cuts leave the bounds, and the run goes on without it, also
        after a resume. The store's record of the run then names it.

        ``TooFewSitesError`` or ``RunCancelledError`` where fewer sites than the plan needs answer or are left, or
        nobody wants the model; ``ContradictingAnswersError`` where the answers contradict one another, and no site's
        contradict themselves.
        """
        try:
            return await self._train(run, progress, judged)
        finally:
            await self._rounds.end()

    async def _train(self, run: Run, progress: Progress | None, judged: Evaluation | None) -> TrainedModel:
        at = self._parts.committed(run)
        if at.number:
            LOG.info("run %s goes on after round %d", run.run_id, at.number)
        status = at.status() if at.number else Status.CONTINUE
        stored: Training | None = None  # the first commit writes the whole state, whatever wrote it before
        while judged is not None or status is Status.CONTINUE and at.number < most_rounds(run.plan):
            self._parts.check_cancelled(run)
            number = at.number + 1
            with about(round=number), span("round", run_id=run.run_id, round=number) as more:
                at, record, kept = await self._rounds.round(replace(at, number=number), judged)
                more["accepted"] = sum(each.status == "accepted" for each in record.answers)
                with span("commit", run_id=run.run_id, round=number):
                    change = at.change_since(stored)
                    self._parts.store.commit_round(record, change.present, kept.exchanges, kept.evidence, change.added)
            judged = None
            stored = at
            status = at.status()
            if progress is not None:
                await progress(record)
        if run.plan.audit == "every round":
            question = self._parts.question(at.run, "round", at.number, {}, at.shapes)
            await self._parts.summed(at.run).open_every_round(at, question)
        return at.trained(status)

    async def couple(self, run: Run, trained: TrainedModel) -> TrainedModel:
        """The model with its planes coupled, where the run is of several classes and its plan has "auto"; else itself.

        Nothing of it is stored, so a coordinator that is killed couples again. ``RunCancelledError`` as for the rounds;
        where not every plant answers the planes stay as they are, and the model's note says so.
        """
        return await self._coupling.couple(run, trained)

    async def evaluate(self, run: Run, weights: FloatArray, risk_bound: float = math.inf) -> Evaluation:
        """Ask each site for its worst-case risk and its held-out scores under the weights, shape (K, P + 1).

        ``risk_bound`` stands in for the worst-case risk where a site does not tell its own. A regression asks twice:
        the interval whose coverage the sites count follows from the risk. On sums a site's own scores are told where
        its policy releases them; where one does not, the cohorts' sums are asked for as well. A site whose risks
        contradict what it answered in the rounds is ``convicted``; nothing of its answer counts.
        """
        return await self._judging.evaluate(run, weights, risk_bound)

    async def calibrate(self, run: Run, weights: FloatArray) -> Calibration:
        """What the plants count of their held-out rows under the weights, shape (K, P + 1), and what follows from it.

        One exchange more than the evaluation, of whole numbers alone. A plant that does not count is missing from it,
        and no run fails by it. On sums a plant's own counts are told where its policy releases its scores; where one
        does not, the cohorts' sums are all that is used.
        """
        return await self._judging.calibrate(run, weights)
