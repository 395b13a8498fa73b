"""What the sites find on their held-out rows, and the interval that they are asked to count."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray
from models.evaluation.intervals import residual_interval
from models.problem import ServerProblem
from models.site_ambiguity.ball import worst_mixture
from services.contracts.plan import Plan
from services.contracts.run import Run, SiteAnswer
from services.contracts.scores import COVERAGE_CONFIDENCE


@dataclass(frozen=True)
class Evaluation:
    """What each site that answered found on its held-out part, by site id.

    ``confusion`` : counts (C, C) of a classification. ``sums`` : those of a regression, ``scores.REGRESSION_SUMS``.
    ``loss`` : mean training loss, the heads summed. ``risk`` : exact worst-case risk over the site's ball at the
    weights, the heads summed. ``worst_case_risk`` : that of the worst mixture in the plan's ball, whatever the method
    minimised, infinite where it is not known; ``worst_weights`` : the mixture, the mean over the heads.
    """

    confusion: Mapping[str, FloatArray]
    sums: Mapping[str, Mapping[str, float]]
    loss: Mapping[str, float]
    risk: Mapping[str, float]
    worst_case_risk: float
    worst_weights: Mapping[str, float]
    answers: tuple[SiteAnswer, ...]


def worst_over_sites(run: Run, risks: Mapping[str, FloatArray], otherwise: float) -> tuple[float, dict[str, float]]:
    """Risk of the worst mixture in the plan's ball from the risks (K,) of all sites, each head with its own mixture.

    Where a site's risk is missing: ``otherwise``, and no mixture.
    """
    names = [site.site_id for site in run.members]
    if any(name not in risks for name in names):
        return otherwise, {}
    centre, ball = np.array([site.weight for site in run.members]), run.plan.mixture.ball
    heads = [worst_mixture(head, centre, ball) for head in np.stack([risks[name] for name in names], axis=1)]
    shares = np.mean([head.weights for head in heads], axis=0)
    return sum(head.value for head in heads), dict(zip(names, shares.tolist(), strict=True))


def risk_bound(upper: float, risks: Mapping[str, float], problem: ServerProblem) -> float:
    """Bound on the expected loss in every mixture of the ball; see ``TrainedModel``."""
    known = np.array([risks[site.site_id] for site in problem.sites])
    if not np.isfinite(known).all():
        return upper
    return max(upper, worst_mixture(known, problem.weights, problem.mixture).value)


def interval_ends(plan: Plan, risk_bound: float) -> FloatArray:
    """Ends (2,) of the residual's interval; without a bound on the risk everything lies inside."""
    if not math.isfinite(risk_bound):
        return np.array([-1.0, 1.0]) * np.finfo(np.float64).max
    return np.array(residual_interval(plan.spec.loss.loss, risk_bound, COVERAGE_CONFIDENCE))
