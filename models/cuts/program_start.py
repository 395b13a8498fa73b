"""Where a program on a cut model begins, in which units, and how exactly it is solved.

An interior point method that begins a unit away from a solution which is a thousandth away, with multipliers of one in
place of hundredths, spends half of its steps on that. What is still to go is known: the gap, or the way down to a
level. So slacks begin at some of that, multipliers at shares of the sites' weights, and a projection is found in such a
unit of the squared distance that the price of its level is of order one. None of it changes a solution, nor a bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.cuts.cut_model import CutModel
from models.cuts.norm_rows import NormRows
from models.site_ambiguity.epigraph import MixtureRows

_GAP = 20.0
"""How far a minimum is below the centre's value at most, over what its bound may miss."""
_BOUND_SHARE, _POINT_SHARE = 3e-3, 1e-6
"""Shares of the drop to a minimum, and of the way down to a level, that a tolerance is where these are known.

The multipliers of a point that is hardly there still prove their bound; how far a projection lies goes by the root."""
_WIDE, _WIDE_BOUND_SHARE, _WIDE_POINT_SHARE = 256, 1e-2, 1e-3
"""From so many weights on a step of the solver is dear, and both may be rougher: a bound that misses a hundredth of the
gap, and a point that is 3 % of the way beside the projection, cost no rounds."""
_FINE_SHARE = 1e-4
"""That share for a minimum by active sets, to which digits are no dearer."""
_FINEST, _COARSEST = 1e-13, 1e-3
"""Between which tolerances these shares are taken."""
_LEAST_SLACK, _LEAST_DUAL = 0.1, 1e-6
"""Least slack where nothing is known, and least multiplier, of a start."""
_BOUND_ROOM, _POINT_ROOM, _LEAST_ROOM = 1.5, 30.0, 1e-5
"""Slack of the norm at the start over what is still to go, to a minimum and to a level, and at least."""
_BOUND_PATH, _POINT_PATH = 8.0, 1.0
"""What all slacks times their multipliers are together at the start, over what is still to go to these.

To a minimum it is more: its start is the centre itself, and nearer to the end of the path there is no way to turn."""
_NEWTON = 8
"""Steps to the heights of the central path, which need not be exact."""


@dataclass(frozen=True)
class Goal:
    """What is asked of a program: a level, or the minimum (None); and where to begin, ``begin`` (D,) from the centre.

    ``drop``: about how far the value is to fall, in the units of the risk; 0: nothing is known, so the start is a unit
    away and the tolerance as it is. ``sharp``: the tolerance is as it is all the same.
    """

    level: float | None
    begin: FloatArray
    drop: float
    tolerance: float
    sharp: bool = False

    @staticmethod
    def minimum(centre: FloatArray, within: float, tolerance: float) -> Goal:
        """The minimum, of which the bound may miss ``within``; 0: nothing."""
        return Goal(None, np.zeros_like(centre), _GAP * within, tolerance)

    def on_the_way(self, model: CutModel, centre: FloatArray, towards: FloatArray) -> Goal:
        """Begin where the chord of the model towards a lower point is at the level: there it is at or below that."""
        high, low = model.value(centre), model.value(towards)
        if self.level is None or not low < self.level < high:
            return self
        begin = (high - self.level) / (high - low) * (towards - centre)
        return replace(self, begin=begin, drop=high - self.level) if begin.any() else self

    def from_afar(self) -> Goal:
        """The same, begun at the centre as if nothing were known, and with all digits."""
        return replace(self, begin=np.zeros_like(self.begin), drop=0.0)

    def with_all_digits(self) -> Goal:
        """The same, begun as near, and to the tolerance of one that is begun from afar."""
        return replace(self, sharp=True)

    def in_units(self, height: float) -> tuple[float, float]:
        """Room at the start and tolerance, where the unit of the heights is ``height``."""
        if self.drop <= 0:
            return 1.0, self.tolerance
        drop = self.drop / height
        room = min(max((_BOUND_ROOM if self.level is None else _POINT_ROOM) * drop, _LEAST_ROOM), 1.0)
        if self.sharp:
            return room, self.tolerance
        wide = self.begin.shape[0] >= _WIDE
        if self.level is None:
            return room, min(max((_WIDE_BOUND_SHARE if wide else _BOUND_SHARE) * drop, self.tolerance), _COARSEST)
        return room, min(max((_WIDE_POINT_SHARE if wide else _POINT_SHARE) * drop, _FINEST), _COARSEST)

    def fine_tolerance(self, height: float) -> float:
        """Tolerance of a minimum by active sets, where the unit of the heights is ``height``."""
        return min(max(_FINE_SHARE * self.drop / height, self.tolerance), _FINE_SHARE)

    def mean_product(self, height: float, count: int) -> float:
        """Slack times multiplier of each of ``count`` cuts at the start, where what is still to go is known."""
        return (_BOUND_PATH if self.level is None else _POINT_PATH) * self.drop / height / count

    def least_slack(self, height: float, count: int) -> float:
        """Least slack of the start: on the central path of ``count`` cuts, that of a row with multiplier 1."""
        return self.mean_product(height, count) if self.drop > 0 else _LEAST_SLACK


def first_duals(
    model: CutModel, mixed: MixtureRows, norm: NormRows, order: NDArray[np.intp], levels: int, of_cuts: FloatArray
) -> FloatArray:
    """Multipliers to start from: those ``of_cuts`` and floors (m + G,), and what balances them.

    ``order``: which rows of the norm those are.
    """
    linear = norm.rows.shape[0] - norm.cone
    of_norm = np.full(norm.rows.shape[0], 1.0 / max(linear, 1))
    if norm.cone:
        of_norm[linear:] = 0.0
        of_norm[linear] = max(float(of_cuts @ norm.weights[order, 0]), _LEAST_DUAL)
    of_mixed, apex = np.full(mixed.rows.shape[0], 1.0 / model.site_weights.shape[0]), np.eye(mixed.cone.shape[0])[:1]
    return np.concatenate([of_cuts, of_mixed, np.ones(levels), of_norm, apex.ravel()])


def on_the_path(
    below: FloatArray, site: NDArray[np.intp], weights: FloatArray, mean: float
) -> tuple[FloatArray, FloatArray]:
    """Heights (G,) and multipliers (m,) with ``dual (height - below) = mean`` that sum to each site's weight."""
    firsts = np.flatnonzero(np.diff(site, prepend=-1))
    counts = np.diff(np.append(firsts, site.size))
    wanted = np.maximum(weights, _LEAST_DUAL)
    tops, least = np.maximum.reduceat(below, firsts), mean / wanted
    room = counts * least
    for _ in range(_NEWTON):
        slack = (tops + room)[site] - below
        total, slope = np.add.reduceat(mean / slack, firsts), np.add.reduceat(mean / slack**2, firsts)
        # Newton's steps on 1 / total, which is nearly straight.
        room = np.clip(room + (total - wanted) * total / (wanted * slope), least, counts * least)
    slack = (tops + room)[site] - below
    return tops + room, mean / slack
