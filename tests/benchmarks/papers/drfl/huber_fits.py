r"""DRFL with Huber on unbounded features for many settings: a fit that is known to answer another setting is kept.

Huber grows at its steepest slope L without end, so moving mass costs what it costs anywhere, and for every mixture q

    sum_s q_s r_s(w) = sum_s q_s mean_s(Huber) + rho L max(||w||_inf, 1 / kappa)

with the l1 norm of moves (DRFL Corollary B.2). From (rho', kappa') to rho >= rho', kappa <= kappa' the optimum rises by
at least ``L (rho - rho') / kappa``: the difference of the last terms has its least value at ``||w||_inf = 1 / kappa``.
So weights whose bounds are g apart there have at most

    g + L (rho max(||w||_inf, 1 / kappa) - rho' max(||w||_inf, 1 / kappa') - (rho - rho') / kappa)

here. Where that is within the wanted gap nothing is solved. It is so for all kappa that leave the weights alone, and
for all radii at which 1 / kappa holds: of 150 settings of a theta some 25 are solved.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.benchmarks.papers.drfl.settings import THRESHOLD, Fitted, Setting


class HuberFits:
    """Fits to a gap, each of a theta held against those that were solved before; dearest label flip costs first."""

    def __init__(self, solve: Callable[[Setting], Fitted], gap: float) -> None:
        self._solve, self._gap = solve, gap
        self._solved: list[tuple[Setting, Fitted]] = []

    def __call__(self, setting: Setting) -> Fitted:
        """Weights within the gap of this setting's optimum, with their risk here."""
        for other, found in reversed(self._solved):
            if (kept := carried(found, other, setting)) is not None and kept.gap <= self._gap:
                return kept
        self._solved.append((setting, self._solve(setting)))
        return self._solved[-1][1]


def carried(found: Fitted, other: Setting, setting: Setting) -> Fitted | None:
    """A fit of another setting as one of this setting, with its gap here; None where the formula says nothing."""
    dearer = setting.radius >= other.radius and setting.label_flip_cost <= other.label_flip_cost
    if setting.theta != other.theta or not dearer:
        return None
    norm, least = float(np.abs(found.weights[:-1]).max()), 1.0 / setting.label_flip_cost
    before = other.radius * max(norm, 1.0 / other.label_flip_cost)
    rise = THRESHOLD * (setting.radius * max(norm, least) - before)
    at_least = THRESHOLD * (setting.radius - other.radius) * least
    distance = found.gap * found.risk + rise - at_least
    return Fitted(found.weights, found.risk + rise, distance / (found.risk + rise))
