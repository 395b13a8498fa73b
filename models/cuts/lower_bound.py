r"""A lower bound on the least risk that follows from cuts by arithmetic alone, whatever solver found the multipliers.

Over a ball of mixtures the risk is nowhere below that of one mixture of the ball, so a bound for any one of them holds
(``CutModel.with_mixture``); the shares a_g below are then those of that mixture.

Take multipliers y >= 0 of the cuts whose sum over the cuts of site g is at most a_g; the floor of g takes the rest.
Summing the cuts and floors with them,

    F(w) >= c + <v, w> + Z ||w||_*     for every w,      Z = sum_j y_j norm_weight_j + sum_g rest_g floor_g.

Cuts with swings are made planes first: ``|w_p| >= s_p w_p`` for any s in [-1, 1]^P, so ``slope_j + s swing_j`` is the
slope of a minorant. The s is one for all cuts, ``s = -v / sum_j y_j swing_j`` clipped, which takes off v what the
swings can take. All that follows is of the cuts so changed.

Where the feature part of v has transport norm at most Z and its intercept part is 0, c is a lower bound on F
everywhere: no compact set needed. Multipliers from a solver meet this up to its accuracy; they are also corrected, by
the least change relative to their size, and the better bound counts. What is left over is paid for:

- With Phi = sum_g a_g floor_g > 0 the feature part beyond Z is carried by the floors: the mixture
  ``(1 - s) (c + <v, w> + Z ||w||_*) + s Phi ||w||_*`` is at least ``(1 - s) c`` for s = excess / (excess + Phi).
  The intercept part is charged over the set of the w at which the model is not above its value U at a reference point
  (outside it F > U >= the bound anyway): there ``||w||_* <= U / Phi``, and each cut bounds the intercept from one side,
  since no other site's risk is negative: ``a_g (offset_j + <slope_j, w>) <= U``. Within the reach no intercept is
  beyond that either, where cuts come from sums.
- With Phi = 0 (a box, or radius 0) all of v is charged over that set, which other multipliers y bound (those of v where
  they do, else those of the analytic centre of the cut model, where every cut has its share): the slacks z_j(w) >= 0 of
  the cuts and floors obey sum_j y_j z_j(w) <= U - c - <v, w>, at the reference point u too, so with D = w - u

      (D' S D)^(1/2) <= sum_j y_j |z_j(w) - z_j(u)| <= 2 (U - c - <v, u>) + |<v, D>|,

  S being sum_j y_j^2 b_j b_j', b_j = (slope_j, -e_g), with the heights eliminated, and c, v those of these multipliers.
  Both <v, D> are at most (v' S^-1 v)^(1/2) times the left side. In the directions in which S is 0 the cuts that count
  are flat, and v is rounding; where it is more than that, the bound is 0. Cuts from sums over cohorts are true of
  weights up to a reach alone, so the bound is of these (``CutModel.reach``), and v takes off no more than it can there:
  the cuts of many weights, as of all classes as one problem under a lift, may bound them in no other way.

All statements hold up to float64 rounding of the sums themselves, for which an allowance is taken off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray
from models.cuts.best_weights import analytic_centre, intercept_charge, reach_charge, tilt_charge
from models.cuts.corrections import corrected, levelled, normalised, uncovered
from models.cuts.cut_model import CutModel
from models.geometry.norms import vector_norm

_EPS = float(np.finfo(np.float64).eps)
_CORRECTIONS = 2
"""A first one by the normal equations, a last one exactly."""
_CLOSE = 1e-9
"""Share of what the multipliers aim at that may be missing: no correction would give more that counts."""
_IDLE = 1e-10
"""Multipliers up to here are what an interior point leaves of zero; without them flat directions are flat."""
_BLENDS, _LEVELLING = (1e-2, 1e-4, 1e-6), 8
"""Shares of the centre's multipliers that are mixed in, and the steps from there to multipliers without a slope."""


def lower_bound(model: CutModel, multipliers: FloatArray, reference: FloatArray, within: float = 0.0) -> float:
    """Lower bound on ``min F`` from any multipliers (m,) of the cuts; at least 0, since no loss is negative.

    Parameters
    ----------
    model : the cuts. multipliers : (m,), need be neither feasible nor optimal. reference : (D,) any point, best near
    the minimiser. within : how much of what the multipliers aim at may be missing, in the units of the risk.
    """
    return strongest_proof(model, multipliers, reference, within).bound


@dataclass(frozen=True)
class BoundProof:
    """A lower bound, and the multipliers (m,) that prove it; those ``around`` bound the set of the best weights."""

    bound: float
    multipliers: FloatArray
    around: FloatArray


def strongest_proof(
    model: CutModel, multipliers: FloatArray, reference: FloatArray, within: float = 0.0
) -> BoundProof:
    """As :func:`lower_bound`, with the multipliers by which the bound was found, for others to check."""
    best = BoundProof(0.0, np.zeros_like(multipliers), np.zeros_like(multipliers))
    if model.site.shape[0] == 0:
        return best
    model = _without_swings(model, normalised(model, multipliers), 0.0)
    proposed = normalised(model, multipliers)
    for least in (0.0, _IDLE):
        cuts = normalised(model, np.where(multipliers > least, multipliers, 0.0))
        aim = float(cuts @ model.offset)
        for attempt in range(_CORRECTIONS + 1):
            if attempt:
                cuts = corrected(model, cuts, exactly=attempt == _CORRECTIONS)
            best = max(best, BoundProof(_bound(model, cuts, reference, cuts), cuts, cuts), key=_height_proven)
            if best.bound >= aim - max(_CLOSE * abs(aim), within):
                return best
    if model.floor.any() or (central := analytic_centre(model, reference)) is None:
        return best
    for share in _BLENDS:
        cuts = (1.0 - share) * proposed + share * central
        for _ in range(_LEVELLING):
            cuts = levelled(model, cuts)
            found = BoundProof(_bound(model, cuts, reference, central), cuts, central)
            best = max(best, found, key=_height_proven)
    return best


def _height_proven(proof: BoundProof) -> float:
    return proof.bound


def tilted_lower_bound(model: CutModel, multipliers: FloatArray, tilt: FloatArray, reach: FloatArray) -> float:
    """Lower bound on ``sum_g a_g r_g(w) + <tilt, w>`` over the w with ``|w| <= reach``, from any multipliers (m,).

    What the norm does not carry of the slope is charged over all of the reach (D,); the bound may be below 0.
    """
    cuts = normalised(model, multipliers)
    slope, norm_weight = _without_swings(model, cuts, tilt[: model.n_features]).weighted_sum(cuts)
    left = uncovered(model, slope + tilt, norm_weight)
    rounding = 8 * _EPS * float(cuts @ np.abs(model.offset))
    return float(cuts @ model.offset) - float(np.abs(left) @ reach) - rounding


def _without_swings(model: CutModel, cuts: FloatArray, tilt: FloatArray | float) -> CutModel:
    """The cuts without their swings, on the sides that take most off the slope which multipliers leave."""
    if model.swing is None:
        return model
    slope, swing = cuts @ model.slope[:, : model.n_features] + tilt, cuts @ model.swing
    sides = np.divide(-slope, swing, out=np.zeros_like(slope), where=swing > 0)
    return model.flat(np.clip(sides, -1.0, 1.0))


def _bound(model: CutModel, cuts: FloatArray, reference: FloatArray, around: FloatArray) -> float:
    """The bound that multipliers prove as they are; without a norm, those ``around`` bound the set of the best."""
    slope, norm_weight = model.weighted_sum(cuts)
    support = float(model.site_weights @ model.floor)
    if support > 0:
        excess = float(vector_norm(slope[: model.n_features] / model.units, model.transport_norm)) - norm_weight
        left = support / (support + max(excess, 0.0))
        height = float(cuts @ model.offset + slope[model.n_features :] @ reference[model.n_features :])
        charge = intercept_charge(model, cuts, slope[model.n_features :], reference, support)
    else:
        left, height = 1.0, model.weighted_height(cuts, reference)
        charge = tilt_charge(model, around, slope, reference)
        # Of weights within the reach all of the slope is charged from zero on, wherever the reference is.
        zero = np.zeros_like(reference)
        within_reach = model.weighted_height(cuts, zero) - reach_charge(model, cuts, slope, zero)
        height, charge = (height, charge) if height - charge >= within_reach else (within_reach, 0.0)
    rounding = 8 * _EPS * float(cuts @ (np.abs(model.offset) + np.abs(model.slope) @ np.abs(reference)))
    return max(0.0, left * (height - charge - rounding))
