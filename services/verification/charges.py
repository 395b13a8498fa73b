"""The weighted sum of a head's cuts by enclosed arithmetic, and what the slope that it leaves can take off the bound.

:mod:`services.verification.bounds` has the derivation; the letters are its own.
"""

from __future__ import annotations

import math

import numpy as np

from services.verification.certificate_file import CertificateFile, Head
from services.verification.enclosures import Floats, Interval, dot, down, greatest_norm, sums, times, up

REACH = 2.0**12
"""Largest absolute weight up to which a cut from sums holds: their slopes are rounded, and lowered for no more."""
_LAST_DIGITS = 2.0**-50
"""Share that is taken off multipliers which are scaled down, so that their sum is not above by rounding."""


def reach_around(weights: Floats) -> float:
    """:data:`REACH`, or the next power of two that lets these weights (D,) lie within.

    For a lower bound of near weights, proven from single answers, which hold at any weights.
    """
    reach, far = REACH, float(np.abs(weights).max())
    while reach < far:
        reach *= 2.0
    return reach


def shares_of(head: Head, multipliers: Floats, mixture: Floats) -> tuple[Floats, Floats]:
    """Multipliers at or above 0 that take at most its share of every site, and what is surely left, (m,) and (G,)."""
    cuts, rest = np.maximum(multipliers, 0.0), np.zeros_like(mixture)
    for g, share in enumerate(mixture):
        own = head.site == g
        taken = math.fsum(cuts[own].tolist())
        if taken >= share > 0:
            cuts[own] *= share / taken * (1.0 - _LAST_DIGITS)
            taken = math.fsum(cuts[own].tolist())
        if up(np.array(taken)) > share:
            cuts[own], taken = 0.0, 0.0
        rest[g] = max(float(down(down(share) - taken)), 0.0) if taken < share else 0.0
    return cuts, rest


def sides_of(head: Head, cuts: Floats, p: int) -> Floats:
    """Sides (P,) that take most off the slope; none without swings."""
    if not head.swing.shape[1]:
        return np.zeros(0)
    slope, swing = cuts @ head.slope[:, :p], cuts @ head.swing
    sides = np.divide(-slope, swing, out=np.zeros_like(slope), where=swing > 0)
    return np.asarray(np.clip(sides, -1.0, 1.0))


def slope_of(head: Head, cuts: Floats, sides: Floats, p: int) -> Interval:
    """Slope v (D,) of the weighted sum."""
    slope = sums(cuts, head.slope)
    if not sides.size:
        return slope
    swing = times(sides, sums(cuts, head.swing))
    rest = np.zeros(slope.low.shape[0] - p)
    return slope + Interval(np.concatenate([swing.low, rest]), np.concatenate([swing.high, rest]))


def along(slope: Interval, point: Floats) -> Interval:
    """Enclosure of ``<v, point>``."""
    ends, ones = times(point, slope), np.ones_like(point)
    return Interval(dot(ones, ends.low).low, dot(ones, ends.high).high)


def intercept_charge(
    certificate: CertificateFile, head: Head, cuts: Floats, slope: Interval, mixture: Floats, upper: float,
    norm: float, *, within: float,
) -> float:
    """What the slope in the intercept can take off where the norm is at most ``norm`` and the risk ``upper``.

    ``within``: the largest absolute weight that counts, also where no cut bounds the intercept so nearly.
    """
    left = float(slope.size[-1])
    if left == 0 or not head.slope[cuts > 0, -1].any():  # the enclosure of a sum of nothing is a last digit wide
        return 0.0
    p, flat = head.slope.shape[1] - 1, head.slope[:, -1]
    steep = greatest_norm(np.abs(head.slope[:, :p]), certificate.transport_norm)
    steep = up(steep + np.maximum(-head.norm_weight, 0.0))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        room = up(up(up(upper / mixture[head.site]) - head.offset) + up(steep * norm))
        # Each cut says flat * intercept <= room; swings only raise a cut.
        ends = np.where(room > 0, up(room / flat), 0.0), np.where(room > 0, down(room / flat), 0.0)
    highest = float(ends[0][(flat > 0) & (mixture[head.site] > 0)].min(initial=np.inf))
    lowest = float(ends[1][(flat < 0) & (mixture[head.site] > 0)].max(initial=-np.inf))
    away = max(highest, -lowest, 0.0)
    return float(up(np.array(left * min(away, within))))


def tilt_charge(
    certificate: CertificateFile, head: Head, slope: Interval, sides: Floats, mixture: Floats, upper: float
) -> float:
    """What a slope v (D,) can take off from the weights to a w of a risk of at most ``upper``; infinite: not known."""
    d, n_sites, p = head.weights.shape[0], mixture.shape[0], head.weights.shape[0] - int(certificate.fit_intercept)
    cuts, rest = shares_of(head, head.around, mixture)
    used = cuts > 0
    slopes = head.slope[used].copy()
    if sides.size:
        slopes[:, :p] += sides * head.swing[used]
    rows = np.hstack([-slopes, np.eye(n_sites)[head.site[used]]]) * cuts[used, None]
    rows = np.vstack([rows, np.hstack([np.zeros((n_sites, d)), np.diag(rest)])])
    # The rows as stored are rounded: by this much of what was added and multiplied.
    sizes = np.abs(head.slope[used])
    if sides.size:
        sizes[:, :p] += np.abs(head.swing[used])
    off = np.vstack([np.hstack([sizes, np.ones((sizes.shape[0], n_sites))]) * cuts[used, None],
                     np.hstack([np.zeros((n_sites, d)), np.diag(rest)])]) * 2.0**-50
    inverse = np.asarray(np.linalg.pinv(rows, rcond=1e-15), np.float64)
    unlike = dot(inverse, rows)
    error = np.maximum(np.abs(unlike.low - np.eye(d + n_sites)), np.abs(unlike.high - np.eye(d + n_sites)))
    error = up(up(error) + dot(np.abs(inverse), off).high)
    eta = float(dot(error, np.ones(d + n_sites)).high.max())
    if not eta < 1:
        return np.inf
    slack = float(up(up(np.abs(inverse).max() * eta) / down(np.array(1.0 - eta))))
    own = slope_of(head, cuts, sides, p)
    constant = (sums(cuts, head.offset) + along(own, head.weights)).low
    above = 2.0 * max(float(up(upper - constant)), 0.0)
    share = _passed(own, inverse[:d], slack)
    if not share < 1:
        return np.inf
    return float(up(up(np.array(_passed(slope, inverse[:d], slack) * above)) / down(np.array(1.0 - share))))


def reach_charge(slope: Interval, within: float) -> float:
    """What a slope v (D,) can take off from zero to any weights up to ``within`` in absolute value."""
    return float(dot(slope.size, np.full(slope.size.shape, within)).high)


def _passed(slope: Interval, inverse: Floats, slack: float) -> float:
    """``max|P' v| + e k ||v||_1``, at least, of every v (D,) in the interval; P by its rows of the weights (D, .)."""
    middle = (slope.low + slope.high) / 2
    around = up(np.maximum(slope.high - middle, middle - slope.low))
    through = up(dot(inverse.T, middle).size + dot(np.abs(inverse).T, around).high)
    length = float(dot(slope.size, np.ones_like(middle)).high)
    return float(up(float(through.max()) + up(np.array(slack * length))))
