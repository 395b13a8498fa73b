"""Coupling of the planes of a fit with all rows at hand: what ``models.tuning.coupling`` asks, answered in process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.basics import FloatArray
from models.estimators.solving import Statement
from models.estimators.table import Table
from models.losses.joint import Softmax
from models.multiclass import predict_scores
from models.problem import RobustSpec, SiteProblem
from models.tuning.at_hand import answer_cuts
from models.tuning.coupling import Coupler, Told, coupled_planes


@dataclass(frozen=True)
class CoupledPlanes:
    """``planes`` (K, P + 1) are ``A W``, b added to the intercepts: W is ``trained``, (A, b) ``coupling`` (K, K + 1).

    ``objective``: log loss of the rows in the sites' weights and its ridge; ``before``: without a coupling;
    ``at_least``: of every coupling. ``rounds``: exchanges, in which sites that keep their rows would each send
    ``bytes_per_site``, without masks and frames.
    """

    planes: FloatArray
    trained: FloatArray
    coupling: FloatArray
    objective: float
    before: float
    at_least: float
    rounds: int
    bytes_per_site: int


def coupled(planes: FloatArray, table: Table, stated: Statement) -> CoupledPlanes:
    """Couple planes W (K, P + 1), K > 2, on lifted rows whose outcomes are class indices."""
    scores, loss = replace(table, features=predict_scores(planes, table.features)), Softmax(len(planes))
    problems = [
        scores.problem(g, table.outcomes, RobustSpec(0.0, spec.label_flip_cost, spec.transport_norm, loss=loss))
        for g, spec in enumerate(stated.specs)
    ]
    coupler, numbers = Coupler(len(planes)), 0
    while points := coupler.points():
        told = [_told(point, problems, stated.weights) for point in points]
        numbers += sum(3 + each.slope.size for each in told)
        coupler.tell(told)
    return CoupledPlanes(
        coupled_planes(planes, coupler.best), planes, coupler.best, coupler.objective, coupler.first,
        coupler.at_least, coupler.exchanges, 8 * numbers,
    )


def _told(point: FloatArray, problems: Sequence[SiteProblem], shares: FloatArray) -> Told:
    """Mean over the sites, each by its weight."""
    answers = [answer_cuts((problem,), point).arrays for problem in problems]
    loss, height = (
        math.fsum(share * float(each[name][0]) for share, each in zip(shares, answers, strict=True))
        for name in ("risk", "cut_height")
    )
    slope = np.add.reduce([share * each["slope"][0] for share, each in zip(shares, answers, strict=True)])
    return Told(loss, height, slope)
