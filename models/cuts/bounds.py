r"""The bounds on the optimum that the evidence gives, the same way for all methods, so all end with one certificate.

- upper bound: the least over the visited points k of ``max_{q in Q} sum_g q_g u_gk``, with ``u_gk`` the risk that site
  g answered at k; where it did not answer there and is absent in this round, its cut model; where it is present, the
  point is left out;
- lower bound: the cut model of all sites (a site that never answered counts 0), see ``models.cuts.lower_bound``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from models.basics import Arrays, FloatArray
from models.cuts.cut_model import ModelPoint
from models.cuts.cut_program import minimise
from models.cuts.evidence import Evidence, cut_model, with_answers
from models.cuts.lower_bound import lower_bound
from models.problem import ServerProblem
from models.site_ambiguity.ball import worst_mixture

_ENOUGH = 0.05
"""Share of the gap that one lower bound may miss: the next closes it, and the last proof is made with all digits."""
_MISSING = 0.1
"""Share of that which multipliers may miss of what they aim at before they are corrected by a dear decomposition."""


def record(
    evidence: Evidence, problem: ServerProblem, point: FloatArray, answers: Mapping[str, Arrays],
    price_floor: FloatArray | None = None,
) -> Evidence:
    """Add a round, as :func:`models.cuts.evidence.with_answers` does, with its upper bound; floors as below."""
    grown = with_answers(evidence, problem, point, answers)
    fresh_weight = float(problem.weights[~np.isnan(grown.risks[-1])].sum())
    grown = replace(grown, fresh_weight=fresh_weight)
    return judged(grown, problem, counted_risks(grown, problem, price_floor))


def counted_risks(evidence: Evidence, problem: ServerProblem, price_floor: FloatArray | None = None) -> FloatArray:
    """Risks (K, G) by which the visited points count; NaN where a site is there now that a point was not told by.

    A site that is away in this round enters by its cuts at every point to which it did not answer. ``price_floor``
    (G,): where a point's last number is a price (``wafl``), what a site's risk is at least for each unit of it.
    """
    missing = np.isnan(evidence.risks)
    absent = missing[-1]
    if not absent.any():
        return evidence.risks
    modelled = cut_model(evidence, problem).site_values(evidence.points)
    if price_floor is not None:
        modelled = np.maximum(modelled, np.outer(evidence.points[:, -1], price_floor))
    return np.asarray(np.where(missing & absent, modelled, evidence.risks))


def enough(evidence: Evidence) -> float:
    """How near a program on the cut model need come, in the units of the risk: a small share of what is not known."""
    left = evidence.upper - evidence.lower
    return _ENOUGH * left if math.isfinite(left) and left > 0 else 0.0


def mixture_bound(evidence: Evidence, problem: ServerProblem, mixture: FloatArray) -> float:
    """Lower bound on the least risk of one mixture (G,) of the sites."""
    model, near = cut_model(evidence, problem).with_mixture(mixture), evidence.best_point
    return lower_bound(model, minimise(model, near).multipliers, near)


def tighten_lower_bound(evidence: Evidence, problem: ServerProblem) -> tuple[Evidence, ModelPoint]:
    """Evidence with the best lower bound its cuts give, and the minimiser of the cut model near the best point."""
    model = cut_model(evidence, problem)
    model_minimiser = minimise(model, evidence.best_point, within=enough(evidence))
    of_mixture, within = model.with_mixture(model_minimiser.mixture), _MISSING * enough(evidence)
    lower = lower_bound(of_mixture, model_minimiser.multipliers, evidence.best_point, within)
    evidence = evidence.using(model_minimiser, problem)
    return replace(evidence, lower=max(evidence.lower, lower)), model_minimiser


def judged(evidence: Evidence, problem: ServerProblem, risks: FloatArray) -> Evidence:
    """Evidence with the visited point of least ``max_q sum_g q_g u_gk`` and that value, u_gk being ``risks`` (K, G).

    A point with a NaN among them does not count.
    """
    site_weights, ball = problem.weights, problem.mixture
    counted = (site_weights > 0) | (ball.radius > 0)
    left_out = np.asarray((np.isnan(risks) & counted).any(axis=1))
    risks = np.where(counted, np.nan_to_num(risks), 0.0)
    totals = np.where(left_out, np.inf, risks @ site_weights)
    if ball.radius == 0:
        return evidence.judged_by(totals)
    if evidence.best >= 0 and not left_out[evidence.best]:
        # What is worst for the best point so far is near the worst for most others: few are left to judge exactly.
        totals = np.maximum(totals, risks @ worst_mixture(risks[evidence.best], site_weights, ball).weights)
    best, upper = -1, math.inf
    for k in np.argsort(totals, kind="stable"):
        # The total under one mixture of the ball is at most that under the worst, so no later point can be better.
        if totals[k] >= upper:
            break
        if (value := worst_mixture(risks[k], site_weights, ball).value) < upper:
            best, upper = int(k), value
    return replace(evidence, upper=upper, best=best)
