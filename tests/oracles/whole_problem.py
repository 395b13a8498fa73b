r"""The whole federated problem as one program: the oracle of what training must reach.

    min_w max_{q in Q} sum_s q_s r_s(w),     Q = { q in the simplex : ||q - q0||_p <= theta }

By DRFL Theorem 4.3 (eq. 4) the inner maximum is the least value of

    <q0, z + eta> + theta ||z + gamma e + eta||_{p*},     eta >= 0, gamma free, z_s = r_s(w),

in which each r_s is an infimum over its set Omega_s (``worst_case``, ``models.reference.pieces``). The ``- gamma`` of
the paper's proof cancels because q0 sums to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import cvxpy as cp
import numpy as np

from models.basics import FloatArray, ProblemError
from models.problem import SiteProblem
from models.site_ambiguity.ball import MixtureBall
from tests.oracles.worst_case import minimise, risk_model

_DUAL_NORM = {"l1": "inf", "l2": 2, "linf": 1}


class WholeSolution(NamedTuple):
    """Optimal value, weights (D,), and a worst mixture (S,) at them."""

    value: float
    weights: FloatArray
    mixture: FloatArray


def solve_whole(
    sites: Sequence[SiteProblem], weights: Sequence[float] | None = None, mixture: MixtureBall | None = None
) -> WholeSolution:
    """Solve over all rows by CVXPY and Clarabel at tight tolerance.

    Parameters
    ----------
    sites : their rows and balls; every loss, transport norm and support of ``models``.
    weights : q0 (S,), at or above 0 with sum 1; None for equal ones.
    mixture : the ball around q0; None for radius 0, fixed weights.

    Raises
    ------
    ProblemError
        No site, or weights that are no mixture of them.
    """
    count = len(sites)
    if count == 0:
        raise ProblemError("a problem needs at least one site")
    centre = np.full(count, 1.0 / count) if weights is None else np.asarray(weights, dtype=np.float64)
    if centre.shape != (count,) or (centre < 0).any() or abs(centre.sum() - 1.0) > 1e-9:
        raise ProblemError(f"site weights must be {count} numbers at or above 0 that sum to 1")
    ball = mixture or MixtureBall()
    plane = cp.Variable(sites[0].features.shape[1] + int(sites[0].spec.fit_intercept))
    heights, eta, gamma = cp.Variable(count), cp.Variable(count, nonneg=True), cp.Variable()
    above: list[cp.Constraint] = []
    constraints: list[cp.Constraint] = []
    for s, site in enumerate(sites):
        risk, more = risk_model(plane, site)
        above.append(risk <= heights[s])
        constraints += more
    if ball.radius > 0:
        raised = heights + eta
        objective = centre @ raised + ball.radius * cp.norm(raised + gamma, _DUAL_NORM[ball.norm])
    else:
        objective = centre @ heights
    value = minimise(objective, above + constraints)
    prices = np.array([float(constraint.dual_value) for constraint in above])
    prices = np.maximum(prices, 0.0)
    return WholeSolution(value, np.asarray(plane.value, dtype=np.float64), prices / prices.sum())
