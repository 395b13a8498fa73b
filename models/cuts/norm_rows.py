"""Rows of a cone program that make extra columns upper bounds of a norm of the weights and of absolute weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray
from models.cuts.cut_model import CutModel
from models.geometry.norms import DUAL_NORM, vector_norm

_DEEP = 1e-3
"""Least share of the norm by which its column starts above it: a start nearer to the cone's surface is no start."""


@dataclass(frozen=True)
class NormRows:
    """Columns for the norm of (centre + w), where any cut has it, and for absolute weights, where they are needed.

    ``weights`` (m + G, columns that the cuts and floors meet): with which those count in them; they come first, and
    columns that no cut meets after. ``start``: values of all these columns at the start, above what they must be.
    ``rows`` are over the weights and then these columns, at or below ``limits``; the last ``cone`` of them are a
    second-order cone.
    """

    rows: FloatArray
    limits: FloatArray
    start: FloatArray
    weights: FloatArray
    cone: int = 0


def norm_rows(model: CutModel, centre: FloatArray, steep: float, begin: FloatArray, room: float) -> NormRows:
    """Rows for a centre (D,) in the units of the program, where slopes are divided by ``steep``.

    ``begin`` (D,): w at the start; ``room``: how far above what they must be the columns start.

    With the transport norm l-inf the norm is the sum of the absolute weights.
    """
    d, p, units, n_sites = centre.shape[0], model.n_features, model.units, model.site_weights.shape[0]
    dual, middle = DUAL_NORM[model.transport_norm], centre[:p] * units
    alone, swings = int(model.has_norm), model.swing is not None
    each = p if swings or alone and dual == "l1" else 0
    of_norm = np.concatenate([model.norm_weight, model.floor])[:, None] / steep
    weights = of_norm[:, :alone]
    if swings:
        weights = np.hstack([weights, np.vstack([model.swings / units, np.zeros((n_sites, p))]) / steep])
    moved = middle + begin[:p] * units
    absolute = np.abs(moved)[:each] + room
    tall = absolute.sum() if dual == "l1" else float(vector_norm(moved[None], dual)[0])
    # A start a unit away is as it was: where equals solve a small program, another start finds another of them.
    above = max(room, _DEEP * tall) if dual == "l2" and room < 1.0 else room
    start = np.concatenate([np.full(alone, tall + above), absolute])
    features, width = np.arange(p), d + alone + each
    bounds = [np.full(p, d)] * int(alone and dual == "linf") + [d + alone + features] * int(each > 0)
    linear = np.zeros((2 * p * len(bounds), width))
    for k, bound in enumerate(bounds):
        for row, side in ((2 * k * p + features, 1.0), ((2 * k + 1) * p + features, -1.0)):
            linear[row, features], linear[row, bound] = side * units, -1.0
    limits = np.concatenate([np.zeros(0)] + [-middle, middle] * len(bounds))
    if alone and dual == "l1":
        total = np.zeros((1, width))
        total[0, d], total[0, d + 1 :] = -1.0, 1.0
        linear, limits = np.vstack([linear, total]), np.append(limits, 0.0)
    cone = np.zeros(((p + 1) * int(alone and dual == "l2"), width))
    if len(cone):
        cone[0, d], cone[1 + features, features] = -1.0, -units
        limits = np.concatenate([limits, [0.0], middle])
    rows = np.vstack([linear, cone]) if len(linear) else cone
    return NormRows(rows, limits, start, weights, len(cone))
