r"""Local steps for every loss and support: exact cuts of the worst-case risk, and a small quadratic program on them.

    min_w  phi(r(w)) + 1/2 ||w - centre||^2,     phi(r) = min_{t >= r} linear t + curvature/2 t^2

``linear = s, curvature = 0`` is the prox step of ``s r`` (ADMM, prox cuts); ``linear = -b, curvature = 1`` is the
client step of AD-LPMM, ``1/2 (r(w) - b)_+^2 + 1/2 ||w - centre||^2`` up to a constant. The risk is met only through its
value and a cut at a point (``models.worst_case.site_cut``), so one solver serves every loss and every support.

With cuts ``r(u) >= h_j + <g_j, u>`` the model of the step is a least-distance problem in (w, t). Its dual has one
multiplier y_j >= 0 a cut; an active set holds those above 0 and takes in each new cut, the most violated one first, as
the dual method of Goldfarb and Idnani (1983) does. So each round costs one exact risk and a few small linear systems.

What is reported is proved, not believed: from any y >= 0, with (C, V, Z) the sums of the cuts' offsets, slopes and norm
weights and Y the sum of y,

    phi(r(w)) + 1/2 ||w - centre||^2 >= C + <V, w> + Z ||w||_* - phi*(Y) + 1/2 ||w - centre||^2,

whose least value over w is one projection on the ball of the transport norm (Moreau).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from models.ambiguity import DUAL_NORM, steepest_move, vector_norm
from models.lower_bound import nearest_in_ball
from models.problem import FloatArray, SiteProblem, TransportNorm
from models.small_dual import CutProgram
from models.worst_case import RiskCut, site_cut

TOLERANCE = 1e-10
MAX_CUTS = 400
_PATIENCE = 6


@dataclass(frozen=True)
class Height:
    """What a height costs: ``phi(r) = min_{t >= r} linear t + curvature/2 t^2``."""

    linear: float
    curvature: float = 0.0

    @property
    def base(self) -> float:
        """Height at which the cost is least; minus infinity where it falls for ever."""
        return -self.linear / self.curvature if self.curvature > 0 else -np.inf

    def cost(self, risk: float) -> float:
        """``phi(risk)``, counted from its least value where there is one."""
        if self.curvature == 0:
            return self.linear * risk
        over = max(risk - self.base, 0.0)
        return 0.5 * self.curvature * over * over

    def conjugate(self, total: float) -> float:
        """``max_t total t - cost(t)`` for ``total >= 0`` (``total = linear`` where there is no curvature)."""
        return 0.0 if self.curvature == 0 else total * self.base + 0.5 * total * total / self.curvature


@dataclass(frozen=True)
class LocalStep:
    """Solution of a local step with what proves it.

    ``offset + <slope, u> + norm_weight ||u||_* <= r(u)`` for every u: the mixture of the cuts that made the step.
    ``gap`` : objective less its proven bound. ``value`` : objective. ``cuts`` : how many exact risks were asked.
    """

    point: FloatArray
    risk: float
    value: float
    gap: float
    offset: float
    slope: FloatArray
    norm_weight: float
    cuts: int


def local_step(
    problem: SiteProblem,
    centre: FloatArray,
    height: Height,
    *,
    start: FloatArray | None = None,
    tolerance: float = TOLERANCE,
    max_cuts: int = MAX_CUTS,
    oracle: Callable[[FloatArray], RiskCut] | None = None,
) -> LocalStep:
    """Solve ``min_w phi(r(w)) + 1/2 ||w - centre||^2`` of one site to a relative gap.

    Parameters
    ----------
    centre : (D,). height : what the risk costs. start : (D,), a first guess whose cut is worth having.
    tolerance : wanted gap over the objective. max_cuts : exact risks after which it stops anyway; the gap tells.
    oracle : risk and cut at a point, for weights in other units than the features'; None: those of the site.
    """
    bundle = _Bundle(centre, height, problem.spec.transport_norm, problem.features.shape[1])
    judge = oracle or partial(site_cut, problem=problem)
    bundle.add(centre, judge(centre))
    if start is not None and not np.array_equal(start, centre):
        bundle.add(start, judge(start))
    idle = 0
    while not bundle.closed(tolerance) and bundle.count < max_cuts and idle < _PATIENCE:
        point = bundle.next_point()
        before = bundle.gap
        bundle.add(point, judge(point))
        idle = 0 if bundle.gap < 0.999 * before else idle + 1
    return bundle.step()


class _Bundle:
    """Cuts so far, the best point, and the best proven bound."""

    def __init__(self, centre: FloatArray, height: Height, norm: TransportNorm, n_features: int) -> None:
        self._centre, self._height, self._norm, self._p = centre, height, norm, n_features
        self._program = CutProgram(centre, height.linear, height.curvature)
        self._cuts: list[tuple[float, FloatArray, float]] = []
        self._best: tuple[float, FloatArray, float] = (np.inf, centre, np.inf)
        self._bound: tuple[float, float, FloatArray, float] = (-np.inf, 0.0, np.zeros_like(centre), 0.0)

    @property
    def count(self) -> int:
        return len(self._cuts)

    @property
    def gap(self) -> float:
        return self._best[0] - self._bound[0]

    def closed(self, tolerance: float) -> bool:
        return self.gap <= tolerance * self._best[0]

    def add(self, point: FloatArray, cut: RiskCut) -> None:
        """Take in the risk at a point: the primal side, then the cut, then the bound."""
        away = point - self._centre
        value = self._height.cost(cut.value) + 0.5 * float(away @ away)
        if value < self._best[0]:
            self._best = (value, point, cut.value)
        norm = float(vector_norm(point[: self._p], DUAL_NORM[self._norm]))
        offset = cut.value - float(cut.slope @ point) - cut.norm_weight * norm
        self._cuts.append((offset, cut.slope, cut.norm_weight))
        plane = cut.slope.copy()
        plane[: self._p] += cut.norm_weight * steepest_move(point[: self._p], self._norm)
        self._program.add(plane, cut.value + float(plane @ (self._centre - point)))
        self._prove()

    def next_point(self) -> FloatArray:
        return self._program.point()

    def step(self) -> LocalStep:
        value, point, risk = self._best
        _, offset, slope, norm_weight = self._bound
        return LocalStep(point, risk, value, max(self.gap, 0.0), offset, slope, norm_weight, self.count)

    def _prove(self) -> None:
        """Bound that the multipliers of the program prove."""
        multipliers = self._program.multipliers()
        held = np.flatnonzero(multipliers)
        total = float(multipliers.sum())
        if total == 0:
            self._raise(0.0, 0.0, np.zeros_like(self._centre), 0.0)
            return
        share = multipliers[held] / total
        offset = float(sum(part * self._cuts[j][0] for part, j in zip(share, held, strict=True)))
        slope = share @ np.stack([self._cuts[j][1] for j in held])
        norm_weight = float(sum(part * self._cuts[j][2] for part, j in zip(share, held, strict=True)))
        pulled = self._centre - total * slope
        moved = pulled.copy()
        moved[: self._p] -= nearest_in_ball(pulled[: self._p], total * norm_weight, self._norm)
        norm = float(vector_norm(moved[: self._p], DUAL_NORM[self._norm]))
        away = moved - self._centre
        height = offset + float(slope @ moved) + norm_weight * norm
        self._raise(
            total * height - self._height.conjugate(total) + 0.5 * float(away @ away), offset, slope, norm_weight
        )

    def _raise(self, bound: float, offset: float, slope: FloatArray, norm_weight: float) -> None:
        if bound > self._bound[0]:
            self._bound = (bound, offset, slope, norm_weight)
