"""What is asked of the plants of cohorts after a projection: its point, its local steps, and their own centres' shares.

The own centre of a plant is made of its own slopes, in the shares in which the cuts of its cohort hold up the
projection (``models.methods.bundle.cohort_site``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.basics import FloatArray, without_needless_digits
from models.cuts.cut_model import CutModel, ModelPoint
from models.cuts.evidence import EARLIER_RUN, Evidence
from models.methods.bundle.cohort_site import UNKNOWN_TO_SITES
from models.methods.bundle.level import norm_and_sides, prox_questions
from models.problem import ServerProblem


def question_of(
    model: CutModel, found: ModelPoint, best: FloatArray, problem: ServerProblem, near: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Point (D,), slope of the norm (D,), sides (P,), shared centres (C, D) and penalties (C,) of a projection.

    Where the best point is at the level already there is no step to take after: penalty 0, Polyak's at each plant.
    """
    point, n_cohorts = without_needless_digits(found.point, problem.gap), len(problem.sites)
    if found.level_price <= 0:
        nothing = np.zeros_like(point), np.zeros(problem.n_features)
        return point, *nothing, np.tile(point, (n_cohorts, 1)), np.zeros(n_cohorts)
    return point, *norm_and_sides(model, found, best), *prox_questions(model, found, best, problem, near)


def counted_shares(evidence: Evidence, model: CutModel, found: Sequence[ModelPoint]) -> FloatArray:
    """Shares (C, q, 2 q E) in which the cuts of each cohort and exchange made its slope in each of q projections.

    Where a cut of an earlier run is among them the sites are told to take the shared centre: they know it no more.
    """
    n_cohorts, q, exchanges = model.site_weights.shape[0], len(found), evidence.exchanges
    counted = np.zeros((n_cohorts, q, exchanges, 2 * q))
    weights, earlier = model.site_weights[model.site], evidence.cut_round == EARLIER_RUN
    own = np.flatnonzero(~earlier)
    # The cuts of an exchange stand in the order of the questions, that at the point before that of the prox point.
    group = model.site[own] * exchanges + evidence.cut_round[own].astype(np.intp) - 1
    order = np.argsort(group, kind="stable")
    own, group = own[order], group[order]
    place = np.arange(own.size) - np.searchsorted(group, group)
    for k, each in enumerate(found):
        shares = np.divide(each.multipliers, weights, out=np.zeros_like(weights), where=weights > 0)
        counted[group // exchanges, k, group % exchanges, place] = shares[own]
        unknown = np.unique(model.site[earlier & (shares > 0)])
        counted[unknown, k] = 0.0
        counted[unknown, k, 0, 0] = UNKNOWN_TO_SITES
    return counted.reshape(n_cohorts, q, -1)
