"""Before the first round of a run: who takes part, and the terms that its tuning chooses."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from models.basics import FloatArray
from models.tuning.automatic import AUTO_LOSS, RARE_SHARE, automatic_lifts, is_rare
from services.contracts.history.run import Run
from services.contracts.plans.plan_problem import (
    asks_for_shares,
    check_cohort_size,
    check_problem,
    with_auto_loss,
    with_automatic_loss,
)
from services.contracts.problems.lift import ProductLiftSpec
from services.contracts.problems.tuning import AUTO, settled
from services.contracts.problems.tuning_curve import TuningCurve
from services.contracts.problems.tuning_task import TuningTask
from services.coordinator.beginning.chosen_terms import earlier_choice, with_choice
from services.coordinator.beginning.tuning import PlanTuning
from services.coordinator.beginning.tuning_exchange import TuningAnswers, TuningQuestion
from services.coordinator.round_loop.run_parts import RunParts, shortage, sites_needed
from services.coordinator.round_loop.summed_rounds import RETRY_SECONDS
from services.coordinator.run_state.refusals import UNTUNED, is_final, untuned_for, without_answers
from services.coordinator.run_state.run_errors import LiftsRefusedError, TooFewSitesError, TuningBudgetError
from services.coordinator.run_state.sample_counts import with_samples_held
from services.coordinator.run_state.terms import JOIN_SHAPES, check_asked, joined_terms, with_figures
from services.coordinator.run_state.warm_start import run_start

LOG = logging.getLogger("ballast.coordinator")


class Joining:
    """Makes a pending run one that can be trained."""

    def __init__(self, parts: RunParts) -> None:
        self._parts = parts

    async def join(self, run: Run) -> Run:
        """As :meth:`services.coordinator.training.Coordinator.join` says."""
        if run.status != "pending":
            return run
        check_problem(run.plan, self._parts.asset_type)
        check_cohort_size(run.plan, len(self._parts.keys))
        check_asked(run.plan, self._parts.keys)
        question = self._parts.question(run, "join", 0, {}, JOIN_SHAPES)
        outcome = await self._parts.until_enough(run, question, dict(self._parts.keys))
        outcome = with_samples_held(outcome, run.plan, self._parts.store.samples_before(run.run_id))
        if len(outcome.updates) < sites_needed(run.plan):
            raise TooFewSitesError(shortage(run, question, outcome))
        joined = {site: update.arrays for site, update in outcome.updates.items()}
        check_problem(run.plan, self._parts.asset_type, len(joined))
        check_cohort_size(run.plan, len(joined))
        terms = with_figures(joined_terms(run.plan, self._parts.asset_type, joined), outcome.updates)
        absentees = [answer for answer in outcome.answers if answer.status != "accepted"]
        digests = {site: update.data_digest for site, update in outcome.updates.items()}
        start = run_start(run, terms, digests, self._parts.asset_type, self._parts.earlier(run))
        return self._parts.store.begin_run(run.run_id, terms, absentees, start, digests)

    async def tune(self, run: Run) -> Run:
        """As :meth:`services.coordinator.training.Coordinator.tune` says."""
        if run.plan.tuning is None or run.plan.tuned is not None or run.rounds:
            return run
        asks = asks_for_shares(run.plan, self._parts.asset_type)
        run = run.model_copy(update={"plan": with_automatic_loss(run.plan, self._parts.asset_type)})
        spec = settled(run.plan.tuning)
        assert spec is not None
        before = self._parts.store.completed_before(run.run_id, limit=spec.every)
        run, curve = self._earlier_choice(run, before)
        if curve is None:
            # A training that went on from another took few rounds, and is no measure of what one costs.
            whole = [each for each in before if each.start is None or each.start.after is None]
            tuning, counts = PlanTuning(run, self._parts.asset_type, whole), None
            try:
                if asks and is_rare(told := await tuning.rows_by_class(partial(self.ask_tuning, run))):
                    run, counts = run.model_copy(update={"plan": with_auto_loss(run.plan)}), told
                    tuning = PlanTuning(run, self._parts.asset_type, whole, tuning, counts)
                curve = await self._raced(run, tuning)
                if counts is not None:
                    curve = curve.model_copy(update={"why": curve.why + self._rare(counts, curve)})
            except UNTUNED as error:
                if run.plan.tuning != AUTO or run.plan.tunes_only:
                    raise
                LOG.warning("run %s does not tune: %s", run.run_id, error)
                if isinstance(error, TuningBudgetError):
                    run, curve = self._earlier_choice(run, before, however_often=True)
                if curve is None:  # the plan's own lift may be none of those that were tried
                    own = PlanTuning(run, self._parts.asset_type, whole, tuning)
                    curve = own.own_terms(untuned_for(error, spec.folds))
        self._parts.forget_sums()  # its keys, and the sites' balls, were those of before
        LOG.info("run %s: %s", run.run_id, curve.why)
        return self._parts.store.set_tuned(run.run_id, *with_choice(run, curve))

    async def _raced(self, run: Run, tuning: PlanTuning) -> TuningCurve:
        """The choice of the race; where a plant may answer under no lift of it, that of one without, which says so."""
        try:
            return await tuning.race(partial(self.ask_tuning, run))
        except LiftsRefusedError as error:
            if (without := tuning.without_lifts()) is None:
                raise
            LOG.warning("run %s tunes without lifts: %s", run.run_id, error)
        self._parts.forget_sums()
        curve = await without.race(partial(self.ask_tuning, run))
        said = "; without lifts other than the plan's own, for a plant's policy lets it answer under none of them"
        return curve.model_copy(update={"why": curve.why + said})

    def _rare(self, rows_by_class: FloatArray, curve: TuningCurve) -> str:
        """What a tuning says of its grid where a class is rare."""
        said = f"; by the {AUTO_LOSS} loss and few terms, for a class has less than {RARE_SHARE:.0%} of the rows"
        tried = any(isinstance(each.lift, ProductLiftSpec) for each in curve.candidates)
        beside = "products beside splines" in automatic_lifts(len(self._parts.asset_type.features), rows_by_class)
        if not (tried and beside):
            return said
        return f"{said}, and products beside splines, for it has a row for each of their weights"

    def _earlier_choice(
        self, run: Run, before: Sequence[Run], *, however_often: bool = False
    ) -> tuple[Run, TuningCurve | None]:
        """The choice that a run takes, with the run by its loss; None where it tunes: as who was asked for that alone.

        A choice goes by the rows of all plants that made it. One that may not take part any more, since it was removed
        or left the plan, has no part in a later model through it: then, too, it tunes. So it does where the asset type
        got another version since: ranges are others, and a lift of other features does not fit.
        """
        last = [] if run.plan.tunes_only else self._parts.store.completed_before(run.run_id, tunings=True)
        plans = [run.plan]
        if asks_for_shares(run.plan, self._parts.asset_type):
            plans.append(with_auto_loss(run.plan))
        for plan in plans if last else []:
            curve = earlier_choice(plan, before, last[0], however_often=however_often)
            if curve is not None:
                made_by = self._parts.store.get_run(curve.reused_from)
                stays = all(site.site_id in self._parts.keys for site in made_by.sites)
                same = made_by.start is None or made_by.start.contract == self._parts.asset_type.fingerprint
                return (run.model_copy(update={"plan": plan}), curve) if stays and same else (run, None)
        return run, None

    async def ask_tuning(self, run: Run, asked: TuningQuestion) -> TuningAnswers:
        """One exchange of a tuning, or of a coupling, with every plant of the run.

        :class:`TooFewSitesError` where one may not answer any more.
        """
        self._parts.check_cancelled(run)
        if isinstance(asked.task, TuningTask):
            self._parts.tell(run, f"tuning, exchange {asked.number}")
        keys = self._parts.keys_of(run)
        question = replace(
            self._parts.question(run, "tune", asked.number, dict.fromkeys(keys, asked.arrays), asked.shapes),
            tuning=asked.task,
        )
        if gone := [each.site_id for each in run.members if each.site_id not in keys]:
            raise TooFewSitesError(
                f"the tuning needs every plant of the run, and the key of {', '.join(gone)} was taken away"
            )
        if run.plan.reveal == "sums":
            rounds = self._parts.summed(run)
            sums, accounts = await rounds.tune(replace(question, arrays=dict.fromkeys(rounds.cohorts, asked.arrays)))
            return TuningAnswers({name: asked.from_words(words) for name, words in sums.items()}, accounts)
        deadline = time.monotonic() + run.plan.absence_patience_seconds
        while True:
            outcome = await self._parts.ask(run, question, keys)
            if len(outcome.updates) == len(run.members):
                parts = {site: asked.apart(update.arrays) for site, update in outcome.updates.items()}
                return TuningAnswers(parts, outcome.answers)
            missing = [each for each in outcome.answers if each.status != "accepted"]
            if time.monotonic() >= deadline or any(map(is_final, missing)):
                raise without_answers(missing)
            self._parts.check_cancelled(run)
            await asyncio.sleep(RETRY_SECONDS)
