"""Multipliers of cuts made such that what they sum to is carried by the norm, or flat where there is none.

The rules of :mod:`models.cuts.lower_bound`: at or above 0, and of a site's cuts at most its weight in all.
"""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray
from models.cuts.cut_model import CutModel
from models.geometry.projections import least_change, nearest_in_ball

_EPS = float(np.finfo(np.float64).eps)
_SHORT = 0.9
"""Share of the way to where a multiplier would be 0 that a step goes at most."""


def normalised(model: CutModel, multipliers: FloatArray) -> FloatArray:
    """Multipliers clipped at 0 and, where a site's sum is above its weight, scaled down to it."""
    cuts = np.maximum(np.nan_to_num(multipliers), 0.0)
    sums = np.bincount(model.site, weights=cuts, minlength=model.site_weights.shape[0])
    scale = np.divide(model.site_weights, sums, out=np.ones_like(sums), where=sums > model.site_weights)
    return np.asarray(cuts * scale[model.site])


def uncovered(model: CutModel, slope: FloatArray, norm_weight: float) -> FloatArray:
    """What the norm does not carry of a slope (D,): all of the intercept, and the features less the nearest it does."""
    left = slope.copy()
    steep = slope[: model.n_features] / model.units
    left[: model.n_features] -= model.units * nearest_in_ball(steep, norm_weight, model.transport_norm)
    return left


def corrected(model: CutModel, cuts: FloatArray, exactly: bool) -> FloatArray:
    """Nearest multipliers, relative to their size, whose slope the same norm weight covers; clipped, normalised.

    By the normal equations, or ``exactly`` by a singular value decomposition, for cuts that are nearly flat somewhere.
    A change that leaves each site's sum as it is sees of the site's rows what they differ in from their mean by these
    multipliers, so D + 1 equations are left of D + 1 + G.
    """
    surplus = uncovered(model, *model.weighted_sum(cuts))
    if not surplus.any():
        return cuts
    m, weights = cuts.shape[0], np.concatenate([cuts, model.floors_left(cuts)])
    rows, change = _about_means(model, weights), np.append(surplus, 0.0)
    if exactly:
        roots = np.sqrt(weights)
        moved = np.linalg.lstsq((rows * roots[:, None]).T, change, rcond=_EPS)[0]
        return normalised(model, (weights - roots * moved)[:m])
    return normalised(model, (weights * (1.0 - least_change(rows, weights, change)))[:m])


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


def levelled(model: CutModel, cuts: FloatArray) -> FloatArray:
    """Multipliers nearer to having no slope, by the least change relative to their size that keeps them above 0."""
    slope, n_sites = model.weighted_sum(cuts)[0], model.site_weights.shape[0]
    weights = np.concatenate([cuts, model.floors_left(cuts)])
    weighted = _rows(model) * weights[:, None]
    size = np.sqrt(np.einsum("jd,jd->d", weighted, weighted))
    size = np.where(size > 0, size, 1.0)
    change = np.concatenate([slope, np.zeros(n_sites)]) / size
    moved = np.linalg.lstsq((weighted / size).T, change, rcond=_EPS)[0]
    step = min(1.0, _SHORT / max(float(moved.max()), _SHORT))
    return normalised(model, (weights * (1.0 - step * moved))[: cuts.shape[0]])


def _rows(model: CutModel) -> FloatArray:
    """Slopes (D,) and sites (G,) of the cuts, then of the floors, (m + G, D + G)."""
    sites = np.eye(model.site_weights.shape[0])
    slopes = np.vstack([model.slope, np.zeros((sites.shape[0], model.slope.shape[1]))])
    return np.hstack([slopes, np.vstack([sites[model.site], sites])])
