r"""Client step over many rows: solve over those near a kink, hold the others in their piece, check all, repeat.

A row far from its kinks is linear near the optimum. Holding it in the piece it lies in bounds the objective from
below, so a solution over the rest is optimal for all rows as soon as no held row has left its piece; what held rows
lose by their piece is exactly what is missing in the duality gap. Two passes over the data a stage (one for the held
rows' force, one to check), one more before the first; between the rounds of a run one or two stages do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.problem import FloatArray, TransportNorm
from models.prox.certify import Bound, minorant
from models.prox.kinks import best_multiplier, held_pieces, kink_distance, row_losses
from models.prox.local import solve_locally
from models.prox.site_rows import SiteRows
from models.prox.statement import Statement, dual_norm_value

_DIRECT = 400  # this many rows are solved over at once
_COARSE_TOLERANCE = 1e-3
_FREE_STAGES = 3  # stages after which rows no longer leave the working set, so that it must end


@dataclass(frozen=True)
class Ball:
    """The numbers of the client step, times N where a sum over the rows stands in the objective."""

    price: float
    flip: float
    stiffness: float
    norm: TransportNorm
    anchor: FloatArray


@dataclass(frozen=True)
class SiteAnswer:
    """Solution over all rows, in units of N times the objective (completed square, without its constant)."""

    weights: FloatArray
    multiplier: float
    objective: float
    bound: Bound
    iterations: int
    solver: str


def solve_site(rows: SiteRows, ball: Ball, start: FloatArray | None, tolerance: float) -> SiteAnswer:
    """Solve the client step over all rows to a relative duality gap.

    Parameters
    ----------
    rows : SiteRows
    ball : Ball
    start : (D,) or None
        Weights near the answer, best those of the last round; None lets a sample of the rows find some.
    tolerance : float
        Wanted duality gap over the objective.
    """
    if rows.count <= _DIRECT:
        return _solve_directly(rows, ball, start, tolerance)
    spent = 0
    if start is None:
        start, spent = _coarse_start(rows, ball)
    margins = rows.margins(start)
    members = np.zeros(rows.count, dtype=bool)
    size = _first_size(rows.count, start.size)
    stage = 0
    while True:
        stage += 1
        least = dual_norm_value(start[: rows.n_features], ball.norm)
        floor = best_multiplier(margins, ball.price, ball.flip, least)
        distance = kink_distance(margins, floor, ball.flip)
        keep, flip = held_pieces(margins, floor, ball.flip)
        chosen = np.zeros(rows.count, dtype=bool)
        chosen[np.argpartition(distance, size)[:size] if size < rows.count else slice(None)] = True
        if stage > _FREE_STAGES:
            chosen |= members
        members = chosen
        statement = _reduce(rows, ball, members, keep, flip)
        answer = solve_locally(statement, start, floor, tolerance, warm=True)
        spent += answer.iterations
        found = answer.found
        margins = rows.margins(found.weights)
        lost = row_losses(margins, found.multiplier, ball.flip)
        lost -= keep * (1.0 - margins)
        if flip.size:
            lost -= flip * (margins + (1.0 - ball.flip * found.multiplier))
        lost[members] = 0.0
        missing = float(lost.sum())
        if missing <= 0.1 * tolerance * found.objective or size >= rows.count:
            break
        start = found.weights
        size = min(max(size, 2 * int(np.count_nonzero(lost))), rows.count)
        members |= lost > 0.0
    bound = minorant(statement, found.keep, found.flip, found.norm_dual)
    return SiteAnswer(found.weights, found.multiplier, found.objective + missing, bound, spent,
                      f"working set, {answer.solver}")


def _solve_directly(rows: SiteRows, ball: Ball, start: FloatArray | None, tolerance: float) -> SiteAnswer:
    statement = _whole(rows, ball)
    warm = start is not None
    weights = ball.anchor if start is None else start
    size = dual_norm_value(weights[: rows.n_features], ball.norm)
    floor = best_multiplier(statement.rows @ weights, ball.price, ball.flip, size)
    answer = solve_locally(statement, weights, floor, tolerance, warm)
    found = answer.found
    bound = minorant(statement, found.keep, found.flip, found.norm_dual)
    return SiteAnswer(found.weights, found.multiplier, found.objective, bound, answer.iterations, answer.solver)


def _whole(rows: SiteRows, ball: Ball, step: int = 1) -> Statement:
    """Statement over every ``step``-th row, as if these were all."""
    signed = rows.gather(slice(None, None, step) if step > 1 else slice(None))
    share = signed.shape[0] / rows.count
    return Statement(signed, rows.n_features, np.zeros(ball.anchor.size), 0.0, ball.anchor, ball.price * share,
                     ball.flip, ball.stiffness * share, ball.norm, signed.shape[0])


def _coarse_start(rows: SiteRows, ball: Ball) -> tuple[FloatArray, int]:
    """Solution over a sample of the rows."""
    wanted = max(300, 10 * ball.anchor.size)
    statement = _whole(rows, ball, max(rows.count // wanted, 1))
    size = dual_norm_value(ball.anchor[: rows.n_features], ball.norm)
    floor = best_multiplier(statement.rows @ ball.anchor, statement.price, ball.flip, size)
    answer = solve_locally(statement, ball.anchor, floor, _COARSE_TOLERANCE, warm=False)
    return answer.found.weights, answer.iterations


def _first_size(count: int, dimension: int) -> int:
    return min(max(6 * dimension, int(5.0 * math.sqrt(count))), count)


def _reduce(
    rows: SiteRows, ball: Ball, members: NDArray[np.bool_], keep: NDArray[np.bool_], flip: NDArray[np.bool_]
) -> Statement:
    """Statement over the members, the other rows held in their pieces."""
    held = keep & ~members
    force = -held.astype(float)
    price, constant = ball.price, float(np.count_nonzero(held))
    if flip.size:
        held = flip & ~members
        flipped = float(np.count_nonzero(held))
        force += held
        price = max(price - ball.flip * flipped, 0.0)
        constant += flipped
    return Statement(rows.gather(np.flatnonzero(members)), rows.n_features, rows.combine(force), constant, ball.anchor,
                     price, ball.flip, ball.stiffness, ball.norm, rows.count)
