r"""A cone program, where an interior point method begins on it, and when that ends.

    min 1/2 x' diag(curvature) x + <linear, x>   subject to   limits - rows x in R_+^l x Q_1 x .. x Q_k,

``Q = {(t, u) : ||u||_2 <= t}``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray
from models.solvers.arrow_rows import ArrowRows
from models.solvers.second_order_cone import Cones, depth
from models.solvers.solution import Solution, SolverStatus

MAX_STEPS = 60  # several times what a program takes: 10 to 20
SURFACE = 1e-13  # depth in a cone at which its scaling is no longer known
BACK_OFF = 0.99  # share of the way to the boundary that a step goes
_PATIENCE, _NEAR = 3, 1e-7  # steps without progress after which it ends, once the error is so small
_CRAWLING, _HOPELESS = 0.02, 5  # so many steps so short one after the other: no point is feasible, but for rounding
_ROUNDING = 1e-17  # mean complementarity, over the duals' size, that is rounding
_DEEP, _NEAR_DEEP = 0.1, 1e-4  # least depth in a cone of a start, and of one with multipliers


@dataclass(frozen=True)
class ConeProgram:
    """Data of the program; the last rows belong to second-order cones of the sizes ``cones``, one after the other.

    ``start`` (n,): a point to start from; ``duals`` (m,): multipliers inside the cones to start from, else those of the
    identity; ``room``: least slack of the start.
    """

    curvature: FloatArray
    linear: FloatArray
    rows: FloatArray | ArrowRows
    limits: FloatArray
    cones: tuple[int, ...] = ()
    start: FloatArray | None = None
    duals: FloatArray | None = None
    room: float = 0.1

    def first_iterate(self, slack: FloatArray, cones: Cones) -> tuple[FloatArray, FloatArray]:
        """Slack and multipliers (m,) inside the cones to start from; ``slack`` (m,) is that of the start, and taken."""
        unit = cones.unit(slack.size)
        np.maximum(slack[: cones.split], self.room, out=slack[: cones.split])
        deep = _DEEP if self.duals is None else _NEAR_DEEP
        for part in cones.parts:
            if not (slack[part.start] > 0 and depth(slack[part]) > deep):
                slack[part] = unit[part]
        return slack, unit if self.duals is None else self.duals


class Progress:
    """The best iterate so far, and whether another step may still make a better one."""

    def __init__(self, tolerance: float) -> None:
        """Nothing known."""
        self._tolerance = tolerance
        self._best: tuple[FloatArray, FloatArray, float, float, float, int] | None = None
        self._least, self._crawled = np.inf, 0
        self.idle = 0  # steps since the best

    def judge(
        self, taken: int, point: FloatArray, dual: FloatArray, left: tuple[float, float, float], mean: float,
        size: float,
    ) -> tuple[float, bool]:
        """Error of the iterate after ``taken`` steps, and whether it is over.

        ``left``: what is missed of feasibility and of stationarity, and complementarity, of which ``mean`` is the mean;
        ``size``: what the latter two are measured by.
        """
        error = max(left[0], left[1] / size, left[2] / size)
        self.idle += 1
        if error < self._least:
            self._best, self._least, self.idle = (point, dual, *left, taken), error, 0
        over = error <= self._tolerance or not mean > _ROUNDING * size
        return error, over or (self.idle > _PATIENCE and self._least < _NEAR) or self._crawled > _HOPELESS

    def moved(self, step: float) -> None:
        """Another step was taken, of this length."""
        self._crawled = self._crawled + 1 if step < _CRAWLING else 0

    def found(self, point: FloatArray, dual: FloatArray, whole: bool) -> Solution:
        """The best iterate; the start where none was finite. ``whole``: the limit of steps was reached."""
        status = SolverStatus.SOLVED if self._least <= self._tolerance else SolverStatus.ROUNDING
        status = SolverStatus.STEP_LIMIT if whole else status
        if self._best is None:
            return Solution(point, dual, status, np.inf, np.inf, np.inf, 0)
        best, duals, primal, stationary, gap, taken = self._best
        return Solution(best, duals, status, primal, stationary, gap, taken)
