r"""Which sites keep the bounds apart: by how much their own cuts lie below their own risk at the best point.

A cut that a site answers at a point is as high as its risk there, so a site's cuts leave nothing open at a point that
it answered, and the gap there is that of the mixture of all sites' cuts, which further rounds close. Cuts that are true
and too low contradict nothing, and no number of rounds closes what they leave: ``q_g (risk_g(w) - max_k cut_gk(w))``.
Where a site does so and no better point has come for :data:`MOST_ROUNDS` rounds, a run ends. Of methods whose sites
answer each time with the cut at the point that is asked, sites do so together, too: others have cuts from elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.basics import FloatArray
from models.cuts.evidence import Evidence, cut_model
from models.problem import ServerProblem

LEAST_SHARE = 0.5
"""Of the gap, for a site, or sites together, to be what keeps it open."""
MOST_ROUNDS = 25
"""Without a better point, each answered in full by all sites, while sites keep the gap open: more lead nowhere.

A guard that lets looser cuts out draws them anew in each round, so that a few rounds may be without luck."""
_ROUNDING = 1e-6
"""Of a risk, and of 1: less than that sums and solvers leave, too."""


def left_open(evidence: Evidence, problem: ServerProblem) -> FloatArray:
    """What each site's cuts leave open at the best point (G,), by its weight in the worst mixture there.

    0 for a site that did not answer there, whose cuts stand for its risk in both bounds.
    """
    if evidence.best < 0:
        return np.zeros(len(problem.sites))
    told = evidence.risks[evidence.best]
    proven = cut_model(evidence, problem).site_values(evidence.best_point[None])[0]
    slack = np.where(told - proven > _ROUNDING * np.maximum(1.0, told), told - proven, 0.0)  # a NaN is above nothing
    mixture = evidence.worst_mixture(problem)
    return np.asarray(slack * np.array([mixture[site.site_id] for site in problem.sites]))


def held_open(
    heads: Sequence[Evidence], problem: ServerProblem, gap: float, *, together: bool = False
) -> dict[str, float]:
    """Site, or cohort, that alone leaves half or more of the distance ``gap`` of the bounds open, with how much.

    Where none does alone, and ``together``, the fewest that do as one, the largest first; {} where not even all do.
    ``heads``: the evidence of each, whose bounds add up.
    """
    left = np.sum([left_open(each, problem) for each in heads], axis=0) if heads else np.zeros(len(problem.sites))
    wanted, order = LEAST_SHARE * gap, np.argsort(-left, kind="stable")
    number = int(np.count_nonzero((left > 0.0) & (left >= wanted)))
    if together and not number and 0.0 < wanted <= left.sum():
        number = int(np.searchsorted(np.cumsum(left[order]), wanted)) + 1
    return {problem.sites[place].site_id: float(left[place]) for place in order[:number]}


def stands_still(evidence: Evidence, problem: ServerProblem, *, together: bool = False) -> bool:
    """Whether a site keeps the gap open, or all ``together``, and :data:`MOST_ROUNDS` rounds had no better point.

    Only rounds count in which every site with a weight told its risk at some point: while one is away no point can be
    found to be better, and it may come back.
    """
    if evidence.best < 0:
        return False
    known = ~np.isnan(evidence.risks[:, problem.weights > 0]).any(axis=1)
    later = evidence.point_round > evidence.point_round[evidence.best]
    if np.unique(evidence.point_round[known & later]).size < MOST_ROUNDS:
        return False
    return bool(held_open([evidence], problem, evidence.upper - evidence.lower, together=together))
