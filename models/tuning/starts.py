r"""Weights for a race to begin near: where each site's own local step from zero ends.

    w_g = argmin_w r_g(w) + penalty/2 ||w||^2

A soft step ends near the best weights that a site's own rows have, and the mean of the sites' ends is nearer to the
optimum of them all than what a dozen cuts of a large lift lead to. Its length is that of a plane, so it costs what an
answer to one cut does, less the question: zero needs no telling.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.basics import Arrays, FloatArray, without_needless_digits
from models.methods.guard import Guard, Minorant, step_minorant
from models.methods.row_account import Accounted
from models.methods.site_answers import guarded_step, vector_account
from models.one_vs_rest import accounted_heads
from models.problem import SiteProblem
from models.prox.bundle import local_minorant
from models.tuning.candidates import Candidate, flips_order
from models.tuning.rungs import Asked
from models.tuning.shared_cuts import DIGITS
from models.tuning.terms import TuningTerms

START_PENALTY: Final = 1e-3
"""Penalty of the step, features and risks being of order one."""
_STARTS = 4  # of a lift and fold: a point serves all radii, as a cut does
_MOST_CUTS = 30  # exact risks after which a step ends: 15 are too few where rows are many


@dataclass(frozen=True)
class StartSite:
    """Where the local step from zero ends.

    Message: ``penalty`` (). Answer: ``local_point`` (D,), from a step to a relative gap of 1e-3.
    """

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """The local weights."""
        return self.accounted(problem, message, parameters).arrays

    def accounted(
        self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float], guard: Guard | None = None
    ) -> Accounted:
        """The answer with the rows of the minorant that proves the step: the weights are made of its slope."""
        penalty, zero = float(message["penalty"]), np.zeros(problem.dimension)

        def stepped(beside: FloatArray) -> tuple[FloatArray, Minorant]:
            step = local_minorant(problem, beside, penalty, _MOST_CUTS)
            return np.asarray(step.proven_point), step_minorant(step)

        local_point, found = guarded_step(stepped, zero, zero, problem, guard, zero, np.array(penalty))
        account = vector_account(found.rows, found.slope, found.swing, problem)
        return Accounted({"local_point": local_point}, account)


def answer_start(problems: Sequence[SiteProblem], penalty: float, guard: Guard | None = None) -> Accounted:
    """Ends (K, D) of the steps of each head, with the account by rows."""
    return accounted_heads(StartSite(), problems, {"penalty": np.full(len(problems), penalty)}, {}, guard)


def first_steps(
    live: Sequence[Candidate], pools: Collection[tuple[int, int]], sizes: Sequence[int], heads: int, intercept: bool
) -> list[Asked]:
    """Steps for every lift and fold of ``pools``, one of each before a second: radii from the least to the largest."""
    spread = {lift: _spread([each for each in live if each.lift == lift]) for lift in {lift for lift, _ in pools}}
    return [
        Asked(spread[lift][place], fold, np.zeros((heads, sizes[lift] + int(intercept))), START_PENALTY)
        for place in range(_STARTS) for lift, fold in pools if place < len(spread[lift])
    ]


def mean_end(terms: TuningTerms, told: Mapping[str, Arrays]) -> FloatArray:
    """Mean (K, D) of the ends that all sites told, in the sites' weights: a point to begin at."""
    ends = np.stack([told[site.site_id]["local_point"] for site in terms.sites])
    return without_needless_digits(np.average(ends, axis=0, weights=terms.weights), DIGITS)


def _spread(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Some of those that a site tells apart, of candidates with one ball at the sites the first."""
    unlike: dict[tuple[float, float], Candidate] = {}
    for each in flips_order(candidates):
        unlike.setdefault((each.radius, each.label_flip_cost), each)
    own = list(unlike.values())
    return [own[place] for place in np.unique(np.linspace(0, len(own) - 1, _STARTS).round().astype(int))]
