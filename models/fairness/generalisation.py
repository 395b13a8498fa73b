r"""How far the risk on new data can lie above the training risk under relative fairness (RF Theorem 4).

With probability at least 1 - delta, for all hypotheses h and all lambda in Lambda,

    L_lambda(h) <= empirical L_lambda(h) + M eps
        + sqrt(s / (2 N n)) (4 sqrt(V (1 + log(N n / V))) + M sqrt(log(C / delta))),

n sites with N rows each, losses in [0, M], V the VC dimension of the losses (P + 1 for planes with an intercept), s the
skewness of Lambda, and C the number of balls of l1 radius eps that cover it. C is not known in closed form; here it is
bounded by volume: Lambda lies in a hyperplane, within the l1 distance R = ||Lambda||_1 + 1 of (1/n, .., 1/n), so

    C <= (1 + 2 R / eps)^(n - 1).
"""

from __future__ import annotations

import math

from models.basics import ProblemError
from models.fairness.ambiguity_set import RelativeSet


def log_covering_number(ambiguity: RelativeSet, epsilon: float) -> float:
    """Upper bound on ``log C``, C the number of l1 balls of radius ``epsilon`` that cover Lambda."""
    _above_zero("epsilon", epsilon)
    return (ambiguity.size - 1) * math.log1p(2.0 * (ambiguity.sum_norm() + 1.0) / epsilon)


def generalisation_bound(
    ambiguity: RelativeSet,
    *,
    rows_per_site: int,
    vc_dimension: float,
    loss_bound: float = 1.0,
    epsilon: float = 0.01,
    delta: float = 0.05,
) -> float:
    """What RF Theorem 4 adds to the training risk, for every lambda at once; not below 0, may well be above the loss.

    ``ProblemError`` for a VC dimension that is not below the number of all rows, a delta outside (0, 1), or a size that
    is not above 0.
    """
    for name, value in (("rows_per_site", rows_per_site), ("vc_dimension", vc_dimension), ("loss_bound", loss_bound)):
        _above_zero(name, value)
    rows = rows_per_site * ambiguity.size
    if vc_dimension >= rows:
        raise ProblemError(f"the VC dimension must be below the number of all rows {rows}, got {vc_dimension:g}")
    if not 0.0 < delta < 1.0:
        raise ProblemError(f"delta must be above 0 and below 1, got {delta}")
    complexity = 4.0 * math.sqrt(vc_dimension * (1.0 + math.log(rows / vc_dimension)))
    confidence = loss_bound * math.sqrt(log_covering_number(ambiguity, epsilon) - math.log(delta))
    return loss_bound * epsilon + math.sqrt(ambiguity.skewness() / (2.0 * rows)) * (complexity + confidence)


def _above_zero(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ProblemError(f"{name} must be a finite number above 0, got {value}")
