r"""Relative fairness for the convex risks: a difference of convex functions, and what can be proven of it.

    F(w) = max_{lambda in Lambda_phi(A, B)} sum_g lambda_g r_g(w)        (RF eq. 6)
         = (max_A <a, r(w)> - phi min_B <b, r(w)>) / (1 - phi)

The risks r_g are convex, the weights lambda may be negative, so F need not be convex. With ``lift_g`` the largest
negative weight that site g can get, ``lambda + lift >= 0`` all over Lambda, and

    F(w) = max_lambda <lambda + lift, r(w)>  -  <lift, r(w)>

is one convex function less another. Replacing the second by its tangent at a centre u makes a convex majorant:

    M_u(w) = max_lambda <lambda + lift, r(w)> - sum_g lift_g (r_g(u) + <v_g, w - u>) >= F(w),    M_u(u) = F(u),

v_g a subgradient of r_g at u (the convex-concave procedure). Minimising it never raises F; where its least value is
F(u), u is a critical point. Two bounds follow from cuts of the r_g alone:

- of the convex part: ``min M_u``, over weights of bounded size. It says whether u is critical, and no more;
- of the whole: every member of Lambda without negative entries has a convex <lambda, r> <= F, so
  ``min_w max {<lambda, r(w)> : lambda in Lambda, lambda >= 0} <= min F``. It holds globally, and need not meet F.
  So does the least of max_A <a, r>, that is, of phi = 0, where A and B have a member in common.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray
from models.cuts.best_weights import intercept_range
from models.cuts.cut_model import CutModel, ModelPoint
from models.cuts.cut_program import minimise
from models.cuts.lower_bound import lower_bound, tilted_lower_bound
from models.fairness.ambiguity_set import RelativeSet
from models.fairness.dual_step import nearest_member
from models.geometry.norms import steepest_move
from models.site_ambiguity.epigraph import MixtureRows

REACH = 1e6
"""Size of weights up to which the bound of the convex part speaks where the cuts do not bound them sooner."""

_ROUNDING = 1e-12
"""By how much sums of mixtures, which are of order one, may miss what they must be."""


def negative_lift(ambiguity: RelativeSet) -> FloatArray:
    """The least vector (G,) at or above 0 that makes ``lambda + lift >= 0`` for every member of Lambda."""
    phi, caps = ambiguity.phi, ambiguity.worst.caps
    least = np.maximum(1.0 - (caps.sum() - caps), 0.0)
    return np.asarray(np.maximum(phi * ambiguity.best.caps - least, 0.0) / (1.0 - phi))


@dataclass(frozen=True, eq=False)
class RelativeRule:
    """``max_lambda <lambda + lift, heights> + <tilt, w>`` as rows of the cut model's program.

    ``positive``: over the members of Lambda without negative entries only.
    """

    ambiguity: RelativeSet
    lift: FloatArray
    tilt: FloatArray
    positive: bool = False

    def rows(self, heights: FloatArray) -> MixtureRows:
        """Dual of the maximum over (a, b): prices eta, p of A's sum and caps, nu, q of B's, z of ``lambda >= 0``."""
        n, scale = heights.shape[0], 1.0 / (1.0 - self.ambiguity.phi)
        each, none, one = np.eye(n), np.zeros((n, n)), np.ones((n, 1))
        flat = np.zeros((n, 1))
        worst = [scale * each, -one, -each, flat, none]
        best = [-self.ambiguity.phi * scale * each, flat, none, -one, -each]
        signs = [[none, flat, -each, flat, none], [none, flat, none, flat, -each]]
        unit = np.ones(1)
        cost = [self.lift, unit, self.ambiguity.worst.caps, unit, self.ambiguity.best.caps]
        top = scale * float(np.abs(heights).max()) + 1.0
        start = [top * unit, np.ones(n), 0.0 * unit, top + np.ones(n)]
        if self.positive:
            worst, best = [*worst, each], [*best, -self.ambiguity.phi * each]
            signs = [[*row, none] for row in signs] + [[none, flat, none, flat, none, -each]]
            cost, start = [*cost, np.zeros(n)], [*start, 0.1 * np.ones(n)]
        rows = np.vstack([np.hstack(row) for row in (worst, best, *signs)])
        return MixtureRows(np.concatenate(cost), rows, np.zeros((0, rows.shape[1])), np.concatenate(start))


@dataclass(frozen=True, eq=False)
class Majorant:
    """The convex majorant ``M_u`` around a centre: ``rule`` and a constant."""

    rule: RelativeRule
    constant: float

    @staticmethod
    def around(centre: FloatArray, model: CutModel, ambiguity: RelativeSet) -> Majorant:
        """Tangents of the cut model's sites at the centre: the risks' own where every site has answered there."""
        lift = negative_lift(ambiguity)
        values = model.site_values(centre[None])[0]
        tilt, constant = np.zeros_like(centre), 0.0
        move = model.units * steepest_move(centre[: model.n_features] * model.units, model.transport_norm)
        slopes, norm_weights = model.site_slopes(centre)
        slopes[:, : model.n_features] += norm_weights[:, None] * move
        for g in np.flatnonzero(lift):
            tilt -= lift[g] * slopes[g]
            constant -= float(lift[g] * (values[g] - slopes[g] @ centre))
        return Majorant(RelativeRule(ambiguity, lift, tilt), constant)

    def value(self, point: FloatArray, risks: FloatArray) -> float:
        """``M_u`` at a point (D,) where the sites' risks are (G,)."""
        rule = self.rule
        return rule.ambiguity.largest(risks) + float(rule.lift @ risks + rule.tilt @ point) + self.constant

    def bound(self, model: CutModel, found: ModelPoint, reach: FloatArray) -> float:
        """Lower bound on ``min M_u`` over ``|w| <= reach``, from the multipliers of its minimum over the cuts."""
        member = nearest_member(self.rule.ambiguity, found.mixture - self.rule.lift).weights
        site_weights = model.with_mixture(np.maximum(member + self.rule.lift, 0.0))
        return tilted_lower_bound(site_weights, found.multipliers, self.rule.tilt, reach) + self.constant


def global_bound(model: CutModel, ambiguity: RelativeSet, reference: FloatArray) -> float:
    """Lower bound on ``min F`` that needs no convexity of F; ``model`` carries the site weights as shares."""
    zero = np.zeros(model.site_weights.shape[0])
    found = minimise(model, reference, RelativeRule(ambiguity, zero, np.zeros_like(reference), positive=True))
    member = positive_member(ambiguity, found.mixture, model.site_weights)
    return lower_bound(model.with_mixture(member), found.multipliers, reference)


def positive_member(ambiguity: RelativeSet, near: FloatArray, inside: FloatArray) -> FloatArray:
    """A member (G,) of Lambda without negative entries, near a vector, drawn to the member ``inside`` as need be."""
    clipped = np.maximum(np.nan_to_num(near), 0.0)
    total = float(clipped.sum())
    if total <= 0:
        return inside
    phi, top, low = ambiguity.phi, ambiguity.worst.caps, ambiguity.best.caps
    for share in (0.0, *10.0 ** np.arange(-12, 0)):
        member = (1.0 - share) * clipped / total + share * inside
        room = top - (1.0 - phi) * member
        enough = np.minimum(phi * low, room).sum() >= phi - _ROUNDING
        if room.min() >= -_ROUNDING and enough:
            return np.asarray(member)
    return inside


def reach_of(model: CutModel, upper: float) -> FloatArray:
    """How large each weight (D,) may be where F is at most ``upper``: there the weighted mean of the risks is, too.

    Their mixture is a member of Lambda. :data:`REACH` where the cuts say nothing sooner.
    """
    dimension = model.slope.shape[1]
    reach = np.full(dimension, REACH)
    support = float(model.site_weights @ model.floor)
    if not (support > 0 and math.isfinite(upper)):
        return reach
    reach[: model.n_features] = np.minimum(REACH, upper / (support * model.units))
    if dimension > model.n_features:
        reach[-1] = min(REACH, max(abs(end) for end in intercept_range(model, upper, support)))
    return reach
