r"""The cut model of a federated risk, its minimum and the projection on its level sets.

With unbounded support a site's risk is ``r_g(w) = min_{lam >= ||w||_*} radius lam + mean_i max(..)``, so what an answer
proves is sharper than a plane: the part of the radius that is not spent on flips keeps its norm,

    r_g(w) >= offset_j + <slope_j, w> + norm_weight_j ||w||_* + <swing_j, |w|>,

where norm_weight_j is 0 on a box and swing_j >= 0 (``models.worst_case.box_transport``) is 0 where there is none.

With floor_g the largest norm weight seen of site g (its radius, once it answered at zero) and site weights a_g

    model_g(w) = max(floor_g ||w||_*, max_j offset_j + <slope_j, w> + norm_weight_j ||w||_* + <swing_j, |w|>),
    model(w) = max_{q in Q} sum_g q_g model_g(w),         Q the ball around the site weights (``site_ambiguity.ball``),

is a convex minorant of F; with radius 0 it is ``sum_g a_g model_g(w)``.
Two small cone programs in (w, heights of the sites, norm, absolute weights) are solved on it:

- ``minimise``: the least of the model, for the lower bound;
- ``project``: the nearest point to a centre at which the model is at or below a level, for the next point to ask
  (Lemarechal, Nemirovskii, Nesterov 1995).

What they return is never trusted as a bound: see ``models.cuts.lower_bound``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, TransportNorm, rounded
from models.geometry.norms import DUAL_NORM, dual_norms, vector_norm
from models.site_ambiguity.ball import MixtureBall, pull_into_ball, worst_mixture
from models.site_ambiguity.epigraph import MixtureRows, mixture_rows
from models.solvers.conic_interior_point import ConeProgram, solve_cone_program

_TIGHT, _ROUGH = 1e-12, 1e-9
"""Tolerances: a bound wants all that there is; where to ask next does not."""

_LAST_DIGIT = 1e-11
"""Far above the rounding of a risk, far below the digits of a point that is asked."""

_SMALL = 1e-3
"""Least unit of height: a hinge risk is of order one by nature, however near to 0 the cuts are at some point."""


@dataclass(frozen=True)
class CutModel:
    """Cuts of all sites, m in number, over weights (D,) of which the first ``n_features`` meet the norm.

    ``site_weights`` and ``floor`` (G,); ``site`` (m,) index; ``offset`` (m,); ``slope`` (m, D); ``norm_weight`` (m,).
    ``mixture`` is the ball around the site weights. ``feature_scale`` (P,): the norm is that of ``feature_scale * w``;
    None: of w. ``swing`` (m, P), at or above 0; None: all are 0.
    """

    site_weights: FloatArray
    floor: FloatArray
    site: NDArray[np.intp]
    offset: FloatArray
    slope: FloatArray
    norm_weight: FloatArray
    transport_norm: TransportNorm
    n_features: int
    mixture: MixtureBall = MixtureBall()
    feature_scale: FloatArray | None = None
    swing: FloatArray | None = None

    @property
    def units(self) -> FloatArray:
        """Stretch (P,) of the weights before the norm."""
        return np.ones(self.n_features) if self.feature_scale is None else self.feature_scale

    @property
    def has_norm(self) -> bool:
        """Whether any cut meets the norm."""
        return bool(self.floor.any() or self.norm_weight.any())

    @property
    def swings(self) -> FloatArray:
        """Coefficients (m, P) of the absolute weights."""
        return np.zeros((self.site.shape[0], self.n_features)) if self.swing is None else self.swing

    def flat(self, sides: FloatArray) -> CutModel:
        """Cuts without swings, at or below these: ``|u_p| >= sides_p u_p`` for sides (P,) in [-1, 1]."""
        slope = self.slope.copy()
        slope[:, : self.n_features] += self.swings * sides
        return replace(self, slope=slope, swing=None)

    def heights(self, points: FloatArray) -> FloatArray:
        """Heights of the cuts at points (K, D), shape (K, m)."""
        heights = self.offset + points @ self.slope.T + self.norms(points)[:, None] * self.norm_weight
        if self.swing is not None:
            heights = heights + np.abs(points[:, : self.n_features]) @ self.swing.T
        return np.asarray(heights)

    def norms(self, points: FloatArray) -> FloatArray:
        """Dual norm of each of the points (K, D)."""
        return dual_norms(points[:, : self.n_features] * self.units, self.transport_norm)

    def site_values(self, points: FloatArray) -> FloatArray:
        """Model of each site's risk at points (K, D), shape (K, G)."""
        values, heights = self.norms(points)[:, None] * self.floor, self.heights(points)
        for g in range(self.site_weights.shape[0]):
            np.maximum(values[:, g], heights[:, self.site == g].max(axis=1, initial=0.0), out=values[:, g])
        return values

    def site_slope(self, site: int, point: FloatArray) -> tuple[FloatArray, float]:
        """Slope and norm weight of the cut (or floor) that makes one site's model at a point (D,), swings in it."""
        norm, own = float(self.norms(point[None])[0]), np.flatnonzero(self.site == site)
        heights = self.heights(point[None])[0, own]
        if heights.size == 0 or heights.max() <= norm * self.floor[site]:
            return np.zeros_like(point), float(self.floor[site])
        top = own[int(np.argmax(heights))]
        slope = self.slope[top].copy()
        slope[: self.n_features] += np.sign(point[: self.n_features]) * self.swings[top]
        return slope, float(self.norm_weight[top])

    def value(self, point: FloatArray) -> float:
        """Model of F at a point (D,)."""
        return worst_mixture(self.site_values(point[None])[0], self.site_weights, self.mixture).value

    def with_mixture(self, mixture: FloatArray) -> CutModel:
        """The same cuts weighted by one mixture (G,) of the ball, and no other: at or below this model everywhere."""
        return replace(self, site_weights=mixture, mixture=MixtureBall())

    def without_last_digits(self) -> CutModel:
        """The same cuts but for the digits below a share of 1e-11 of the largest of their kind."""
        swing = None if self.swing is None else rounded(self.swing, _LAST_DIGIT)
        return replace(
            self, floor=rounded(self.floor, _LAST_DIGIT), offset=rounded(self.offset, _LAST_DIGIT),
            slope=rounded(self.slope, _LAST_DIGIT), norm_weight=rounded(self.norm_weight, _LAST_DIGIT), swing=swing,
        )

    def floors_left(self, multipliers: FloatArray) -> FloatArray:
        """What the cuts' multipliers (m,) leave of each ``a_g`` for the floor of the site, (G,)."""
        spent = np.bincount(self.site, weights=multipliers, minlength=self.site_weights.shape[0])
        return np.maximum(self.site_weights - spent, 0.0)


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

    def rows(self, heights: FloatArray) -> MixtureRows:
        """Rows and cost of the rule; ``heights`` (G,) are those of the start."""


def minimise(model: CutModel, centre: FloatArray, rule: HeightRule | None = None) -> ModelPoint:
    """Minimiser of the model, found from ``centre``, with multipliers.

    With a ``rule``: of the rule of the sites' models; the mixture is then the sums of the multipliers, as they are.
    """
    return _solve(model, centre, None, rule)


def project(model: CutModel, centre: FloatArray, level: float, rule: HeightRule | None = None) -> ModelPoint:
    """Nearest point to ``centre`` at which the model (or the rule of the sites' models) is at or below ``level``.

    To some ten digits of the cuts: it bounds nothing, and the last digits of a cut are those of the features' unit.
    """
    return _solve(model.without_last_digits(), centre, level, rule)


def _solve(model: CutModel, centre: FloatArray, level: float | None, rule: HeightRule | None) -> ModelPoint:
    """State the program in the model's units: heights at the centre are of order one, and so are slopes."""
    n_sites, m, first = model.site_weights.shape[0], model.site.shape[0], centre.shape[0]
    heights = model.offset + model.slope @ centre
    tall = np.abs(heights) + model.norm_weight * float(model.norms(centre[None])[0])
    tall = tall + model.swings @ np.abs(centre[: model.n_features])
    height = max(float(tall.max(initial=0.0)), _SMALL)
    steep = float(np.sqrt(np.einsum("jd,jd->j", model.slope, model.slope).max(initial=0.0))) or 1.0
    length = height / steep
    norm = _norm_rows(model, centre / length, steep)
    rows = np.zeros((m + n_sites, first + n_sites + norm.columns))
    rows[:m, :first] = model.slope / steep
    rows[np.arange(m), first + model.site] = -1.0
    rows[m + np.arange(n_sites), first + np.arange(n_sites)] = -1.0
    rows[:, first + n_sites :] = norm.weights
    limits = np.concatenate([-heights / height, np.zeros(n_sites)])
    start = _inside(model, rows, limits, norm.start, first)
    raised = start[first : first + n_sites]
    mixed = mixture_rows(model.site_weights, model.mixture, raised) if rule is None else rule.rows(raised)
    tilt = np.zeros(first) if rule is None else rule.tilt
    width = rows.shape[1] + mixed.start.shape[0]
    columns = np.r_[first : first + n_sites, rows.shape[1] : width]
    cost, curvature = np.zeros(width), np.zeros(width)
    cost[columns] = mixed.cost
    cost[:first] = tilt / steep
    blocks = [_wide(rows, width), _wide(mixed.rows, width, columns)]
    linear, ends = cost, np.zeros(0)
    if level is not None:
        curvature[:first], linear = 1.0, np.zeros(width)
        blocks.append(cost[None])
        ends = np.array([(level - float(tilt @ centre)) / height])
    level_row = sum(block.shape[0] for block in blocks) - 1
    blocks += [_wide(norm.rows, width), _wide(mixed.cone, width, columns)]
    limits = np.concatenate([limits, np.zeros(mixed.rows.shape[0]), ends, norm.limits, np.zeros(mixed.cone.shape[0])])
    cones = tuple(size for size in (norm.cone, mixed.cone.shape[0]) if size)
    program = ConeProgram(curvature, linear, np.vstack(blocks), limits, cones, np.concatenate([start, mixed.start]))
    solution = solve_cone_program(program, _TIGHT if level is None else _ROUGH)
    duals = solution.multipliers
    price = 1.0 if level is None else float(duals[level_row])
    multipliers = duals[:m] / price if price > 0 else np.zeros(m)
    sums = np.bincount(model.site, weights=duals[:m], minlength=n_sites) + duals[m : m + n_sites]
    return ModelPoint(
        centre + length * solution.point[:first],
        multipliers,
        0.0 if level is None else price * length * length / height,
        pull_into_ball(sums, model.site_weights, model.mixture) if rule is None else sums,
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
    n_sites, m = model.site_weights.shape[0], model.site.shape[0]
    below = rows[:, dimension + n_sites :] @ norm - limits
    heights = below[m:].copy()
    np.maximum.at(heights, model.site, below[:m])
    return np.concatenate([np.zeros(dimension), heights + 1.0, norm])


@dataclass(frozen=True)
class _NormRows:
    """Rows that make some extra columns upper bounds of the norm of (centre + w) and of absolute weights.

    ``weights`` (m + G, columns): with which they count in the cuts and the floors. ``start``: values of those columns
    at w = 0, one unit above what they must be. The last ``cone`` rows are a second-order cone.
    """

    rows: FloatArray
    limits: FloatArray
    start: FloatArray
    weights: FloatArray
    cone: int = 0

    @property
    def columns(self) -> int:
        """Number of extra columns."""
        return int(self.start.shape[0])


def _norm_rows(model: CutModel, centre: FloatArray, steep: float) -> _NormRows:
    """Columns for the norm, then for the absolute weights; with the transport norm l-inf these make the norm."""
    first, p, units = centre.shape[0] + model.site_weights.shape[0], model.n_features, model.units
    dual, middle = DUAL_NORM[model.transport_norm], centre[:p] * units
    norm_weight = (np.concatenate([model.norm_weight, model.floor]) / steep)[:, None]
    swing = np.vstack([model.swings / units, np.zeros((model.site_weights.shape[0], p))]) / steep
    has_swing = bool(swing.any())
    if dual == "l1" and model.has_norm:
        swing, has_swing = swing + norm_weight, True
    alone, each = int(model.has_norm and dual != "l1"), p * int(has_swing)
    weights = np.hstack([norm_weight[:, :alone], swing[:, :each]])
    start = np.concatenate([vector_norm(middle[None], dual)[:alone], np.abs(middle)[:each]]) + 1.0
    features, width = np.arange(p), first + alone + each
    bounds = [np.full(p, first)] * int(alone and dual == "linf") + [first + alone + features] * int(has_swing)
    linear = np.zeros((2 * p * len(bounds), width))
    for k, bound in enumerate(bounds):
        for row, side in ((2 * k * p + features, 1.0), ((2 * k + 1) * p + features, -1.0)):
            linear[row, features], linear[row, bound] = side * units, -1.0
    limits = np.concatenate([np.zeros(0)] + [-middle, middle] * len(bounds))
    cone = np.zeros(((p + 1) * int(alone and dual == "l2"), width))
    if len(cone):
        cone[0, first], cone[1 + features, features] = -1.0, -units
        limits = np.concatenate([limits, [0.0], middle])
    return _NormRows(np.vstack([linear, cone]), limits, start, weights, len(cone))
