r"""The cut model of a federated risk, its minimum and the projection on its level sets.

With unbounded support a site's risk is ``r_g(w) = min_{lam >= ||w||_*} radius lam + mean_i max(..)``, so what an answer
proves is sharper than a plane: the part of the radius that is not spent on flips keeps its norm,

    r_g(w) >= offset_j + <slope_j, w> + norm_weight_j ||w||_*        (norm_weight_j = 0 on a box).

With floor_g the largest norm weight seen of site g (its radius, once it answered at zero) and site weights a_g

    model_g(w) = max(floor_g ||w||_*, max_j offset_j + <slope_j, w> + norm_weight_j ||w||_*),
    model(w) = max_{q in Q} sum_g q_g model_g(w),         Q the ball around the site weights (``models.mixture``),

is a convex minorant of F; with radius 0 it is ``sum_g a_g model_g(w)``.
Two small cone programs in (w, heights of the sites, norm) are solved on it:

- ``minimise``: the least of the model, for the lower bound;
- ``project``: the nearest point to a centre at which the model is at or below a level, for the next point to ask
  (Lemarechal, Nemirovskii, Nesterov 1995).

What they return is never trusted as a bound: see ``models.lower_bound``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from models.ambiguity import DUAL_NORM, vector_norm
from models.cone_program import ConeProgram, solve_cone_program
from models.mixture import MixtureBall, pull_into_ball, worst_mixture
from models.mixture_rows import MixtureRows, mixture_rows
from models.problem import FloatArray, TransportNorm

_TIGHT, _ROUGH = 1e-12, 1e-9
"""Tolerances: a bound wants all that there is; where to ask next does not."""


_SMALL = 1e-3
"""Least unit of height: a hinge risk is of order one by nature, however near to 0 the cuts are at some point."""


@dataclass(frozen=True)
class CutModel:
    """Cuts of all sites, m in number, over weights (D,) of which the first ``n_features`` meet the norm.

    ``shares`` and ``floor`` (G,); ``site`` (m,) index; ``offset`` (m,); ``slope`` (m, D); ``norm_weight`` (m,).
    ``mixture`` is the ball around the shares. ``stretch`` (P,): the norm is that of ``stretch * w``; None: of w.
    """

    shares: FloatArray
    floor: FloatArray
    site: NDArray[np.intp]
    offset: FloatArray
    slope: FloatArray
    norm_weight: FloatArray
    transport_norm: TransportNorm
    n_features: int
    mixture: MixtureBall = MixtureBall()
    stretch: FloatArray | None = None

    @property
    def units(self) -> FloatArray:
        """Stretch (P,) of the weights before the norm."""
        return np.ones(self.n_features) if self.stretch is None else self.stretch

    @property
    def has_norm(self) -> bool:
        """Whether any cut meets the norm."""
        return bool(self.floor.any() or self.norm_weight.any())

    def norms(self, points: FloatArray) -> FloatArray:
        """Dual norm of each of the points (K, D)."""
        return vector_norm(points[:, : self.n_features] * self.units, DUAL_NORM[self.transport_norm])

    def site_values(self, points: FloatArray) -> FloatArray:
        """Model of each site's risk at points (K, D), shape (K, G)."""
        norms = self.norms(points)
        values = norms[:, None] * self.floor
        heights = self.offset + points @ self.slope.T + norms[:, None] * self.norm_weight
        for g in range(self.shares.shape[0]):
            np.maximum(values[:, g], heights[:, self.site == g].max(axis=1, initial=0.0), out=values[:, g])
        return values

    def site_slope(self, site: int, point: FloatArray) -> tuple[FloatArray, float]:
        """Slope and norm weight of the cut (or floor) that makes one site's model at a point (D,)."""
        norm, own = float(self.norms(point[None])[0]), np.flatnonzero(self.site == site)
        heights = self.offset[own] + self.slope[own] @ point + norm * self.norm_weight[own]
        if heights.size == 0 or heights.max() <= norm * self.floor[site]:
            return np.zeros_like(point), float(self.floor[site])
        top = own[int(np.argmax(heights))]
        return self.slope[top], float(self.norm_weight[top])

    def value(self, point: FloatArray) -> float:
        """Model of F at a point (D,)."""
        return worst_mixture(self.site_values(point[None])[0], self.shares, self.mixture).value

    def with_mixture(self, mixture: FloatArray) -> CutModel:
        """The same cuts weighted by one mixture (G,) of the ball, and no other: at or below this model everywhere."""
        return replace(self, shares=mixture, mixture=MixtureBall())

    def floors_left(self, multipliers: FloatArray) -> FloatArray:
        """What the cuts' multipliers (m,) leave of each ``a_g`` for the floor of the site, (G,)."""
        spent = np.bincount(self.site, weights=multipliers, minlength=self.shares.shape[0])
        return np.maximum(self.shares - spent, 0.0)


@dataclass(frozen=True)
class ModelPoint:
    """Point (D,), the worst mixture there (G,), and the multipliers of the cuts (m,).

    ``mixture`` is in the ball; the multipliers of site g sum to at most ``mixture[g]``. ``level_price`` is the
    multiplier of the level constraint (0 for :func:`minimise`): the projection is a prox step of the model with
    penalty ``1 / level_price``.
    """

    point: FloatArray
    multipliers: FloatArray
    level_price: float
    mixture: FloatArray


class HeightRule(Protocol):
    """Another convex way to make one number of the sites' heights than the worst mixture of a ball.

    Nowhere falling in a height. ``tilt`` (D,) is a slope that is added to it; :meth:`rows` states it.
    """

    @property
    def tilt(self) -> FloatArray:
        """Slope (D,)."""
        ...

    def rows(self, heights: FloatArray) -> MixtureRows:
        """Rows and cost of the rule; ``heights`` (G,) are those of the start."""
        ...


def minimise(model: CutModel, centre: FloatArray, rule: HeightRule | None = None) -> ModelPoint:
    """Minimiser of the model, found from ``centre``, with multipliers.

    With a ``rule``: of the rule of the sites' models; the mixture is then the sums of the multipliers, as they are.
    """
    return _solve(model, centre, None, rule=rule)


def project(model: CutModel, centre: FloatArray, level: float, rule: HeightRule | None = None) -> ModelPoint:
    """Nearest point to ``centre`` at which the model (or the rule of the sites' models) is at or below ``level``."""
    return _solve(model, centre, level, rule=rule)


def prox_step(model: CutModel, centre: FloatArray, penalty: float) -> ModelPoint:
    """Minimiser of the model plus ``penalty/2 ||w - centre||^2``."""
    return _solve(model, centre, None, penalty)


def _solve(
    model: CutModel, centre: FloatArray, level: float | None, penalty: float = 0.0, rule: HeightRule | None = None
) -> ModelPoint:
    """State the program in the model's units: heights at the centre are of order one, and so are slopes."""
    n_sites, m, first = model.shares.shape[0], model.site.shape[0], centre.shape[0]
    heights = model.offset + model.slope @ centre
    tall = np.abs(heights) + model.norm_weight * float(model.norms(centre[None])[0])
    height = max(float(tall.max(initial=0.0)), _SMALL)
    steep = float(np.sqrt(np.einsum("jd,jd->j", model.slope, model.slope).max(initial=0.0))) or 1.0
    length = height / steep
    norm = _norm_rows(model, centre / length)
    rows = np.zeros((m + n_sites, first + n_sites + norm.columns))
    rows[:m, :first] = model.slope / steep
    rows[np.arange(m), first + model.site] = -1.0
    rows[m + np.arange(n_sites), first + np.arange(n_sites)] = -1.0
    rows[:, first + n_sites :] = (np.concatenate([model.norm_weight, model.floor]) / steep)[:, None]
    limits = np.concatenate([-heights / height, np.zeros(n_sites)])
    start = _inside(model, rows, limits, norm.start, first)
    raised = start[first : first + n_sites]
    mixed = mixture_rows(model.shares, model.mixture, raised) if rule is None else rule.rows(raised)
    tilt = np.zeros(first) if rule is None else rule.tilt
    width = rows.shape[1] + mixed.start.shape[0]
    columns = np.r_[first : first + n_sites, rows.shape[1] : width]
    cost, curvature = np.zeros(width), np.zeros(width)
    cost[columns] = mixed.cost
    cost[:first] = tilt / steep
    blocks = [_wide(rows, width), _wide(mixed.rows, width, columns)]
    if level is None:
        curvature[:first], linear = penalty * length * length / height, cost
        ends = np.zeros(0)
    else:
        curvature[:first], linear = 1.0, np.zeros(width)
        blocks.append(cost[None])
        ends = np.array([(level - float(tilt @ centre)) / height])
    level_row = sum(block.shape[0] for block in blocks) - 1
    blocks += [_wide(norm.rows, width), _wide(mixed.cone, width, columns)]
    limits = np.concatenate([limits, np.zeros(mixed.rows.shape[0]), ends, norm.limits, np.zeros(mixed.cone.shape[0])])
    cones = tuple(size for size in (norm.cone, mixed.cone.shape[0]) if size)
    program = ConeProgram(curvature, linear, np.vstack(blocks), limits, cones, np.concatenate([start, mixed.start]))
    solution, duals = solve_cone_program(program, _TIGHT if level is None else _ROUGH)
    price = 1.0 if level is None else float(duals[level_row])
    multipliers = duals[:m] / price if price > 0 else np.zeros(m)
    sums = np.bincount(model.site, weights=duals[:m], minlength=n_sites) + duals[m : m + n_sites]
    return ModelPoint(
        centre + length * solution[:first],
        multipliers,
        0.0 if level is None else price * length * length / height,
        pull_into_ball(sums, model.shares, model.mixture) if rule is None else sums,
    )


def _wide(rows: FloatArray, width: int, columns: NDArray[np.intp] | None = None) -> FloatArray:
    """Rows over some of the columns (the first ones where not said otherwise) as rows over all."""
    if rows.shape[1] == width:
        return rows
    wide = np.zeros((rows.shape[0], width))
    wide[:, np.arange(rows.shape[1]) if columns is None else columns] = rows
    return wide


def _inside(model: CutModel, rows: FloatArray, limits: FloatArray, norm: FloatArray, dimension: int) -> FloatArray:
    """A start at the centre with heights and norm one unit above what they must be."""
    n_sites, m = model.shares.shape[0], model.site.shape[0]
    below = rows[:, dimension + n_sites :] @ norm - limits
    heights = below[m:].copy()
    np.maximum.at(heights, model.site, below[:m])
    return np.concatenate([np.zeros(dimension), heights + 1.0, norm])


@dataclass(frozen=True)
class _NormRows:
    """Rows that make the sum of some extra columns an upper bound of the norm of (centre + w).

    ``start``: values of those columns at w = 0, one unit above what they must be.
    """

    rows: FloatArray
    limits: FloatArray
    start: FloatArray
    cone: int

    @property
    def columns(self) -> int:
        """Number of extra columns."""
        return int(self.start.shape[0])


def _norm_rows(model: CutModel, centre: FloatArray) -> _NormRows:
    dimension, n_sites, p = centre.shape[0], model.shares.shape[0], model.n_features
    if not model.has_norm:
        return _NormRows(np.zeros((0, dimension + n_sites)), np.zeros(0), np.zeros(0), 0)
    dual, units = DUAL_NORM[model.transport_norm], model.units
    columns = p if dual == "l1" else 1
    middle = centre[:p] * units
    size = np.abs(middle) if dual == "l1" else vector_norm(middle[None], dual)
    first, features = dimension + n_sites, np.arange(p)
    if model.transport_norm == "l2":
        rows, limits = np.zeros((p + 1, first + 1)), np.zeros(p + 1)
        rows[0, first] = -1.0
        rows[1 + features, features] = -units
        limits[1:] = middle
        return _NormRows(rows, limits, size + 1.0, p + 1)
    rows = np.zeros((2 * p, first + columns))
    rows[features, features], rows[p + features, features] = units, -units
    bound = first + (features if columns > 1 else 0)
    rows[features, bound], rows[p + features, bound] = -1.0, -1.0
    return _NormRows(rows, np.concatenate([-middle, middle]), size + 1.0, 0)
