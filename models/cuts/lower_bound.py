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
  since no other site's risk is negative: ``a_g (offset_j + <slope_j, w>) <= U``.
- With Phi = 0 (a box, or radius 0) all of v is charged over that set, which other multipliers y bound (those of v where
  they do, else those of the analytic centre of the cut model, where every cut has its share): the slacks z_j(w) >= 0 of
  the cuts and floors obey sum_j y_j z_j(w) <= U - c - <v, w>, at the reference point u too, so with D = w - u

      (D' S D)^(1/2) <= sum_j y_j |z_j(w) - z_j(u)| <= 2 (U - c - <v, u>) + |<v, D>|,

  S being sum_j y_j^2 b_j b_j', b_j = (slope_j, -e_g), with the heights eliminated, and c, v those of these multipliers.
  Both <v, D> are at most (v' S^-1 v)^(1/2) times the left side. In the directions in which S is 0 the cuts that count
  are flat, and v is rounding; where it is more than that, the bound is 0.

All statements hold up to float64 rounding of the sums themselves, for which an allowance is taken off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray
from models.cuts.cut_model import CutModel
from models.geometry.norms import vector_norm
from models.geometry.projections import least_change, nearest_in_ball

_EPS = float(np.finfo(np.float64).eps)
_CORRECTIONS = 2
"""A first one by the normal equations, a last one exactly."""
_CLOSE = 1e-9
"""Share of what the multipliers aim at that may be missing: no correction would give more that counts."""
_IDLE = 1e-10
"""Multipliers up to here are what an interior point leaves of zero; without them flat directions are flat."""
_CENTRING, _CENTRAL = 100, 0.5
"""Newton steps to the analytic centre, and the decrement at which it is near enough."""
_BLENDS, _LEVELLING = (1e-2, 1e-4, 1e-6), 8
"""Shares of the centre's multipliers that are mixed in, and the steps from there to multipliers without a slope."""
_SHORT = 0.9
"""Share of the way to where a multiplier would be 0 that a step goes at most."""


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
    model = _without_swings(model, _normalised(model, multipliers), 0.0)
    proposed = _normalised(model, multipliers)
    for least in (0.0, _IDLE):
        cuts = _normalised(model, np.where(multipliers > least, multipliers, 0.0))
        aim = float(cuts @ model.offset)
        for attempt in range(_CORRECTIONS + 1):
            if attempt:
                cuts = _corrected(model, cuts, exactly=attempt == _CORRECTIONS)
            best = max(best, BoundProof(_bound(model, cuts, reference, cuts), cuts, cuts), key=_height_proven)
            if best.bound >= aim - max(_CLOSE * abs(aim), within):
                return best
    if model.floor.any() or (central := analytic_centre(model, reference)) is None:
        return best
    for share in _BLENDS:
        cuts = (1.0 - share) * proposed + share * central
        for _ in range(_LEVELLING):
            cuts = _levelled(model, cuts)
            found = BoundProof(_bound(model, cuts, reference, central), cuts, central)
            best = max(best, found, key=_height_proven)
    return best


def _height_proven(proof: BoundProof) -> float:
    return proof.bound


def tilted_lower_bound(model: CutModel, multipliers: FloatArray, tilt: FloatArray, reach: FloatArray) -> float:
    """Lower bound on ``sum_g a_g r_g(w) + <tilt, w>`` over the w with ``|w| <= reach``, from any multipliers (m,).

    What the norm does not carry of the slope is charged over all of the reach (D,); the bound may be below 0.
    """
    cuts = _normalised(model, multipliers)
    slope, norm_weight = _sums(_without_swings(model, cuts, tilt[: model.n_features]), cuts)
    left = _uncovered(model, slope + tilt, norm_weight)
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
    slope, norm_weight = _sums(model, cuts)
    support = float(model.site_weights @ model.floor)
    if support > 0:
        excess = float(vector_norm(slope[: model.n_features] / model.units, model.transport_norm)) - norm_weight
        left = support / (support + max(excess, 0.0))
        height = float(cuts @ model.offset + slope[model.n_features :] @ reference[model.n_features :])
        charge = _intercept_charge(model, slope[model.n_features :], reference, support)
    else:
        left, height = 1.0, _height(model, cuts, reference)
        charge = _tilt_charge(model, around, slope, reference)
    rounding = 8 * _EPS * float(cuts @ (np.abs(model.offset) + np.abs(model.slope) @ np.abs(reference)))
    return max(0.0, left * (height - charge - rounding))


def _height(model: CutModel, cuts: FloatArray, reference: FloatArray) -> float:
    return float(cuts @ (model.offset + model.slope @ reference))


def _sums(model: CutModel, cuts: FloatArray) -> tuple[FloatArray, float]:
    """Slope v (D,) and norm weight Z of the weighted sum."""
    return cuts @ model.slope, float(cuts @ model.norm_weight + model.floors_left(cuts) @ model.floor)


def _normalised(model: CutModel, multipliers: FloatArray) -> FloatArray:
    """Multipliers clipped at 0 and, where a site's sum is above its weight, scaled down to it."""
    cuts = np.maximum(np.nan_to_num(multipliers), 0.0)
    sums = np.bincount(model.site, weights=cuts, minlength=model.site_weights.shape[0])
    scale = np.divide(model.site_weights, sums, out=np.ones_like(sums), where=sums > model.site_weights)
    return np.asarray(cuts * scale[model.site])


def _intercept_charge(model: CutModel, tilt: FloatArray, reference: FloatArray, support: float) -> float:
    """What the intercept part of the slope, (0,) or (1,), can take off where the model is not above the reference."""
    if not tilt.any():
        return 0.0
    lowest, highest = intercept_range(model, model.value(reference), support)
    return abs(float(tilt[0])) * max(highest - float(reference[-1]), float(reference[-1]) - lowest, 0.0)


def intercept_range(model: CutModel, upper: float, support: float) -> tuple[float, float]:
    """Least and largest intercept where the model is at most ``upper``, and so the norm at most ``upper / support``."""
    features, flat = model.slope[:, : model.n_features], model.slope[:, -1]
    weights = model.site_weights
    room = np.divide(upper, weights, out=np.full_like(weights, np.inf), where=weights > 0)[model.site]
    steep = vector_norm(features / model.units, model.transport_norm) + np.maximum(-model.norm_weight, 0.0)
    room = room - model.offset + steep * (upper / support)
    highest = float((room[flat > 0] / flat[flat > 0]).min(initial=np.inf))
    return float((room[flat < 0] / flat[flat < 0]).max(initial=-np.inf)), highest


def _tilt_charge(model: CutModel, cuts: FloatArray, tilt: FloatArray, reference: FloatArray) -> float:
    """What a slope can take off in a model without a norm where that, by these cuts, is not above the reference."""
    n_sites = model.site_weights.shape[0]
    weighted = np.hstack([model.slope, np.eye(n_sites)[model.site]]) * cuts[:, None]
    heights = np.einsum("jg,jg->g", weighted[:, -n_sites:], weighted[:, -n_sites:]) + model.floors_left(cuts) ** 2
    cross = weighted[:, :-n_sites].T @ weighted[:, -n_sites:]
    inverse = np.divide(1.0, heights, out=np.zeros_like(heights), where=heights > 0)
    values, vectors = np.linalg.eigh(weighted[:, :-n_sites].T @ weighted[:, :-n_sites] - (cross * inverse) @ cross.T)
    steep = float(np.abs(model.slope).max(initial=0.0))
    inside = vectors.T @ np.column_stack([tilt, _sums(model, cuts)[0]])
    above = 2 * max(model.value(reference) - _height(model, cuts, reference), 0.0)
    least = np.inf
    # What counts as flat is a choice: each that leaves no more than rounding outside gives a charge that holds.
    for threshold in (_EPS, _EPS * _EPS):
        firm = values > max(1e-12 * values[-1], threshold * steep * steep)
        if float(np.abs(inside[~firm]).max(initial=0.0)) > 64 * _EPS * steep:
            continue
        charged, own = np.sqrt(np.einsum("dk,dk->k", inside[firm], inside[firm] / values[firm, None]))
        if own < 1.0:
            least = min(least, float(charged * above / (1.0 - own)))
    return least


def analytic_centre(model: CutModel, reference: FloatArray) -> FloatArray | None:
    """Multipliers (m,) at the analytic centre of ``{model <= 3 U}``, U its value at the reference; None: not found.

    Damped Newton steps on the logarithmic barrier of the heights' cuts; a step's own multipliers sum to no slope.
    """
    n_sites, m, d = model.site_weights.shape[0], model.site.shape[0], reference.shape[0]
    tall = model.site_values(reference[None])[0]
    upper = float(model.site_weights @ tall)
    rows = np.zeros((m + n_sites + 1, d + n_sites))
    rows[:m, :d], rows[np.arange(m), d + model.site] = model.slope, -1.0
    rows[m + np.arange(n_sites), d + np.arange(n_sites)] = -1.0
    rows[-1, d:] = model.site_weights
    at = -np.concatenate([model.offset + model.slope @ reference, np.zeros(n_sites), [-3.0 * upper]])
    point = np.concatenate([np.zeros(d), tall + upper])
    for _ in range(_CENTRING):
        slack = at - rows @ point
        if not (slack > 0).all():
            return None
        scaled = rows / slack[:, None]
        size = np.sqrt(np.einsum("jd,jd->d", scaled, scaled))
        scaled /= np.where(size > 0, size, 1.0)
        step = np.linalg.lstsq(scaled, -np.ones(slack.shape[0]), rcond=_EPS)[0]
        pushed = scaled @ step
        decrement = float(np.sqrt(pushed @ pushed))
        if decrement < _CENTRAL:
            central = (1.0 + pushed) / slack
            return _normalised(model, central[:m] / central[-1])
        point = point + step / np.where(size > 0, size, 1.0) / (1.0 + decrement)
    return None


def _rows(model: CutModel) -> FloatArray:
    """Slopes (D,) and sites (G,) of the cuts, then of the floors, (m + G, D + G)."""
    sites = np.eye(model.site_weights.shape[0])
    slopes = np.vstack([model.slope, np.zeros((sites.shape[0], model.slope.shape[1]))])
    return np.hstack([slopes, np.vstack([sites[model.site], sites])])


def _uncovered(model: CutModel, slope: FloatArray, norm_weight: float) -> FloatArray:
    """What the norm does not carry of a slope (D,): all of the intercept, and the features less the nearest it does."""
    left = slope.copy()
    steep = slope[: model.n_features] / model.units
    left[: model.n_features] -= model.units * nearest_in_ball(steep, norm_weight, model.transport_norm)
    return left


def _levelled(model: CutModel, cuts: FloatArray) -> FloatArray:
    """Multipliers nearer to having no slope, by the least change relative to their size that keeps them above 0."""
    slope, n_sites = _sums(model, cuts)[0], model.site_weights.shape[0]
    weights = np.concatenate([cuts, model.floors_left(cuts)])
    weighted = _rows(model) * weights[:, None]
    size = np.sqrt(np.einsum("jd,jd->d", weighted, weighted))
    size = np.where(size > 0, size, 1.0)
    change = np.concatenate([slope, np.zeros(n_sites)]) / size
    moved = np.linalg.lstsq((weighted / size).T, change, rcond=_EPS)[0]
    step = min(1.0, _SHORT / max(float(moved.max()), _SHORT))
    return _normalised(model, (weights * (1.0 - step * moved))[: cuts.shape[0]])


def _corrected(model: CutModel, cuts: FloatArray, exactly: bool) -> FloatArray:
    """Nearest multipliers, relative to their size, whose slope the same norm weight covers; clipped, normalised.

    By the normal equations, or ``exactly`` by a singular value decomposition, for cuts that are nearly flat somewhere.
    A change that leaves each site's sum as it is sees of the site's rows what they differ in from their mean by these
    multipliers, so D + 1 equations are left of D + 1 + G.
    """
    surplus = _uncovered(model, *_sums(model, cuts))
    if not surplus.any():
        return cuts
    m, weights = cuts.shape[0], np.concatenate([cuts, model.floors_left(cuts)])
    rows, change = _about_means(model, weights), np.append(surplus, 0.0)
    if exactly:
        roots = np.sqrt(weights)
        moved = np.linalg.lstsq((rows * roots[:, None]).T, change, rcond=_EPS)[0]
        return _normalised(model, (weights - roots * moved)[:m])
    return _normalised(model, (weights * (1.0 - least_change(rows, weights, change)))[:m])


def _about_means(model: CutModel, weights: FloatArray) -> FloatArray:
    """Slopes and norm weights (m + G, D + 1) of cuts and floors, less the mean of their site by weights (m + G,)."""
    n_sites, d = model.site_weights.shape[0], model.slope.shape[1]
    rows = np.zeros((weights.shape[0], d + 1))
    rows[: -n_sites, :d], rows[: -n_sites, d], rows[-n_sites:, d] = model.slope, model.norm_weight, model.floor
    site = np.concatenate([model.site, np.arange(n_sites)])
    order = np.argsort(site, kind="stable")  # each site has a row, its floor
    means = np.add.reduceat((rows * weights[:, None])[order], np.searchsorted(site[order], np.arange(n_sites)))
    total = np.bincount(site, weights=weights, minlength=n_sites)
    return np.asarray(rows - np.divide(means, total[:, None], out=np.zeros_like(means), where=total[:, None] > 0)[site])
