"""After the last round of a run: what the sites tell of the model, of themselves and of their held-out rows."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from models.basics import Arrays, FloatArray
from models.conformal.grid import GRID_NUMBER
from models.conformal.spread import SPREAD_GRID_NUMBER
from models.cuts.contradiction import Contradiction
from models.methods.catalogue import get_method
from services.contracts.evaluation.calibration import Calibration, calibration_shapes
from services.contracts.evaluation.scores import REGRESSION_SUMS
from services.contracts.history.run import Run, SiteAnswer
from services.contracts.problems.all_scores import trained_heads
from services.coordinator.asking.poll import Poll, doubt_of
from services.coordinator.ending.calibration import calibration, kind_of
from services.coordinator.ending.final_answers import (
    arrays_but_of,
    excluded_at_the_end,
    false_ends,
    with_accounts,
    with_answers_held,
    with_counts_held,
    with_sums_held,
)
from services.coordinator.round_loop.rounds import Rounds
from services.coordinator.round_loop.run_parts import RunParts
from services.coordinator.run_state.evaluation import Evaluation, Scores, ScoresOnSums, interval_ends
from services.coordinator.run_state.terms import cohorts_of

LOG = logging.getLogger("ballast.coordinator")


class Judging:
    """Asks the sites of a trained model."""

    def __init__(self, parts: RunParts, rounds: Rounds) -> None:
        self._parts = parts
        self._rounds = rounds

    async def evaluate(self, run: Run, weights: FloatArray, risk_bound: float = math.inf) -> Evaluation:
        """As :meth:`services.coordinator.training.Coordinator.evaluate` says."""
        arrays = {"weights": weights}
        heads = trained_heads(run.plan.spec, self._parts.asset_type)
        shapes: dict[str, tuple[int, ...]] = {"risk": (heads,), "loss": ()}
        if run.plan.spec.loss.task == "regression":
            arrays["interval"] = interval_ends(run.plan, math.inf)
            shapes |= dict.fromkeys(REGRESSION_SUMS, ())
        else:
            shapes["confusion"] = (len(self._parts.asset_type.fault_classes),) * 2
        outcome, together = await self._scores(run, arrays, shapes, 1)
        convicted, evidence = self._false_ends(run, weights, outcome)
        scores = Scores(arrays_but_of(outcome, convicted), with_accounts(outcome.answers, convicted), together)
        risk, mixture = scores.worst_risk(run, risk_bound)
        for cohort, false in self._false_sums(run, weights, scores).items():
            LOG.warning("run %s: the risk of %s at the end is not believed: %s", run.run_id, cohort, false)
            risk = risk_bound
        if "interval" in arrays and math.isfinite(risk):
            arrays["interval"] = interval_ends(run.plan, risk)
            outcome, together = await self._scores(run, arrays, shapes, 2)
            outcome = with_answers_held(outcome, scores.own)
            scores = Scores(arrays_but_of(outcome, convicted), with_accounts(outcome.answers, convicted), together)
        return scores.evaluation(risk, mixture, tuple(convicted), evidence)

    async def calibrate(self, run: Run, weights: FloatArray) -> Calibration:
        """As :meth:`services.coordinator.training.Coordinator.calibrate` says."""
        if kind_of(run.plan) == "spread":
            found, known = await self._counted(run, weights, by_estimate=True)
            if known:
                return found
        found, _ = await self._counted(run, weights, by_estimate=False)
        return found

    async def _counted(self, run: Run, weights: FloatArray, *, by_estimate: bool) -> tuple[Calibration, bool]:
        """The calibration, and whether every plant that answered knows the grid: an agent of before knows the first."""
        number, time = (SPREAD_GRID_NUMBER, 3) if by_estimate else (GRID_NUMBER, 4)
        arrays = {"weights": weights, "calibration": np.array(float(number))}
        shapes = calibration_shapes(classes=run.plan.spec.loss.task == "classification", by_estimate=by_estimate)
        outcome, together = await self._scores(run, arrays, shapes, time)
        answers = (*outcome.answers, *(() if together is None else together.answers))
        known = not any(each.status == "refused_by_site" and each.code == "bad_task" for each in answers)
        if together is not None:
            found = calibration(run, together.scores, cohorts_of(run))
            nothing = together.doubts and not together.scores
            return (found.model_copy(update={"note": together.note}) if nothing else found), known
        own = {site: update.arrays for site, update in outcome.updates.items()}
        return calibration(run, own, {site.site_id: (site.site_id,) for site in run.members}), known

    async def _scores(
        self, run: Run, arrays: Arrays, shapes: Mapping[str, tuple[int, ...]], time: int
    ) -> tuple[Poll, ScoresOnSums | None]:
        """What the sites told of themselves, and the sums of cohorts where one of them did not.

        On sums a site that said as it joined that it keeps its own scores is not asked for them: each would be a
        refusal in its ledger, of which nothing is wrong.
        """
        keys = self._parts.keys_of(run)
        question = self._parts.question(run, "evaluate", 0, dict.fromkeys(keys, arrays), shapes)
        kept = {site.site_id for site in run.members if site.own_scores is False and run.plan.reveal == "sums"}
        outcome = await self._parts.ask(run, question, {site: key for site, key in keys.items() if site not in kept})
        outcome = with_counts_held(outcome, run)
        if run.plan.reveal != "sums" or len(outcome.updates) == len(run.members) or self._parts.gone(run):
            return outcome, None
        rounds = self._parts.summed(run)
        masked = replace(question, round=run.rounds + time, arrays=dict.fromkeys(rounds.cohorts, arrays))
        together = with_sums_held(await rounds.evaluate(masked), run, partial(doubt_of, question))
        if together.doubts:
            LOG.warning("run %s: at the end %s", run.run_id, together.note)
        return outcome, together

    def _false_sums(self, run: Run, weights: FloatArray, scores: Scores) -> dict[str, Contradiction]:
        """Cohorts whose risk at the end lies below what their rounds prove: who of them lied is not known."""
        if run.plan.reveal != "sums" or run.plan.noise is not None or not get_method(run.plan.method).is_robust:
            return {}
        return self._parts.committed(run).false_sums(weights, scores.of_cohorts(run))

    def _false_ends(
        self, run: Run, weights: FloatArray, outcome: Poll
    ) -> tuple[list[SiteAnswer], dict[str, bytes]]:
        """Accounts of, and evidence against, the sites whose risks at the end contradict what they answered before.

        On sums nothing is known of what a site answered.
        """
        if run.plan.reveal == "sums":
            return [], {}
        at = self._parts.committed(run)
        if not at.number:
            return [], {}
        risks = {site: update.arrays["risk"] for site, update in outcome.updates.items()}
        found = at.of_this_run(false_ends(at, weights, risks))
        return excluded_at_the_end(outcome, found), self._rounds.evidence(at, outcome, found)
