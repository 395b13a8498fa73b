r"""Local steps for every loss and support: exact cuts of the worst-case risk, and a small quadratic program on them.

    min_w  phi(r(w)) + 1/2 ||w - centre||^2,     phi(r) = min_{t >= r} linear t + curvature/2 t^2

``linear = s, curvature = 0`` is the prox step of ``s r`` (ADMM, prox cuts); ``linear = -b, curvature = 1`` is the
client step of AD-LPMM, ``1/2 (r(w) - b)_+^2 + 1/2 ||w - centre||^2`` up to a constant. The risk is met only through its
value and a cut at a point (``models.worst_case.risk.site_cut``), so one solver serves every loss and every support.

With cuts ``r(u) >= h_j + <g_j, u>`` the model of the step is a least-distance problem in (w, t). Its dual has one
multiplier y_j >= 0 a cut; an active set holds those above 0 and takes in each new cut, the most violated one first, as
the dual method of Goldfarb and Idnani (1983) does. So each round costs one exact risk and a few small linear systems.

What is reported is proved, not believed: from any y >= 0, with (C, V, Z) the sums of the cuts' offsets, slopes and norm
weights and Y the sum of y,

    phi(r(w)) + 1/2 ||w - centre||^2 >= C + <V, w> + Z ||w||_* - phi*(Y) + 1/2 ||w - centre||^2,

whose least value over w is one projection on the ball of the transport norm (Moreau).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from models.basics import FloatArray, TransportNorm, without_needless_digits
from models.geometry.norms import DUAL_NORM, steepest_move, vector_norm
from models.geometry.projections import nearest_in_ball
from models.problem import SiteProblem
from models.solvers.bundle_qp import CutProgram
from models.worst_case.risk import RiskCut, site_cut

TOLERANCE = 1e-10  # relative gap of the local solve: far below the gap that a run asks for
MAX_CUTS = 400  # solves that close take some tens
ROUGH, ROUGH_CUTS = 1e-3, 25
"""Relative gap and number of exact risks at which a prox cut is good enough."""

_PATIENCE = 6  # cuts in a row that do not close the gap by a thousandth: rounding


@dataclass(frozen=True)
class RiskPenalty:
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

    ``offset + <slope, u> + norm_weight ||u||_* + <swing, |u|> <= r(u)`` for every u: the mixture of the cuts that made
    the step.
    ``gap`` : objective less its proven bound. ``value`` : objective. ``cuts`` : how many exact risks were asked.
    ``rows`` (N,) : the rows' coefficients in the slope (:class:`models.worst_case.risk.RiskCut`), None: not known.
    ``proven_point`` (D,) : where the bound's own step ends, which tells no more of the rows than the bound does; as
    near the solution as ``point``: ``1/2 ||proven_point - solution||^2 <= gap``.
    """

    point: FloatArray
    risk: float
    value: float
    gap: float
    offset: float
    slope: FloatArray
    norm_weight: float
    cuts: int
    swing: FloatArray | None = None
    rows: FloatArray | None = None
    proven_point: FloatArray | None = None


def local_step(
    problem: SiteProblem,
    centre: FloatArray,
    height: RiskPenalty,
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
    evaluate = oracle or partial(site_cut, problem=problem)
    bundle.add(centre, evaluate(centre))
    if start is not None and not np.array_equal(start, centre):
        bundle.add(start, evaluate(start))
    idle = 0
    while not bundle.closed(tolerance) and bundle.count < max_cuts and idle < _PATIENCE:
        point = without_needless_digits(bundle.next_point(), tolerance)
        before = bundle.gap
        bundle.add(point, evaluate(point))
        idle = 0 if bundle.gap < 0.999 * before else idle + 1
    return bundle.step()


def fast_prox_fits(problem: SiteProblem) -> bool:
    """Whether ``models.prox.hinge`` solves the step: hinge loss, features without bounds, every row counted once."""
    return problem.spec.support is None and problem.spec.loss.name == "hinge" and problem.row_weights is None


def local_minorant(
    problem: SiteProblem, centre: FloatArray, penalty: float, max_cuts: int = ROUGH_CUTS
) -> LocalStep:
    """Rough prox step of ``centre``, for the sake of its minorant.

    That is a mixture of exact cuts and bounds the risk from below however rough the step is; it need be near-tight only
    where the step ends.
    """
    return local_step(problem, centre, RiskPenalty(1.0 / penalty), tolerance=ROUGH, max_cuts=max_cuts)


def local_prox(
    problem: SiteProblem, centre: FloatArray, penalty: float, *, ridge: float = 0.0, start: FloatArray | None = None
) -> LocalStep:
    """``argmin_w r(w) + ridge ||w||^2 + penalty/2 ||w - centre||^2``; ``start`` (D,) is a first guess."""
    stiffness = penalty + 2.0 * ridge
    return local_step(problem, centre * (penalty / stiffness), RiskPenalty(1.0 / stiffness), start=start)


class _Minorant(NamedTuple):
    offset: float
    slope: FloatArray
    norm_weight: float
    swing: FloatArray
    rows: FloatArray | None = None


class _Bundle:
    """Cuts so far, the best point, and the best proven bound."""

    def __init__(self, centre: FloatArray, height: RiskPenalty, norm: TransportNorm, n_features: int) -> None:
        self._centre, self._height, self._norm, self._p = centre, height, norm, n_features
        self._program = CutProgram(centre, height.linear, height.curvature)
        self._cuts: list[_Minorant] = []
        self._best: tuple[float, FloatArray, float] = (np.inf, centre, np.inf)
        self._bound, self._proof = -np.inf, _Minorant(0.0, np.zeros_like(centre), 0.0, np.zeros(n_features))
        self._swings = False
        self._proven = centre

    @property
    def count(self) -> int:
        return len(self._cuts)

    @property
    def gap(self) -> float:
        return self._best[0] - self._bound

    def closed(self, tolerance: float) -> bool:
        return self.gap <= tolerance * self._best[0]

    def add(self, point: FloatArray, cut: RiskCut) -> None:
        """Take in the risk at a point: the primal side, then the cut, then the bound."""
        away = point - self._centre
        value = self._height.cost(cut.risk) + 0.5 * float(away @ away)
        if value < self._best[0]:
            self._best = (value, point, cut.risk)
        norm = float(vector_norm(point[: self._p], DUAL_NORM[self._norm]))
        swing = np.zeros(self._p) if cut.swing is None else cut.swing
        self._swings = self._swings or cut.swing is not None
        self._cuts.append(_Minorant(cut.offset(point, norm), cut.slope, cut.norm_weight, swing, cut.rows))
        plane = cut.slope.copy()
        plane[: self._p] += cut.norm_weight * steepest_move(point[: self._p], self._norm)
        plane[: self._p] += np.sign(point[: self._p]) * swing
        self._program.add(plane, cut.height + float(plane @ (self._centre - point)))
        self._prove()

    def next_point(self) -> FloatArray:
        return self._program.point()

    def step(self) -> LocalStep:
        value, point, risk = self._best
        offset, slope, norm_weight, swing, rows = self._proof
        return LocalStep(
            point, risk, value, max(self.gap, 0.0), offset, slope, norm_weight, self.count,
            swing if self._swings else None, rows, self._proven,
        )

    def _prove(self) -> None:
        """Bound that the multipliers of the program prove."""
        multipliers = self._program.multipliers()
        held = np.flatnonzero(multipliers)
        total = float(multipliers.sum())
        if total == 0:
            self._raise(0.0, _Minorant(0.0, np.zeros_like(self._centre), 0.0, np.zeros(self._p)), self._centre)
            return
        share = multipliers[held] / total
        cuts = [self._cuts[j] for j in held]
        offset = float(sum(part * cut.offset for part, cut in zip(share, cuts, strict=True)))
        slope = share @ np.stack([cut.slope for cut in cuts])
        norm_weight = float(sum(part * cut.norm_weight for part, cut in zip(share, cuts, strict=True)))
        swing = share @ np.stack([cut.swing for cut in cuts])
        moved = self._centre - total * slope
        # A risk has either part, never both: what is nearest to either takes its own off.
        moved[: self._p] -= np.clip(moved[: self._p], -total * swing, total * swing)
        moved[: self._p] -= nearest_in_ball(moved[: self._p], total * norm_weight, self._norm)
        norm = float(vector_norm(moved[: self._p], DUAL_NORM[self._norm]))
        away = moved - self._centre
        height = offset + float(slope @ moved) + norm_weight * norm + float(swing @ np.abs(moved[: self._p]))
        self._raise(
            total * height - self._height.conjugate(total) + 0.5 * float(away @ away),
            _Minorant(offset, slope, norm_weight, swing, _mixed(share, [cut.rows for cut in cuts])), moved,
        )

    def _raise(self, bound: float, proof: _Minorant, proven: FloatArray) -> None:
        if bound > self._bound:
            self._bound, self._proof, self._proven = bound, proof, proven


def _mixed(shares: FloatArray, rows: Sequence[FloatArray | None]) -> FloatArray | None:
    """The rows' coefficients in a mixture of cuts; None where those of one cut are not known."""
    known = [each for each in rows if each is not None]
    return np.tensordot(shares, np.stack(known), axes=1) if len(known) == len(rows) else None
