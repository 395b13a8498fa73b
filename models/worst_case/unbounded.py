r"""Exact worst-case risk of any loss where features (and targets) may move without bounds.

Classification, ``m_i = y_i (<w, x_i> + b)`` (DRFL Corollaries B.4 to B.6):

    r(w) = min_{lam >= c ||w||_*} radius lam + mean_i max(L(m_i), L(-m_i) - label_flip_cost lam),

with c the Lipschitz constant of L. As for the hinge the adversary buys label flips in the order of
``L(-m_i) - L(m_i)`` and spends the rest of the radius on moving features, worth ``c ||w||_*`` a unit. B.5 as printed
bounds its phi below by 0, which overstates the smooth hinge at margins below -1; here L is the loss itself.

Regression, ``z_i = <w, x_i> + b - y_i`` (DRFL Corollaries B.1 to B.3): with ``kappa = label_flip_cost`` the price of
moving a target, all rows may be moved far and at the same rate, so

    r(w) = mean_i L(z_i) + radius c max(||w||_*, 1 / kappa).

The dual of the norm ``||x|| + kappa |y|`` of DRFL eq. 12 at ``(w, -1)`` is ``max(||w||_*, 1 / kappa)``; that is what
the paper writes as ``||(w, -1)||_*``.
"""

from __future__ import annotations

from models.basics import FloatArray
from models.geometry.norms import dual_norm
from models.problem import SiteProblem
from models.worst_case.label_flips import buy_flips
from models.worst_case.saddle_point import RiskEvaluation


def evaluate_classification(weights: FloatArray, intercept: float, problem: SiteProblem) -> RiskEvaluation:
    """Worst-case risk at a plane ``weights`` (P,) with its cut."""
    spec, labels = problem.spec, problem.labels
    loss, count = spec.loss, labels.shape[0]
    margins = labels * (problem.features @ weights + intercept)
    kept = loss.value(margins)
    floor = loss.lipschitz * dual_norm(weights, spec.transport_norm)
    flips = buy_flips(loss.value(-margins) - kept, spec.radius, spec.label_flip_cost, floor, problem.row_weights)
    flipped = flips.shares(count)
    slopes = (1.0 - flipped) * loss.slope(margins) - flipped * loss.slope(-margins)
    coefficients = problem.weigh(labels * slopes) / count
    return RiskEvaluation(
        value=float(problem.weigh(kept).mean()) + flips.added / count + flips.leftover * floor,
        multiplier=flips.multiplier,
        slope=coefficients @ problem.features,
        intercept_slope=float(coefficients.sum()),
        norm_weight=flips.leftover * loss.lipschitz,
        rows=coefficients,
    )


def evaluate_regression(weights: FloatArray, intercept: float, problem: SiteProblem) -> RiskEvaluation:
    """Worst-case risk at a plane ``weights`` (P,) with its cut.

    Where moving targets is worth more than moving features, the radius adds a constant and the norm has no part.
    """
    spec, count = problem.spec, problem.labels.shape[0]
    residuals = problem.features @ weights + intercept - problem.labels
    coefficients = problem.weigh(spec.loss.slope(residuals)) / count
    norm, of_targets = dual_norm(weights, spec.transport_norm), 1.0 / spec.label_flip_cost
    multiplier = spec.loss.lipschitz * max(norm, of_targets)
    mean_loss = float(problem.weigh(spec.loss.value(residuals)).mean())
    return RiskEvaluation(
        value=mean_loss + (spec.radius * multiplier if spec.radius > 0 else 0.0),
        multiplier=multiplier,
        slope=coefficients @ problem.features,
        intercept_slope=float(coefficients.sum()),
        norm_weight=spec.radius * spec.loss.lipschitz if spec.radius > 0 and norm >= of_targets else 0.0,
        rows=coefficients,
    )
