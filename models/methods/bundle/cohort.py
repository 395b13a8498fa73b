r"""The level bundle on sums over cohorts of plants, with several questions in a message.

The server half is that of ``models.methods.bundle.level`` with a cohort where that has a site: the weighted mean of
the plants' answers is a cut of the cohort's mean risk ``r_c = sum_g a_g r_g / sum_g a_g``, so the certificate is exact
and no single answer is needed. What a site of its own would be sent, its own prox centre, the plants make themselves
(``models.methods.bundle.cohort_site``).

A message holds q questions: the projections of the best point on q level sets, and a prox cut near each. More questions
close the gap in fewer rounds, at q times the numbers: ``tests/benchmarks/results/rounds.md`` has counts.

Where the weights are many, two of six questions are made of the projections around them
(``models.methods.bundle.cohort_levels``).

Where the model is at every level at the best point already, since plants' guards let looser cuts out, no projection
leads away from it: it is asked once with local steps of many lengths, and where it stands then the run has stalled.

**Plants that are away.** No loss is negative, so the sum over a part of a cohort is below its whole risk everywhere: it
still is a cut. It says nothing from above: a point counts for the upper bound only where the whole of every cohort
answered. An incomplete cohort's risk is NaN here. So the bounds always are those of the problem with all plants,
however many were away; ``fresh_weight`` says what share of the weight was in complete cohorts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.basics import Arrays, FloatArray, without_needless_digits
from models.cuts.bounds import tighten_lower_bound
from models.cuts.contradiction import Contradiction, find_contradiction, suspected
from models.cuts.cut_model import ModelPoint
from models.cuts.evidence import Evidence, cut_model, with_exchange
from models.cuts.reuse import reused_cuts, without_reused
from models.methods.bundle.asked_level import bottom, projected
from models.methods.bundle.cohort_levels import between, solved_levels
from models.methods.bundle.cohort_questions import counted_shares, question_of
from models.methods.certified import CertifiedServer, State, is_still
from models.methods.protocol import NO_PARAMETERS
from models.methods.site_answers import ProxCutSite
from models.problem import ServerProblem, Status

_SPREAD = (1.0, 0.25, 2.0, 3.5, 0.5, 2.75, 0.1, 1.5)
"""Levels of the questions, in parts of the parameter ``level``: on both sides of it, those that help most first."""
_NEARNESS = (1.0, 0.1, 3.0, 1.0, 0.3, 0.3, 1.0, 0.1)
"""How near to its point the prox cut of each question looks, in parts of the parameter ``closeness``: unlike cuts."""
_FIRST_STEPS = (0.0, 1e-2, 1.0, 1e-4, 0.1, 1e-3, 0.3, 0.03)
"""Penalties of the local steps from zero in the first message, risks and features being of order one; 0: Polyak's.

All questions of that message are at zero. From a stiff step to one that ends near the plant's own best weights its
answers differ all the same, and the soft ones say from below what no mixture of the plants' best can beat."""
_HIGHEST = 0.95
"""Level above which a projection hardly moves from the best point."""
_WIDE = 256
"""Weights from which on a projection is a program of tens of milliseconds, and some are made of two others."""
_ROUNDING = 1e-9
"""By how much shares of all plants may be less than 1."""


@dataclass(frozen=True)
class CohortState(State):
    """Evidence on C cohorts, and what is asked next: see :class:`models.methods.bundle.cohort_site.CohortSite`.

    ``points`` and ``of_norm`` (q, D) and ``sides`` (q, P) are the same for all; ``centre`` (C, q, D), ``penalty``
    (C, q) and ``counted`` (C, q, 2 q E) are the cohorts' own. ``stagnated``: the best point is asked again.
    """

    points: FloatArray
    of_norm: FloatArray
    sides: FloatArray
    centre: FloatArray
    penalty: FloatArray
    counted: FloatArray
    stagnated: bool = False


@dataclass(frozen=True)
class CohortServer(CertifiedServer[CohortState]):
    """Server half; the sites of its problem are cohorts (``models.cohorts.dealing``), of one plant each or of many."""

    per_site = ("centre", "penalty", "counted")
    partial_sums = True

    @property
    def asks(self) -> ProxCutSite:
        """Risk, its cut and the prox minorant, which a plant answers to each question."""
        return ProxCutSite()

    def asked(self, state: CohortState) -> FloatArray:
        """The first of the points."""
        return np.asarray(state.points[0])

    def init(self, problem: ServerProblem) -> CohortState:
        """Nothing known; zero is asked, with Polyak's step at each plant and, by the other questions, longer ones."""
        q, n_cohorts, d, p = self._questions(problem), len(problem.sites), problem.dimension, problem.n_features
        return CohortState(
            Evidence.empty(problem), np.zeros((q, d)), np.zeros((q, d)), np.zeros((q, p)), np.zeros((n_cohorts, q, d)),
            np.tile(_FIRST_STEPS[:q], (n_cohorts, 1)), np.zeros((n_cohorts, q, 0)),
        )

    def warm(
        self, earlier: CohortState, before: ServerProblem, problem: ServerProblem, kept: Sequence[int]
    ) -> CohortState:
        """The cuts that still hold; asked first are the best point of the earlier run, and what it would have asked.

        A cohort that is another one now takes Polyak's step at each plant, from the points themselves.
        """
        points = earlier.points.copy()
        points[0] = earlier.evidence.best_point
        n_cohorts, q = len(problem.sites), points.shape[0]
        centre, penalty = np.tile(points, (n_cohorts, 1, 1)), np.zeros((n_cohorts, q))
        for c, place in enumerate(kept):
            if place >= 0:
                centre[c], penalty[c] = earlier.centre[place], earlier.penalty[place]
        evidence = reused_cuts(earlier.evidence, problem, kept)
        counted = np.zeros((n_cohorts, q, 0))
        return CohortState(evidence, points, earlier.of_norm, earlier.sides, centre, penalty, counted)

    def forget_earlier(self, state: CohortState, site: int) -> CohortState:
        """Without the cuts of the earlier run of a cohort."""
        return replace(state, evidence=without_reused(state.evidence, site))

    def messages(self, state: CohortState, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """One message for all plants of a cohort."""
        shared = {"points": state.points, "of_norm": state.of_norm, "sides": state.sides}
        return {
            cohort.site_id: {name: getattr(state, name)[c] for name in self.per_site} | shared
            for c, cohort in enumerate(problem.sites)
        }

    def step(self, state: CohortState, problem: ServerProblem, answers: Mapping[str, Arrays]) -> CohortState:
        """Add the cuts, bound the optimum, project the best point on the level sets."""
        evidence = _bounded(_recorded(state, problem, answers), problem)
        evidence, model_minimiser = tighten_lower_bound(evidence, problem)
        model, best = cut_model(evidence, problem), evidence.best_point
        lowest, towards = bottom(model, model_minimiser, evidence)
        height = evidence.upper if math.isfinite(evidence.upper) else model.value(best)
        shares = [min(problem.parameters["level"] * each, _HIGHEST) for each in _SPREAD[: self._questions(problem)]]
        raised = [np.array(lowest + share * max(height - lowest, 0.0)) for share in shares]
        levels = [float(without_needless_digits(each, problem.gap)) for each in raised]
        if math.isfinite(evidence.upper) and model.value(best) <= min(levels):
            return self._around_the_best(state, evidence, problem)
        at: dict[float, ModelPoint] = {}
        for level in solved_levels(levels) if problem.dimension >= _WIDE else levels:
            at[level] = projected(model, level, evidence, problem, towards)
            evidence = evidence.using(at[level], problem)
        found = [between(at, level) for level in levels]
        moved = max(float(np.abs(each.point - best).max()) for each in found)
        # Without an upper bound the best point is asked again until all plants of a cohort are there.
        stagnated = is_still(moved, best, evidence.upper) and math.isfinite(evidence.upper)
        asked = [question_of(model, each, best, problem, near) for each, near in zip(found, _NEARNESS, strict=False)]
        points, of_norm, sides = (np.stack([each[k] for each in asked]) for k in range(3))
        centre, penalty = (np.stack([each[k] for each in asked], axis=1) for k in (3, 4))
        counted = counted_shares(evidence, model, found)
        return CohortState(evidence, points, of_norm, sides, centre, penalty, counted, stagnated)

    def _around_the_best(self, state: CohortState, evidence: Evidence, problem: ServerProblem) -> CohortState:
        """Ask the best point, at every level already, with local steps of many lengths, as zero is asked at first.

        Plants whose guards let looser cuts out told less of it than of its risk, and no projection leads away from it.
        Stagnated where just that was asked before, of all plants: the same question has the same answer.
        """
        first, best, q = self.init(problem), evidence.best_point, self._questions(problem)
        points, centre = np.tile(best, (q, 1)), np.tile(best, (len(problem.sites), q, 1))
        counted = np.zeros((len(problem.sites), q, 2 * q * evidence.exchanges))
        same = np.array_equal(points, state.points) and np.array_equal(first.penalty, state.penalty)
        asked = same and state.counted.size > 0 and evidence.fresh_weight > 1.0 - _ROUNDING
        return replace(
            first, evidence=evidence, points=points, centre=centre, counted=counted, stagnated=asked,
        )

    def contradictions(
        self, state: CohortState, problem: ServerProblem, answers: Mapping[str, Arrays]
    ) -> dict[str, Contradiction]:
        """Cohorts whose sums belong to no convex risk: some plant of such a cohort lied, or its data changed."""
        grown = _recorded(state, problem, answers)
        ids = [site.site_id for site in problem.sites]
        suspects = {ids[c] for c in suspected(grown, problem)}
        found = {each: find_contradiction(grown, problem, ids.index(each)) for each in answers if each in suspects}
        return {cohort: each for cohort, each in found.items() if each is not None}

    def anew(self, state: CohortState, cohort: int) -> CohortState:
        """State after a plant left a cohort, by index, for good: what the cohort said before was of other plants.

        Its cuts and risks are forgotten and its share of the weight stays; the others' stay as they are.
        """
        evidence = state.evidence.kept_cuts(state.evidence.cut_site != cohort)
        risks, counted, penalty = evidence.risks.copy(), state.counted.copy(), state.penalty.copy()
        risks[:, cohort], counted[cohort], penalty[cohort] = np.nan, 0.0, 0.0
        # Points that are not known for all cohorts bound nothing; where none is left, the best one is asked again.
        points = state.points.copy()
        points[0] = evidence.best_point
        evidence = replace(evidence, risks=risks, upper=math.inf, lower=0.0, fresh_weight=0.0, best=-1)
        return replace(state, evidence=evidence, points=points, counted=counted, penalty=penalty, stagnated=False)

    def answer_shapes(
        self, dimension: int, n_swings: int = 0, parameters: Mapping[str, float] = NO_PARAMETERS
    ) -> dict[str, tuple[int, ...]]:
        """Risk and its cut, and the prox minorant, of each question."""
        q = int(parameters["questions"])
        return {name: (q, *shape) for name, shape in self.asks.shapes(dimension, n_swings).items()}

    def status(self, state: CohortState, problem: ServerProblem) -> Status:
        """Certified at the wanted gap; stalled where no further progress is possible in float64."""
        status = super().status(state, problem)
        return Status.STALLED if status is Status.CONTINUE and state.stagnated else status

    def pack(self, state: CohortState) -> dict[str, FloatArray]:
        """Evidence and what is asked next."""
        asked = {name: getattr(state, name) for name in ("points", "of_norm", "sides", *self.per_site)}
        return {**state.evidence.pack(), **{f"asked_{name}": array for name, array in asked.items()},
                "still": np.array(float(state.stagnated))}

    def unpack(self, arrays: Arrays) -> CohortState:
        """State from :meth:`pack`."""
        points, of_norm, sides, centre, penalty, counted = (
            np.asarray(arrays[f"asked_{name}"]) for name in ("points", "of_norm", "sides", *self.per_site)
        )
        evidence, stagnated = Evidence.unpack(arrays), bool(arrays["still"])
        return CohortState(evidence, points, of_norm, sides, centre, penalty, counted, stagnated)

    def _questions(self, problem: ServerProblem) -> int:
        return int(problem.parameters["questions"])


def _recorded(state: CohortState, problem: ServerProblem, answers: Mapping[str, Arrays]) -> Evidence:
    """Evidence with the answers to all questions, which came in one exchange; the bounds left as they were."""
    single = [
        {cohort: {name: array[k] for name, array in answer.items()} for cohort, answer in answers.items()}
        for k in range(len(state.points))
    ]
    return with_exchange(state.evidence, problem, state.points, single)


def _bounded(evidence: Evidence, problem: ServerProblem) -> Evidence:
    """Evidence with its upper bound: the best of the points at which every cohort's whole risk is known."""
    counted = problem.weights > 0
    totals = np.where(np.isnan(evidence.risks) & counted, np.inf, np.nan_to_num(evidence.risks)) @ problem.weights
    best = int(np.argmin(totals))
    upper = float(totals[best])
    fresh_weight = float(problem.weights[~np.isnan(evidence.risks[-1])].sum())
    return replace(evidence, upper=upper, best=best if math.isfinite(upper) else -1, fresh_weight=fresh_weight)
