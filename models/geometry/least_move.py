r"""The shortest move inside a box that lowers a linear function by a given amount.

    min { ||d|| : sum_p slope_p d_p >= lead, 0 <= d_p <= room_p }

for the three transport norms, exactly, by one sort: with l1 the steepest features go to their walls first; with l-inf
all go at one pace, ``d_p = min(room_p, t)``; with l2 each at the pace of its slope, ``d_p = min(room_p, t slope_p)``.
Between two walls what is gained is linear in t. ``models.worst_case.box_transport`` meets the same paths with a price.
"""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray, TransportNorm

_ROUNDING = 1e-13
"""Share of what is to be gained by which sums over the features may be off."""


def least_move(slope: FloatArray, room: FloatArray, lead: FloatArray, norm: TransportNorm) -> FloatArray:
    """Length (n,) of the shortest moves; infinite where the box holds none, 0 where the lead is 0.

    ``slope`` and ``room`` (n, P) and ``lead`` (n,) are at or above 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        key = -slope if norm == "l1" else room if norm == "linf" else np.where(slope > 0, room / slope, np.inf)
        order = np.argsort(key, axis=1)
        slope, room, walls = (np.take_along_axis(part, order, axis=1) for part in (slope, room, key))
        gained = _before(slope * room)
        starts, rates, ends = gained[:, :-1], slope, gained[:, 1:]
        if norm != "l1":
            # What the features that have not met their wall gain as t grows; those before stand still at it.
            rates = np.cumsum((slope if norm == "linf" else slope * slope)[:, ::-1], axis=1)[:, ::-1]
            ends = starts + np.where(rates > 0, rates * walls, 0.0)
        # The first stretch at whose end the lead is gained; where all the box just gains it, rounding must not deny it.
        enough = lead - _ROUNDING * (lead + gained[:, -1])
        feature_scale = np.count_nonzero(ends < enough[:, None], axis=1)
        found, at = np.full(lead.shape, np.inf), np.flatnonzero(feature_scale < slope.shape[1])
        part = feature_scale[at]
        time = (lead[at] - starts[at, part]) / rates[at, part]
        if norm == "l1":
            found[at] = _before(room)[at, part] + time
        elif norm == "linf":
            found[at] = time
        else:
            found[at] = np.sqrt(_before(room * room)[at, part] + time * time * rates[at, part])
    return np.where(lead > 0, found, 0.0)


def _before(parts: FloatArray) -> FloatArray:
    """Sums (n, P + 1) of the parts before each column."""
    return np.hstack([np.zeros((parts.shape[0], 1)), np.cumsum(parts, axis=1)])
