"""Tuning of a run's terms before its first round: the race over the grid, and the plan that goes on with its choice.

Nothing of it is stored until it is over: a coordinator that is killed before tunes again. What the plants are asked
and answer is of model size, or counts over a fold (``services.contracts.problems.tuning``); on sums the coordinator
sees those of a cohort alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from models.basics import FloatArray, ProblemError
from models.cohorts.dealing import cohort_problem
from models.methods.catalogue import get_method
from models.problem import ServerProblem
from models.tuning.budget import Budget, OneTraining, reference
from models.tuning.candidates import Candidate
from models.tuning.choice import Scored, own_terms, untuned
from models.tuning.coupling import coupling_cost
from models.tuning.racing import Tuner
from models.tuning.reference import FIRST_RARE_ROUNDS, FIRST_ROUNDS, one_training
from models.tuning.rungs import Asked, Exchange, race_numbers, rungs
from models.tuning.scores import fold_score, score_shape
from models.tuning.terms import TuningTerms
from services.contracts.history.run import Run
from services.contracts.machines.asset_type import AssetType
from services.contracts.plans.plan_problem import couples, grid_of
from services.contracts.problems.lift import numbered, pinned
from services.contracts.problems.tuning import settled
from services.contracts.problems.tuning_curve import TuningCurve, tuned_candidates
from services.contracts.problems.tuning_task import TuningPart, TuningTask
from services.coordinator.beginning.chosen_terms import base_of
from services.coordinator.beginning.held_out_counts import check_counts
from services.coordinator.beginning.tuning_exchange import Ask, Shapes, TuningAnswers, TuningQuestion
from services.coordinator.run_state.run_errors import NothingCountedError, TuningBudgetError
from services.coordinator.run_state.terms import cohorts_of, server_problem


class PlanTuning:
    """The tuning of one run over the sites that joined it."""

    def __init__(
        self, run: Run, asset_type: AssetType, before: Sequence[Run], after: PlanTuning | None = None,
        rows_by_class: FloatArray | None = None, *, lifts: bool = True,
    ) -> None:
        """``before``: completed trainings of the plan that began at zero, the last first: what one costs in rounds.

        ``after``: tuning that it goes on from with another loss; what that one asked is of this one's budget.
        ``rows_by_class`` (C,): where they were asked, and one class is rare. ``lifts``: "auto" may try others than the
        plan's own.
        """
        self._stated, self._rows_by_class = (run, asset_type, before), rows_by_class
        self._run, plan, n_features = run, run.plan, len(asset_type.features)
        spec, grid = settled(plan.tuning), grid_of(plan, asset_type, rows_by_class, lifts=lifts)
        assert spec is not None
        self._spec, self._loss = spec, plan.spec.loss.loss
        self._lifts = tuple(pinned(numbered(lift, asset_type.feature_names), n_features) for lift in grid.lifts)
        self._heads, self._sizes = asset_type.heads(plan.spec.loss.task), grid.sizes(n_features)
        self._boxed = plan.spec.support_kind == "box"
        self._score_shape = score_shape(self._loss, len(asset_type.fault_classes))
        problem = server_problem(run, asset_type)
        self._cohorts = cohorts_of(run) if plan.reveal == "sums" else {}
        if self._cohorts:
            problem = cohort_problem(problem, self._cohorts)
        terms = TuningTerms(
            problem.sites, self._loss, plan.spec.transport_norm, plan.spec.fit_intercept, plan.mixture.norm,
            plan.spec.support_kind == "unbounded", couples(plan, asset_type),
        )
        first = FIRST_ROUNDS if rows_by_class is None else FIRST_RARE_ROUNDS
        rounds = min(before[0].rounds if before and before[0].rounds else first, plan.max_rounds)
        scores = math.prod(self._score_shape)
        wanted = race_numbers(
            grid.candidates, self._sizes, self._heads, rungs(len(grid.candidates), spec.folds), scores
        )
        kept = OneTraining(0, 0.0)
        if couples(plan, asset_type):
            kept = coupling_cost(len(asset_type.fault_classes), max(self._sizes), int(spec.budget * rounds))
        self.one = reference(self._trainings(problem, rounds), wanted + kept.numbers, spec.budget)
        self._grid, self.budget = grid.candidates, Budget(self.one, spec.budget, kept=kept)
        self.bytes_sent = self.bytes_received = 0  # bytes of whole frames, of all plants
        if after is not None:
            self.budget.rounds, self.budget.numbers = after.budget.rounds, after.budget.numbers
            self.bytes_sent, self.bytes_received = after.bytes_sent, after.bytes_received
        self._new_tuner = partial(
            Tuner, terms, self._grid, self._sizes, self._heads, spec.folds, self.budget, spec.rule, scores
        )

    def _trainings(self, problem: ServerProblem, rounds: int) -> list[OneTraining]:
        """Cost of the plan's own training, then of one with each of the larger lifts."""
        method = get_method(self._run.plan.method)
        return [
            one_training(method, replace(problem, n_features=size), self._heads, rounds)
            for size in sorted({size for size in self._sizes if size >= problem.n_features} or {problem.n_features})
        ]

    def without_lifts(self) -> PlanTuning | None:
        """The tuning begun again with the plan's own lift alone; None where that, or a grid that it states, is all.

        What was asked is of its budget.
        """
        own = PlanTuning(*self._stated, after=self, rows_by_class=self._rows_by_class, lifts=False)
        return own if own._lifts != self._lifts else None

    def tuner(self) -> Tuner:
        """The race before its first exchange; ``TuningBudgetError`` where the budget does not pay for the grid."""
        try:
            return self._new_tuner()
        except ProblemError as error:
            raise TuningBudgetError(f"plan {self._run.plan.name}: {error}") from None

    async def rows_by_class(self, ask: Ask) -> FloatArray:
        """Rows (C,) of each class, asked before the race, without those that a plant's policy does not count.

        ``TuningBudgetError`` where the race is not paid for, ``ContradictingAnswersError`` for counts that cannot be.
        """
        self.tuner()
        own, size = own_terms(self._grid), self._sizes[0] + int(self._run.plan.spec.fit_intercept)
        # Planes of zeros call every row by one class: their counts over all folds are the rows of each class.
        parts = tuple(Asked(own, fold, np.zeros((self._heads, size))) for fold in range(self._spec.folds))
        exchange = Exchange(parts, scored=True, pooled=True)
        question = self.question(exchange, 1)
        self.budget.spend(sum(each.size for each in question.arrays.values()) + math.prod(self._score_shape))
        said = await self._asked(ask, question)
        self._check_counts(exchange, said)
        return np.asarray(np.add.reduce([told[0]["score"] for told in said.parts.values()]).sum(axis=1))

    def _check_counts(self, exchange: Exchange, said: TuningAnswers) -> None:
        joined = {site.site_id: site.n_samples for site in self._run.sites}
        check_counts(exchange, said.parts, self._cohorts, joined)

    async def _asked(self, ask: Ask, question: TuningQuestion) -> TuningAnswers:
        said = await ask(question)
        self.bytes_sent += sum(each.bytes_out for each in said.accounts)
        self.bytes_received += sum(each.bytes_in for each in said.accounts)
        return said

    async def race(self, ask: Ask) -> TuningCurve:
        """Ask until the race is over.

        Raises
        ------
        TuningBudgetError
            The budget does not pay for the grid.
        NothingCountedError
            Nothing could be scored.
        ContradictingAnswersError
            Counts that are of no one set of held-out rows.
        """
        tuner, number = self.tuner(), self.budget.rounds
        while (exchange := tuner.exchange()) is not None:
            number += 1
            said = await self._asked(ask, self.question(exchange, number))
            parts = [{site: told[j] for site, told in said.parts.items()} for j in range(len(exchange.asked))]
            if not exchange.scored:
                tuner.tell_cuts(parts)
                continue
            self._check_counts(exchange, said)
            totals = [np.add.reduce([told["score"] for told in parts[place].values()]) for place in exchange.told]
            try:
                tuner.tell_scores([fold_score(total, self._loss) for total in totals])
            except ProblemError as error:
                raise NothingCountedError(f"plan {self._run.plan.name}: {error}") from None
        assert tuner.choice is not None
        return self._curve(tuner.choice.candidate, tuner.choice.why, tuner.scored)

    def question(self, exchange: Exchange, number: int) -> TuningQuestion:
        """An exchange as a task has it."""
        parts = tuple(
            TuningPart(
                radius=part.candidate.radius, label_flip_cost=part.candidate.label_flip_cost,
                lift=part.candidate.lift, fold=part.fold, penalty=part.penalty,
                squares=part.squares,
            )
            for part in exchange.asked
        )
        task = TuningTask(
            folds=self._spec.folds, seed=self._spec.seed, lifts=self._lifts, parts=parts, scored=exchange.scored,
            pooled=exchange.pooled,
        )
        told = frozenset(exchange.told)
        arrays: dict[str, FloatArray] = {}
        shapes: list[Shapes] = []
        for j, part in enumerate(exchange.asked):
            weights = part.weights
            if exchange.scored:
                if not self._run.plan.spec.fit_intercept:
                    weights = np.hstack([weights, np.zeros((len(weights), 1))])
                arrays[f"weights_{j}"] = weights
                shapes.append({"score": self._score_shape} if j in told else {})
            elif part.penalty is not None:
                shapes.append({"local_point": weights.shape})
            else:
                arrays[f"point_{j}"] = weights
                shapes.append(cut_shapes_of(weights, self._sizes[part.candidate.lift] if self._boxed else 0))
        return TuningQuestion(number, task, arrays, tuple(shapes))

    def own_terms(self, why: str) -> TuningCurve:
        """A curve without scores, where a tuning cannot be: the run takes the plan's own terms, as without one.

        ``why`` names no plant, for reports show it to who sees pseudonyms.
        """
        own = untuned(self._grid, "the plan's", why)
        return self._curve(own.candidate, own.why, [Scored(each) for each in self._grid])

    def _curve(self, found: Candidate, why: str, scored: Sequence[Scored]) -> TuningCurve:
        spec, budget = self._spec, self.budget
        rows = [
            (
                each.candidate, each.mean if each.scores else None, each.standard_error, len(each.scores),
                each.gap if math.isfinite(each.gap) else None,
            )
            for each in scored
        ]
        return TuningCurve(
            candidates=tuned_candidates(self._lifts, rows), chosen=self._grid.index(found),
            why=why, rule=spec.rule, folds=spec.folds, seed=spec.seed, rounds=budget.rounds,
            numbers=budget.numbers, bytes_sent=self.bytes_sent, bytes_received=self.bytes_received, budget=spec.budget,
            reference_rounds=self.one.rounds, reference_numbers=self.one.numbers, base=base_of(self._run.plan),
        )


def cut_shapes_of(weights: FloatArray, n_swings: int) -> Shapes:
    """Shapes of the cuts at weights (K, D)."""
    heads = (weights.shape[0],)
    shapes: dict[str, tuple[int, ...]] = {
        "risk": heads, "cut_height": heads, "slope": weights.shape, "norm_weight": heads,
    }
    return {**shapes, "swing": (*heads, n_swings)} if n_swings else shapes
