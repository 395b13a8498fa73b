r"""Client step over many rows: solve over those near a kink, hold the others in their piece, check all, repeat.

A row far from its kinks is linear near the optimum. Holding it in the piece it lies in bounds the objective from
below, so a solution over the rest is optimal for all rows as soon as no held row has left its piece; what held rows
lose by their piece is exactly what is missing in the duality gap. Two passes over the data a stage (one for the held
rows' force, one to check), one more before the first; between the rounds of a run one or two stages do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, TransportNorm
from models.geometry.norms import dual_norm
from models.prox.hinge.breakpoints import best_multiplier, held_pieces, kink_distance, row_losses
from models.prox.hinge.certify import Bound, minorant
from models.prox.hinge.local import solve_locally
from models.prox.hinge.site_rows import Index, SiteRows
from models.prox.hinge.statement import Statement

_DIRECT = 400  # this many rows are solved over at once
_THINNING = 8  # a cold start comes from every 8th row, which starts from every 64th, and so on
_COARSE_TOLERANCE = 1e-3  # a start is no answer
_HELD_SHARE = 0.1  # share of the tolerance that the held rows may take
_HALVINGS = 8  # a start need be right to a few parts in a thousand only
_TIE = 1e-9  # rows this much farther from their kink are as near
_FREE_STAGES = 3  # stages after which rows no longer leave the working set, so that it must end
_PATIENT_STAGES = 6  # stages after which the working set doubles, so that it ends soon


@dataclass(frozen=True)
class Ball:
    """The numbers of the client step, times N where a sum over the rows stands in the objective."""

    price: float
    flip: float
    stiffness: float
    norm: TransportNorm
    anchor: FloatArray

    def statement(
        self, rows: SiteRows, members: Index | slice, linear: FloatArray, constant: float, price: float
    ) -> Statement:
        """Statement over some of the rows, with what the others contribute."""
        return Statement(
            rows.gather(members), rows.n_features, linear, constant, self.anchor, price, self.flip, self.stiffness,
            self.norm, rows.count,
        )


@dataclass(frozen=True)
class SiteAnswer:
    """Solution over all rows, in units of N times the objective (completed square, without its constant).

    ``shares`` (N,) are the coefficients of the signed rows in the bound's slope, held rows too.
    """

    weights: FloatArray
    multiplier: float
    objective: float
    bound: Bound
    iterations: int
    solver: str
    shares: FloatArray


def solve_site(rows: SiteRows, ball: Ball, start: FloatArray | None, tolerance: float) -> SiteAnswer:
    """Solve the client step over all rows to ``tolerance``, the wanted duality gap over the objective.

    ``start`` (D,) are weights near the answer, best those of the last round; None lets a sample of the rows find some.
    """
    if rows.count <= _DIRECT:
        return _solve_directly(rows, ball, start, tolerance)
    spent = 0
    if start is None:
        start, spent = _coarse_start(rows, ball)
    margins = rows.margins(start)
    members = np.zeros(rows.count, dtype=bool)
    size = min(max(6 * start.size, int(5.0 * math.sqrt(rows.count))), rows.count)
    stage = 0
    while True:
        stage += 1
        least = dual_norm(start[: rows.n_features], ball.norm)
        floor = best_multiplier(margins, ball.price, ball.flip, least)
        members = _choose(margins, floor, ball.flip, size, members if stage > _FREE_STAGES else None)
        keep, flip = held_pieces(margins, floor, ball.flip)
        statement = _reduce(rows, ball, members, keep, flip)
        answer = solve_locally(statement, start, floor, tolerance, warm=True)
        spent += answer.iterations
        found = answer.found
        reached = rows.margins(found.weights)
        lost = _lost(reached, found.multiplier, ball.flip, keep, flip)
        lost[members] = 0.0
        missing = float(lost.sum())
        if missing <= max(_HELD_SHARE * tolerance * found.objective, 0.0) or size >= rows.count:
            break
        gone = int(np.count_nonzero(lost))
        members |= lost > 0.0
        if gone > size:
            # held rows are lines, so the step went far past the optimum: go on from the best point of the way there
            share = _best_share(ball, start, floor, margins, found.weights, found.multiplier, reached)
            start = start + share * (found.weights - start)
            margins += share * (reached - margins)
            size = min(2 * size, rows.count)
        else:
            start, margins = found.weights, reached
            size = min(max(size, 2 * gone) * (2 if stage > _PATIENT_STAGES else 1), rows.count)
    bound = minorant(statement, found.keep, found.flip, found.norm_dual)
    solver = f"working set, {answer.solver}"
    shares = _force(keep, flip, ~members)
    shares[members] = bound.shares
    return SiteAnswer(found.weights, found.multiplier, found.objective + missing, bound, spent, solver, shares)


def _choose(
    margins: FloatArray, multiplier: float, flip: float, size: int, former: NDArray[np.bool_] | None
) -> NDArray[np.bool_]:
    """The ``size`` rows nearest to a kink with all that tie with them, and the former members if these must stay."""
    members = np.ones(margins.size, dtype=bool)
    distance = kink_distance(margins, multiplier, flip)
    if size < margins.size:
        members = distance <= np.partition(distance, size)[size] + _TIE
    return members if former is None else members | former


def _lost(
    margins: FloatArray, multiplier: float, flip: float, keep: NDArray[np.bool_], flipped: NDArray[np.bool_]
) -> FloatArray:
    """How far each row's held piece is below its loss."""
    lost = row_losses(margins, multiplier, flip)
    lost -= keep * (1.0 - margins)
    if flipped.size:
        lost -= flipped * (margins + (1.0 - flip * multiplier))
    return lost


def _best_share(
    ball: Ball, start: FloatArray, lam: float, margins: FloatArray, end: FloatArray, end_lam: float, reached: FloatArray
) -> float:
    """Share of the way from ``start`` to ``end`` at which the objective over all rows is least: no pass."""
    robust = math.isfinite(end_lam)
    way, change, rise = end - start, reached - margins, end_lam - lam if robust else 0.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        share = 0.5 * (low + high)
        here = margins + share * change
        keep, flip = held_pieces(here, lam + share * rise if robust else 0.0, ball.flip)
        slope = ball.stiffness * float((start + share * way - ball.anchor) @ way) + ball.price * rise
        slope -= float(keep @ change)
        if flip.size:
            slope += float(flip @ change) - ball.flip * rise * float(np.count_nonzero(flip))
        low, high = (low, share) if slope > 0.0 else (share, high)
    return 0.5 * (low + high)


def _solve_directly(rows: SiteRows, ball: Ball, start: FloatArray | None, tolerance: float) -> SiteAnswer:
    statement = ball.statement(rows, slice(None), np.zeros(ball.anchor.size), 0.0, ball.price)
    warm = start is not None
    weights = ball.anchor if start is None else start
    size = dual_norm(weights[: rows.n_features], ball.norm)
    floor = best_multiplier(statement.rows @ weights, ball.price, ball.flip, size)
    answer = solve_locally(statement, weights, floor, tolerance, warm)
    found = answer.found
    bound = minorant(statement, found.keep, found.flip, found.norm_dual)
    return SiteAnswer(
        found.weights, found.multiplier, found.objective, bound, answer.iterations, answer.solver, bound.shares
    )


def _coarse_start(rows: SiteRows, ball: Ball) -> tuple[FloatArray, int]:
    """Solution over every few rows, itself started from one over fewer still."""
    step = min(_THINNING, -(-rows.count // _DIRECT))
    part = rows.every(step)
    share = part.count / rows.count
    thinned = replace(ball, price=ball.price * share, stiffness=ball.stiffness * share)
    answer = solve_site(part, thinned, None, _COARSE_TOLERANCE)
    return answer.weights, answer.iterations


def _reduce(
    rows: SiteRows, ball: Ball, members: NDArray[np.bool_], keep: NDArray[np.bool_], flip: NDArray[np.bool_]
) -> Statement:
    """Statement over the members, the other rows held in their pieces."""
    force = _force(keep, flip, ~members)
    price, constant = ball.price, float(np.count_nonzero(keep & ~members))
    if flip.size:
        flipped = float(np.count_nonzero(flip & ~members))
        price = max(price - ball.flip * flipped, 0.0)
        constant += flipped
    return ball.statement(rows, np.flatnonzero(members), rows.combine(force), constant, price)


def _force(keep: NDArray[np.bool_], flip: NDArray[np.bool_], held: NDArray[np.bool_]) -> FloatArray:
    """Coefficients (N,) of the signed rows that are held in their pieces; 0 for the others."""
    force: FloatArray = -(keep & held).astype(float)
    return force + (flip & held) if flip.size else force
