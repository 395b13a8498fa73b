r"""How far from zero a question may lie, where cuts do not say it.

A best model is no worse than zero weights, and a ball says what weights cost: with radius_g and a loss as steep as the
hinge, ``r_g(w) >= radius_g ||w||_*`` on unbounded features, whatever the rows are; on a box [0, 1]^P of diameter D the
share ``radius_g / D`` of the mass can be at any corner, so that ``r_g(w) >= min(1, radius_g / D) (||w||_1 / 2 - 1)``
where both classes have that much. Cuts do not always say so: those of all classes as one problem have no norm, and
where it is cheaper to flip labels, or to move targets, than to move features, the worst case at zero moves none. Then
their least lies hundreds of times too far, and plants refuse to answer there
(``services.site_agent.limits.questions``). So questions stay within some times what the best risk so far allows, or
twice as far out as the best point. No bound rests on that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray, TransportNorm
from models.geometry.norms import DUAL_NORM, vector_norm
from models.problem import REACH

_FARTHEST = 16.0
"""Times what the best risk so far allows the weights to cost."""


@dataclass(frozen=True)
class Farthest:
    """How large the weights of a question may be: of ``n_features`` features, with ``radius`` the largest of the sites.

    ``box``: the features live in one, so weights cost by what the score can change by there. ``reach``: the largest
    absolute weight of which answers are true (``models.problem.ServerProblem``); none is asked beyond it.
    """

    n_features: int
    radius: float
    transport_norm: TransportNorm
    box: bool = False
    reach: float = math.inf

    def drawn_in(self, point: FloatArray, best: FloatArray, upper: float) -> FloatArray:
        """The point (D,), or as far on the way to it from the best one, of risk ``upper``, as questions go."""
        way, share = point - best, 1.0
        for norm, farthest, length in self._limits(upper):
            long, far = (float(vector_norm(each[:length], norm)) for each in (way, best))
            share = min(share, max(farthest, 2.0 * far) / long if long > 0 else 1.0)
        if math.isfinite(self.reach) and way.any():
            share = min(share, float(((self.reach - np.sign(way) * best)[way != 0] / np.abs(way[way != 0])).min()))
        return point if share >= 1.0 else best + max(share, 0.0) * way

    def _limits(self, upper: float) -> Iterator[tuple[TransportNorm, float, int | None]]:
        """A norm, how large that of the first so many weights may be, and how many; None: all."""
        yield "linf", REACH, None
        p = self.n_features
        if self.radius == 0:
            return
        if self.box:
            diameter = float(vector_norm(np.ones(p), self.transport_norm))
            yield "l1", 2.0 * _FARTHEST * upper * max(diameter / self.radius, 1.0), p
        else:
            yield DUAL_NORM[self.transport_norm], _FARTHEST * upper / self.radius, p
