r"""Ambiguity over the plants: which mixture of the sites' risks is the worst one that must be reckoned with.

    Q = { q in the simplex : ||q - q0||_p <= radius },      p in {1, 2, inf}      (DRFL Theorem 4.3)

radius 0 is fixed weights q0; a radius of 2 or more is the whole simplex, the worst plant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, get_args

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, ProblemError, TransportNorm
from models.geometry.norms import vector_norm

MixtureNorm = TransportNorm
_FLAT = 1e-15
"""Slope of a weight, of heights in [-1, 0], that is rounding: the weight then stays."""


@dataclass(frozen=True)
class MixtureBall:
    """The ball around the site weights in which the true mixture is reckoned to lie; intersected with the simplex."""

    norm: MixtureNorm = "l2"
    radius: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a ball that is not one."""
        if self.norm not in get_args(MixtureNorm):
            known = ", ".join(get_args(MixtureNorm))
            raise ProblemError(f"the norm over the sites must be one of {known}, got {self.norm!r}")
        if not (math.isfinite(self.radius) and self.radius >= 0):
            raise ProblemError(f"the radius over the sites must be a finite number at or above 0, got {self.radius}")

    def covers_simplex(self, centre: FloatArray) -> bool:
        """Whether every mixture lies in the ball around ``centre`` (G,): the risk is then the worst plant's."""
        farthest = -centre
        farthest[int(np.argmin(centre))] += 1.0
        return bool(vector_norm(farthest, self.norm) <= self.radius)


WHOLE_SIMPLEX: Final = MixtureBall("l1", 2.0)
"""Every mixture: no two of them are farther apart than 2."""


@dataclass(frozen=True)
class WorstMixture:
    """``value = max_{q in Q} <q, risks>`` and ``weights`` (G,), a q that attains it."""

    value: float
    weights: FloatArray


def worst_mixture(risks: FloatArray, centre: FloatArray, ball: MixtureBall) -> WorstMixture:
    r"""Exact ``max { <q, risks> : q in the simplex, ||q - centre||_p <= radius }``.

    - l1: half the radius moves from the sites of least risk to the one of the greatest;
    - linf: every site has a least and a most; the rest goes to the sites of the greatest risk first;
    - l2: q is the projection of ``centre + t risks`` on the simplex, a path of straight pieces in t that ends where it
      is ``radius`` away from the centre, or where all weight is on the sites of the greatest risk.

    ``risks`` (G,) are finite; ``centre`` (G,) is at or above 0 with sum 1.
    """
    if ball.radius == 0:
        return WorstMixture(float(risks @ centre), centre)
    find = {"l1": _worst_l1, "l2": _worst_l2, "linf": _worst_linf}[ball.norm]
    weights = find(risks, centre, ball.radius)
    return WorstMixture(float(risks @ weights), weights)


def pull_into_ball(weights: FloatArray, centre: FloatArray, ball: MixtureBall) -> FloatArray:
    """A member of Q near ``weights`` (G,): clipped, scaled to the sum of the centre, drawn towards the centre.

    A member of Q comes back as it is, but for rounding.
    """
    clipped = np.maximum(np.nan_to_num(weights), 0.0)
    total = float(clipped.sum())
    if ball.radius == 0 or total <= 0:
        return centre
    change = clipped * (float(centre.sum()) / total) - centre
    size = vector_norm(change, ball.norm)
    return np.asarray(centre + change * (ball.radius / size if size > ball.radius else 1.0))


def _worst_l1(risks: FloatArray, centre: FloatArray, radius: float) -> FloatArray:
    weights, order = centre.copy(), np.argsort(risks, kind="stable")
    worst, others = order[-1], order[:-1]
    taken = _in_order(centre[others], radius / 2)
    weights[others] -= taken
    weights[worst] += taken.sum()
    return weights


def _worst_linf(risks: FloatArray, centre: FloatArray, radius: float) -> FloatArray:
    least, most = np.maximum(centre - radius, 0.0), np.minimum(centre + radius, 1.0)
    order = np.argsort(-risks, kind="stable")
    weights = least.copy()
    weights[order] += _in_order((most - least)[order], float((centre - least).sum()))
    return weights


def _in_order(room: FloatArray, amount: float) -> FloatArray:
    """Shares of an amount that fills rooms one after the other."""
    return np.clip(amount - (np.cumsum(room) - room), 0.0, room)


def _worst_l2(risks: FloatArray, centre: FloatArray, radius: float) -> FloatArray:
    """Walk along the projections of ``centre + t risks``: a site whose weight is 0 once stays there."""
    spread = float(risks.max() - risks.min())
    if not spread > 0:
        return centre
    heights = (risks - risks.max()) / spread
    weights, active = centre.copy(), _first_active(heights, centre)
    while True:
        slope = np.where(active, heights - heights[active].mean(), 0.0)
        falling = np.flatnonzero(slope < -_FLAT)
        if falling.size == 0:
            break
        steps = -weights[falling] / slope[falling]
        step = max(float(steps.min()), 0.0)
        moved = weights - centre
        along, room = float(moved @ slope), max(radius * radius - float(moved @ moved), 0.0)
        last = room / (along + math.sqrt(along * along + float(slope @ slope) * room)) if room > 0 else 0.0
        weights = np.maximum(weights + min(step, last) * slope, 0.0)
        if last <= step:
            break
        empty = falling[steps <= step]
        weights[empty], active[empty] = 0.0, False
    return pull_into_ball(weights, centre, MixtureBall("l2", radius))


def _first_active(heights: FloatArray, centre: FloatArray) -> NDArray[np.bool_]:
    """Sites whose weight moves at once: those with a weight, and those without one that lie above the mean."""
    active = np.asarray(centre > 0)
    empty = np.flatnonzero(~active)
    empty = empty[np.argsort(-heights[empty], kind="stable")]
    total, count = float(heights[active].sum()), int(active.sum())
    for site in empty:
        if heights[site] * count <= total:
            break
        active[site] = True
        total, count = total + float(heights[site]), count + 1
    return active
