r"""The cut model of a federated risk, its minimum and the projection on its level sets.

Each site's risk is bounded below by its cuts and by zero (hinge risk is never negative), so with site weights a_g

    model(w) = sum_g a_g max(0, max_j offset_gj + <slope_gj, w>)

is a convex minorant of F. Two small programs are solved in the variables (w, t_1 .. t_G) by a primal-dual interior
point method (Mehrotra) whose work per iteration is one product of the cuts with themselves:

- ``minimise``: ``min sum_g a_g t_g + curvature/2 ||w - centre||^2`` with a vanishing curvature, for the lower bound;
- ``project``: ``min 1/2 ||w - centre||^2`` subject to ``sum_g a_g t_g <= level``, for the next point to ask
  (Lemarechal, Nemirovskii, Nesterov 1995).

What they return is never trusted as a bound: see ``models.lower_bound``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from models.problem import FloatArray

_MAX_ITERATIONS = 60
_TOLERANCE = 1e-12
_VANISHING = 1e-10


@dataclass(frozen=True)
class CutModel:
    """Cuts of all sites: ``site`` (m,) index, ``offset`` (m,), ``slope`` (m, D); ``shares`` (G,) are the a_g."""

    shares: FloatArray
    site: NDArray[np.intp]
    offset: FloatArray
    slope: FloatArray

    def site_values(self, points: FloatArray) -> FloatArray:
        """Model of each site's risk at points (K, D), shape (K, G)."""
        values = np.zeros((points.shape[0], self.shares.shape[0]))
        heights = self.offset + points @ self.slope.T
        for g in range(self.shares.shape[0]):
            np.maximum(values[:, g], heights[:, self.site == g].max(axis=1, initial=0.0), out=values[:, g])
        return values

    def site_slope(self, site: int, point: FloatArray) -> FloatArray:
        """Subgradient of one site's model at a point (D,)."""
        own = self.site == site
        heights = self.offset[own] + self.slope[own] @ point
        if heights.size == 0 or heights.max() <= 0:
            return np.zeros_like(point)
        return np.asarray(self.slope[own][int(np.argmax(heights))])

    def value(self, point: FloatArray) -> float:
        """Model of F at a point (D,)."""
        return float(self.site_values(point[None])[0] @ self.shares)


@dataclass(frozen=True)
class ModelPoint:
    """Point (D,) and the multipliers of the cuts (m,); the zero cut of site g takes the rest of ``a_g``.

    ``level_price`` is the multiplier of the level constraint (0 for :func:`minimise`).
    """

    point: FloatArray
    multipliers: FloatArray
    level_price: float


def minimise(model: CutModel, centre: FloatArray) -> ModelPoint:
    """Minimiser of the model, the one near ``centre`` where there are many, with multipliers."""
    return _solve(model, centre, None)


def project(model: CutModel, centre: FloatArray, level: float) -> ModelPoint:
    """Nearest point to ``centre`` at which the model is at or below ``level``."""
    return _solve(model, centre, level)


def _solve(model: CutModel, centre: FloatArray, level: float | None) -> ModelPoint:
    """Set the program up in the units of the model: heights at the centre, slopes of order one."""
    n_sites, dimension = model.shares.shape[0], centre.shape[0]
    heights = model.offset + model.slope @ centre
    height = float(np.abs(heights).max(initial=0.0)) or 1.0
    steep = float(np.sqrt(np.einsum("jd,jd->j", model.slope, model.slope).max(initial=0.0))) or 1.0
    length = height / steep
    rows = np.zeros((model.site.shape[0] + n_sites, dimension + n_sites))
    rows[: model.site.shape[0], :dimension] = model.slope * (length / height)
    rows[np.arange(model.site.shape[0]), dimension + model.site] = -1.0
    rows[model.site.shape[0] + np.arange(n_sites), dimension + np.arange(n_sites)] = -1.0
    limits = np.concatenate([-heights / height, np.zeros(n_sites)])
    curvature, linear = np.zeros(dimension + n_sites), np.zeros(dimension + n_sites)
    if level is None:
        curvature[:dimension], linear[dimension:] = _VANISHING, model.shares
    else:
        curvature[:dimension] = 1.0
        rows = np.vstack([rows, np.concatenate([np.zeros(dimension), model.shares])])
        limits = np.append(limits, level / height)
    solution, duals = _interior_point(curvature, linear, rows, limits)
    point = centre + length * solution[:dimension]
    price = float(duals[-1]) if level is not None else 0.0
    multipliers = duals[: model.site.shape[0]]
    return ModelPoint(point, multipliers / price if price > 0 else multipliers, price * length * length / height)


def _interior_point(
    curvature: FloatArray, linear: FloatArray, rows: FloatArray, limits: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Minimise ``1/2 x'diag(curvature)x + linear'x`` subject to ``rows x <= limits``; point and duals >= 0.

    Mehrotra's predictor-corrector from an infeasible start. Ends at the tolerance or where rounding stops progress; the
    best iterate is returned either way.
    """
    m, n = rows.shape
    x = np.zeros(n)
    slack = np.maximum(limits - rows @ x, 1.0)
    dual = np.ones(m)
    best, best_error = (x, dual), np.inf
    for _ in range(_MAX_ITERATIONS):
        dual_residual = curvature * x + linear + rows.T @ dual
        primal_residual = rows @ x + slack - limits
        mean = float(slack @ dual) / m
        error = max(float(np.abs(dual_residual).max()), float(np.abs(primal_residual).max()), mean * m)
        if error < best_error:
            best, best_error = (x, dual), error
        if error <= _TOLERANCE:
            break
        ratio = dual / slack
        matrix = (rows.T * ratio) @ rows
        matrix[np.diag_indices(n)] += curvature
        factor = _factor(matrix)
        if factor is None:
            break

        def direction(complementarity: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
            push = ratio * primal_residual - complementarity / slack  # noqa: B023 - used within the iteration only
            dx = cho_solve(factor, -dual_residual - rows.T @ push, check_finite=False)  # noqa: B023 - as above
            moved = rows @ dx
            return dx, -primal_residual - moved, push + ratio * moved  # noqa: B023 - as above

        dx, dslack, ddual = direction(slack * dual)
        step = min(_step(slack, dslack), _step(dual, ddual))
        ahead = float((slack + step * dslack) @ (dual + step * ddual)) / m
        centring = (ahead / mean) ** 3
        dx, dslack, ddual = direction(slack * dual + dslack * ddual - centring * mean)
        primal_step, dual_step = _step(slack, dslack), _step(dual, ddual)
        if curvature.any():
            primal_step = dual_step = min(primal_step, dual_step)
        x = x + primal_step * dx
        slack = slack + primal_step * dslack
        dual = dual + dual_step * ddual
    return best


def _factor(matrix: FloatArray) -> tuple[FloatArray, bool] | None:
    for jitter in (0.0, 1e-14, 1e-11):
        try:
            shifted = matrix + np.diag(jitter * matrix.diagonal()) if jitter else matrix
            factor: tuple[FloatArray, bool] = cho_factor(shifted, check_finite=False)
            return factor
        except LinAlgError:
            continue
    return None


def _step(values: FloatArray, change: FloatArray) -> float:
    """Longest step that keeps ``values`` positive, a little short of the border."""
    falling = change < 0
    if not falling.any():
        return 1.0
    return min(1.0, 0.995 * float((-values[falling] / change[falling]).min()))
