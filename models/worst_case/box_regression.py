r"""Exact worst-case risk of a piecewise linear regression loss when features, and targets perhaps, live in a box.

    r(w) = min_{lam >= least} radius lam + mean_i max_k f_ik(lam),
    f_ik(lam) = s_k z_i + h_k + gain_ik(lam) + e_ik max(|s_k| - kappa lam, 0)

with the pieces ``s_k z + h_k`` of the loss, ``z_i = <w, x_i> + b - y_i``, ``gain_ik`` what moving the features within
the box adds (``models.box_gains`` at the price ``lam / |s_k|``, times ``|s_k|``), and ``e_ik`` the distance from the
target to the end of its range in the direction that raises the piece. Where a piece has no such end, moving targets is
worth ``|s_k| / kappa`` a unit of radius without limit, and the price has that least value. Source: DRFL Corollaries B.2
and B.3 on a box, multipliers eliminated in closed form; the price is found by ``models.price_search``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.ambiguity import dual_norm
from models.basics import FloatArray, ProblemError
from models.box_gains import Gains, make_gains, move_sizes
from models.losses.base import Line
from models.price_search import Answer, Asked, Total, search_price
from models.problem import BoxSupport, SiteProblem
from models.saddle import Judged

_ROUNDING = 8 * float(np.finfo(np.float64).eps)


def judge_box_regression(weights: FloatArray, intercept: float, problem: SiteProblem) -> Judged:
    """Worst-case risk at a plane ``weights`` (P,) with its cut, a plane."""
    rows = _rows(weights, intercept, problem)
    count, spec = problem.labels.shape[0], problem.spec
    top, least = rows.dearest(), rows.least_price()
    stay = Asked(top, rows.stay())
    if spec.radius == 0 or least >= top:
        added = spec.radius * least if spec.radius > 0 else 0.0
        return rows.judged(((1.0, stay.answer),), float(stay.answer.value.mean()) + added, top)
    cheap = Asked(least, rows.at(least))
    budget = count * spec.radius
    if float(cheap.answer.spent.sum()) <= budget:
        return rows.judged(((1.0, cheap.answer),), float(cheap.answer.value.mean()) + spec.radius * least, least)
    tolerance = _ROUNDING * float(np.abs(rows.residuals).sum() + stay.answer.value.sum() + cheap.answer.value.sum())
    left, right, crossing, value = search_price(rows.at, cheap, stay, budget, Total(), tolerance)
    plans = tuple((share, _chosen(over, left.answer, right.answer)) for share, over in crossing.sets())
    return rows.judged(plans, value / count, crossing.price)


@dataclass(frozen=True)
class _Piece:
    """One piece of the loss: what moving gains, None where nothing does, and how far the target is from its end, (N,).

    ``endless``: the target's range has no end on that side; then ``target_room`` is 0.
    """

    line: Line
    gains: Gains | None
    room: FloatArray
    target_room: FloatArray
    endless: bool


@dataclass(frozen=True)
class _Rows:
    """One site's rows and the plane that is judged; ``moved`` (P,) says which features have a weight at all.

    In the answers ``act`` is the number of the piece.
    """

    problem: SiteProblem
    weights: FloatArray
    residuals: FloatArray
    moved: NDArray[np.bool_]
    pieces: tuple[_Piece, ...]

    def least_price(self) -> float:
        """Price below which moving some target without end would pay."""
        steep = [abs(piece.line.slope) for piece in self.pieces if piece.endless]
        return max(steep, default=0.0) / self.problem.spec.label_flip_cost

    def dearest(self) -> float:
        """Price from which on nothing is moved."""
        spec = self.problem.spec
        norm = dual_norm(self.weights, spec.transport_norm)
        return max(abs(piece.line.slope) for piece in self.pieces) * max(norm, 1.0 / spec.label_flip_cost)

    def stay(self) -> Answer:
        """The rows' best pieces where nothing is moved."""
        heights = np.stack([piece.line.slope * self.residuals + piece.line.height for piece in self.pieces])
        best = heights.argmax(axis=0)
        nothing = np.zeros(best.shape[0])
        # For the transport norm l1 the reach is a weight: above the largest, no feature is moved.
        reach = np.full(best.shape[0], np.inf if self.problem.spec.transport_norm == "l1" else 0.0)
        return Answer(heights.max(axis=0), nothing, best.astype(np.int8), reach)

    def at(self, price: float) -> Answer:
        """The rows' best pieces at a price, and what they move."""
        value, spent, act, reach = self._piece_at(0, price)
        for number in range(1, len(self.pieces)):
            other = self._piece_at(number, price)
            better = other.value > value
            value = np.where(better, other.value, value)
            spent = np.where(better, other.spent, spent)
            act = np.where(better, other.act, act)
            reach = np.where(better, other.reach, reach)
        return Answer(value, spent, act, reach)

    def _piece_at(self, number: int, price: float) -> Answer:
        piece, cost = self.pieces[number], self.problem.spec.label_flip_cost
        slope, height = piece.line.slope, piece.line.height
        value = slope * self.residuals + height
        act = np.full(value.shape, number, dtype=np.int8)
        spent = reach = np.zeros_like(value)
        if piece.gains is not None:
            gain, spent, reach = piece.gains.at(price / abs(slope))
            value = value + abs(slope) * gain
        pays = abs(slope) - cost * price if math.isfinite(cost) else 0.0
        if slope != 0 and pays > 0:
            value = value + pays * piece.target_room
            spent = spent + cost * piece.target_room
        return Answer(value, spent, act, reach)

    def judged(self, plans: tuple[tuple[float, Answer], ...], value: float, price: float) -> Judged:
        """The expected loss of the worst-case distribution as a function of the plane."""
        x, norm = self.problem.features, self.problem.spec.transport_norm
        gradient, flat = np.zeros(x.shape[1]), 0.0
        for share, answer in plans:
            slopes = np.array([piece.line.slope for piece in self.pieces])[answer.act]
            gradient += share * (slopes @ x)
            flat += share * float(slopes.sum())
            for number, piece in enumerate(self.pieces):
                rows = np.flatnonzero(answer.act == number)
                if piece.gains is None or rows.size == 0:
                    continue
                sizes = move_sizes(piece.room[rows], np.abs(self.weights[self.moved]), norm, answer.reach[rows])
                harm = abs(piece.line.slope) * np.sign(self.weights[self.moved])
                gradient[self.moved] += share * harm * sizes.sum(axis=0)
        count = x.shape[0]
        return Judged(value, price, gradient / count, flat / count, 0.0)


def _rows(weights: FloatArray, intercept: float, problem: SiteProblem) -> _Rows:
    spec, x = problem.spec, problem.features
    support, lines = spec.support, spec.loss.lines
    if not isinstance(support, BoxSupport) or lines is None:
        raise ProblemError(f"this is for a piecewise linear loss on a box, the loss is {spec.loss.name}")
    moved = weights != 0
    falls, slope = weights[moved] < 0, np.abs(weights[moved])
    rise = np.maximum(np.where(falls, x[:, moved] - support.low[moved], support.high[moved] - x[:, moved]), 0.0)
    fall = np.maximum((support.high - support.low)[moved] - rise, 0.0)
    pieces = []
    for line in lines:
        # A rising piece gains where the prediction rises and the target falls.
        room = rise if line.slope > 0 else fall
        end = problem.labels - support.target_low if line.slope > 0 else support.target_high - problem.labels
        gains = None if line.slope == 0 or not moved.any() else make_gains(room, slope, spec.transport_norm)
        endless = line.slope != 0 and not np.isfinite(end).all()
        pieces.append(_Piece(line, gains, room, np.zeros_like(end) if endless else np.maximum(end, 0.0), endless))
    return _Rows(problem, weights, x @ weights + intercept - problem.labels, moved, tuple(pieces))


def _chosen(over: NDArray[np.bool_], left: Answer, right: Answer) -> Answer:
    """Every row's right line where it has gone over, else its left one."""
    return Answer(
        np.where(over, right.value, left.value),
        np.where(over, right.spent, left.spent),
        np.where(over, right.act, left.act),
        np.where(over, right.reach, left.reach),
    )
