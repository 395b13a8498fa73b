r"""The cut model of a federated risk.

With unbounded support a site's risk is ``r_g(w) = min_{lam >= ||w||_*} radius lam + mean_i max(..)``, so what an answer
proves is sharper than a plane: the part of the radius that is not spent on flips keeps its norm,

    r_g(w) >= offset_j + <slope_j, w> + norm_weight_j ||w||_* + <swing_j, |w|>,

where norm_weight_j is 0 on a box and swing_j >= 0 (``models.worst_case.box_transport``) is 0 where there is none.

With floor_g the largest norm weight seen of site g (its radius, once it answered at zero) and site weights a_g

    model_g(w) = max(floor_g ||w||_*, max_j offset_j + <slope_j, w> + norm_weight_j ||w||_* + <swing_j, |w|>),
    model(w) = max_{q in Q} sum_g q_g model_g(w),         Q the ball around the site weights (``site_ambiguity.ball``),

is a convex minorant of F; with radius 0 it is ``sum_g a_g model_g(w)``. ``models.cuts.cut_program`` minimises it and
projects on its level sets; ``models.cuts.lower_bound`` is what it proves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, TransportNorm, rounded
from models.cuts.distinct import distinct_cuts
from models.geometry.norms import dual_norms
from models.site_ambiguity.ball import MixtureBall, worst_mixture

_LAST_DIGIT = 1e-11
"""Far above the rounding of a risk, far below the digits of a point that is asked."""


@dataclass(frozen=True)
class CutModel:
    """Cuts of all sites, m in number, over weights (D,) of which the first ``n_features`` meet the norm.

    ``site_weights`` and ``floor`` (G,); ``site`` (m,) index; ``offset`` (m,); ``slope`` (m, D); ``norm_weight`` (m,).
    ``mixture`` is the ball around the site weights. ``feature_scale`` (P,): the norm is that of ``feature_scale * w``;
    None: of w. ``swing`` (m, P), at or above 0; None: all are 0. ``idle`` (m,): exchanges since a cut came or last
    held up a solution; None: nothing is known. ``reach``: the bound is of weights up to there, by absolute value.
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
    idle: FloatArray | None = None
    reach: float = np.inf

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
        for of_sites, of_cuts in zip(values, heights, strict=True):
            np.maximum.at(of_sites, self.site, of_cuts)
        return values

    def site_slopes(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slopes (G, D) and norm weights (G,) of the cuts (or floors) that make the sites' models at a point (D,).

        Swings are in the slopes. Of cuts of one site that are equally high there, the first.
        """
        heights, floors = self.heights(point[None])[0], float(self.norms(point[None])[0]) * self.floor
        slopes, norm_weights = np.zeros((self.floor.shape[0], point.shape[0])), self.floor.copy()
        order = np.lexsort((-heights, self.site))
        own, firsts = np.unique(self.site[order], return_index=True)
        tops = order[firsts]
        above = heights[tops] > floors[own]
        own, tops = own[above], tops[above]
        slopes[own], norm_weights[own] = self.slope[tops], self.norm_weight[tops]
        slopes[own, : self.n_features] += np.sign(point[: self.n_features]) * self.swings[tops]
        return slopes, norm_weights

    def value(self, point: FloatArray) -> float:
        """Model of F at a point (D,)."""
        return worst_mixture(self.site_values(point[None])[0], self.site_weights, self.mixture).value

    def with_mixture(self, mixture: FloatArray) -> CutModel:
        """The same cuts weighted by one mixture (G,) of the ball, and no other: at or below this model everywhere."""
        return replace(self, site_weights=mixture, mixture=MixtureBall())

    def of_cuts(self, keep: NDArray[np.bool_]) -> CutModel:
        """Some of the cuts, ``keep`` (m,); the floors stay."""
        return replace(
            self, site=self.site[keep], offset=self.offset[keep], slope=self.slope[keep],
            norm_weight=self.norm_weight[keep], swing=None if self.swing is None else self.swing[keep], idle=None,
        )

    @cached_property
    def without_last_digits(self) -> CutModel:
        """The same cuts but for the digits below a share of 1e-11 of the largest of their kind."""
        swing = None if self.swing is None else rounded(self.swing, _LAST_DIGIT)
        return replace(
            self, floor=rounded(self.floor, _LAST_DIGIT), offset=rounded(self.offset, _LAST_DIGIT),
            slope=rounded(self.slope, _LAST_DIGIT), norm_weight=rounded(self.norm_weight, _LAST_DIGIT), swing=swing,
        )

    @cached_property
    def distinct(self) -> NDArray[np.bool_]:
        """Mask (m,) of one of each cut that a site told more than once: looked for once, whatever is asked of them."""
        return distinct_cuts(self.site, self.offset, self.norm_weight, self.slope, self.swing)

    def floors_left(self, multipliers: FloatArray) -> FloatArray:
        """What the cuts' multipliers (m,) leave of each ``a_g`` for the floor of the site, (G,)."""
        spent = np.bincount(self.site, weights=multipliers, minlength=self.site_weights.shape[0])
        return np.maximum(self.site_weights - spent, 0.0)

    def weighted_sum(self, multipliers: FloatArray) -> tuple[FloatArray, float]:
        """Slope v (D,) and norm weight Z of the cuts summed with multipliers (m,), the floors taking what is left."""
        carried = multipliers @ self.norm_weight + self.floors_left(multipliers) @ self.floor
        return multipliers @ self.slope, float(carried)

    def weighted_height(self, multipliers: FloatArray, point: FloatArray) -> float:
        """The same sum at a point (D,), without norms and swings."""
        return float(multipliers @ (self.offset + self.slope @ point))


@dataclass(frozen=True)
class ModelPoint:
    """Point (D,), the worst mixture there (G,), and the multipliers of the cuts (m,).

    ``mixture`` is in the ball; the multipliers of site g sum to at most ``mixture[g]``. ``level_price`` is the
    multiplier of the level constraint (0 for :func:`minimise`): the projection is a prox step of the model with
    penalty ``1 / level_price``. ``missed`` (m,): cuts that were left out and lie above the solution, by little.
    """

    point: FloatArray
    multipliers: FloatArray
    level_price: float
    mixture: FloatArray
    missed: NDArray[np.bool_] | None = None
