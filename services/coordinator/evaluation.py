"""What the sites find on their held-out rows, and the interval that they are asked to count."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.intervals import residual_interval
from models.mixture import worst_mixture
from models.problem import FloatArray, ServerProblem
from services.contracts.plan import Plan
from services.contracts.run import SiteAnswer
from services.contracts.scores import COVERAGE_CONFIDENCE, REGRESSION_SUMS


@dataclass(frozen=True)
class Evaluation:
    """What each site that answered found on its held-out part, by site id.

    ``confusion`` : counts (C, C) of a classification. ``sums`` : those of a regression, ``scores.REGRESSION_SUMS``.
    ``loss`` : mean training loss, the heads summed.
    """

    confusion: Mapping[str, FloatArray]
    sums: Mapping[str, Mapping[str, float]]
    loss: Mapping[str, float]
    answers: tuple[SiteAnswer, ...]


def risk_bound(upper: float, risks: Mapping[str, float], problem: ServerProblem) -> float:
    """Bound on the expected loss in every mixture of the ball; see ``TrainedModel``."""
    known = np.array([risks[site.site_id] for site in problem.sites])
    if not np.isfinite(known).all():
        return upper
    return max(upper, worst_mixture(known, np.array([site.weight for site in problem.sites]), problem.mixture).value)


def interval_ends(plan: Plan, risk_bound: float) -> FloatArray:
    """Ends (2,) of the residual's interval; without a bound on the risk everything lies inside."""
    if not math.isfinite(risk_bound):
        return np.array([-1.0, 1.0]) * np.finfo(np.float64).max
    return np.array(residual_interval(plan.spec.loss.loss, risk_bound, COVERAGE_CONFIDENCE))


def scalars(arrays: Mapping[str, FloatArray]) -> dict[str, float]:
    """The sums of a regression among the arrays of an answer."""
    return {name: float(arrays[name]) for name in REGRESSION_SUMS}
