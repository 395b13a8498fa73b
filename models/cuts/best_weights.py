"""How far the best weights can be, by cuts alone: what a slope that multipliers leave can take off a bound.

The set of the w at which a model is not above its value at a reference point; :mod:`models.cuts.lower_bound` has the
formulas.
"""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray
from models.cuts.corrections import normalised
from models.cuts.cut_model import CutModel
from models.geometry.norms import vector_norm

_EPS = float(np.finfo(np.float64).eps)
_CENTRING, _CENTRAL = 100, 0.5
"""Newton steps to the analytic centre, and the decrement at which it is near enough."""


def intercept_charge(
    model: CutModel, cuts: FloatArray, tilt: FloatArray, reference: FloatArray, support: float
) -> float:
    """What the intercept part of the slope, (0,) or (1,), can take off where the model is not above the reference.

    No more than it can within the reach, with what rounding can have left of it: cuts that are flat in the intercept
    but for rounding, as at weights of zero that are the best, may bound it from one side alone.
    """
    if not tilt.any():
        return 0.0
    lowest, highest = intercept_range(model, model.value(reference), support)
    at = float(reference[-1])
    charge = abs(float(tilt[0])) * max(highest - at, at - lowest, 0.0)
    return min(charge, _up_to_the_reach(model, cuts, tilt, reference[-1:]))


def intercept_range(model: CutModel, upper: float, support: float) -> tuple[float, float]:
    """Least and largest intercept where the model is at most ``upper``, and so the norm at most ``upper / support``."""
    features, flat = model.slope[:, : model.n_features], model.slope[:, -1]
    weights = model.site_weights
    room = np.divide(upper, weights, out=np.full_like(weights, np.inf), where=weights > 0)[model.site]
    steep = vector_norm(features / model.units, model.transport_norm) + np.maximum(-model.norm_weight, 0.0)
    room = room - model.offset + steep * (upper / support)
    highest = float((room[flat > 0] / flat[flat > 0]).min(initial=np.inf))
    return float((room[flat < 0] / flat[flat < 0]).max(initial=-np.inf)), highest


def tilt_charge(model: CutModel, cuts: FloatArray, tilt: FloatArray, reference: FloatArray) -> float:
    """What a slope can take off in a model without a norm where that, by these cuts, is not above the reference."""
    n_sites = model.site_weights.shape[0]
    weighted = np.hstack([model.slope, np.eye(n_sites)[model.site]]) * cuts[:, None]
    heights = np.einsum("jg,jg->g", weighted[:, -n_sites:], weighted[:, -n_sites:]) + model.floors_left(cuts) ** 2
    cross = weighted[:, :-n_sites].T @ weighted[:, -n_sites:]
    inverse = np.divide(1.0, heights, out=np.zeros_like(heights), where=heights > 0)
    values, vectors = np.linalg.eigh(weighted[:, :-n_sites].T @ weighted[:, :-n_sites] - (cross * inverse) @ cross.T)
    steep = float(np.abs(model.slope).max(initial=0.0))
    inside = vectors.T @ np.column_stack([tilt, model.weighted_sum(cuts)[0]])
    above = 2 * max(model.value(reference) - model.weighted_height(cuts, reference), 0.0)
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


def reach_charge(model: CutModel, cuts: FloatArray, tilt: FloatArray, reference: FloatArray) -> float:
    """What a slope, that of these cuts, can take off from the reference to weights within the reach.

    With what rounding can have left of the slope. Infinite where the bound is of all weights.
    """
    if not np.isfinite(model.reach) or model.feature_scale is not None:
        return np.inf
    return _up_to_the_reach(model, cuts, tilt, reference)


def _up_to_the_reach(model: CutModel, cuts: FloatArray, tilt: FloatArray, reference: FloatArray) -> float:
    """The same of the last weights, as many as are given."""
    left = np.abs(tilt) + 8 * _EPS * (cuts @ np.abs(model.slope[:, -len(tilt) :]))
    return float(left @ (model.reach + np.abs(reference)))


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
            return normalised(model, central[:m] / central[-1])
        point = point + step / np.where(size > 0, size, 1.0) / (1.0 + decrement)
    return None
