r"""Exact worst-case risk of a piecewise linear regression loss when features, and targets perhaps, live in a box.

    r(w) = min_{lam >= least} radius lam + mean_i max_k f_ik(lam),
    f_ik(lam) = s_k z_i + h_k + gain_ik(lam) + e_ik max(|s_k| - kappa lam, 0)

with the pieces ``s_k z + h_k`` of the loss, ``z_i = <w, x_i> + b - y_i``, ``gain_ik`` what moving the features within
the box adds (``box_transport`` at the multiplier ``lam / |s_k|``, times ``|s_k|``), and ``e_ik`` the distance from the
target to the end of its range in the direction that raises the piece. Where a piece has no such end, moving targets is
worth ``|s_k| / kappa`` a unit of radius without limit, and the price has that least value. Source: DRFL Corollaries B.2
and B.3 on a box, multipliers eliminated in closed form; the price is found by ``models.worst_case.dual_search``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, ProblemError
from models.geometry.norms import dual_norm
from models.geometry.supports import BoxSupport
from models.losses.base import Line
from models.problem import SiteProblem
from models.worst_case.box_transport import Gains, both_ways, make_gains, move_sizes
from models.worst_case.dual_search import Answer, Asked, Total, search_multiplier
from models.worst_case.saddle_point import AdversaryAction, RiskEvaluation

_ROUNDING = 8 * float(np.finfo(np.float64).eps)  # share of the terms' sizes that a sum may be off by


def evaluate_box_regression(weights: FloatArray, intercept: float, problem: SiteProblem) -> RiskEvaluation:
    """Worst-case risk at a plane ``weights`` (P,) with its cut."""
    rows = _rows(weights, intercept, problem)
    count, spec = problem.labels.shape[0], problem.spec
    top, least = rows.dearest(), rows.least_multiplier()
    unmoved = Asked(top, rows.unmoved())
    if spec.radius == 0 or least >= top:
        added = spec.radius * least if spec.radius > 0 else 0.0
        return rows.evaluated((unmoved.answer.action(),), float(unmoved.answer.value.mean()) + added, top)
    cheap = Asked(least, rows.at(least))
    budget = count * spec.radius
    if float(cheap.answer.spent.sum()) <= budget:
        return rows.evaluated((cheap.answer.action(),), float(cheap.answer.value.mean()) + spec.radius * least, least)
    tolerance = _ROUNDING * float(np.abs(rows.residuals).sum() + unmoved.answer.value.sum() + cheap.answer.value.sum())
    found = search_multiplier(rows.at, cheap, unmoved, budget, Total(), tolerance)
    return rows.evaluated(found.actions(), found.value / count, found.multiplier)


@dataclass(frozen=True)
class _Piece:
    """One piece of the loss: what moving gains, None where nothing does, and how far the target is from its end, (N,).

    ``endless``: the target's range has no end on that side; then ``target_clearance`` is 0.
    """

    line: Line
    gains: Gains | None
    clearance: FloatArray
    target_clearance: FloatArray
    endless: bool


@dataclass(frozen=True)
class _Rows:
    """One site's rows and the plane that is judged; ``moved`` (P,) says which features have a weight at all.

    In the answers ``act`` is the number of the piece.
    """

    problem: SiteProblem
    support: BoxSupport
    weights: FloatArray
    residuals: FloatArray
    moved: NDArray[np.bool_]
    pieces: tuple[_Piece, ...]

    def least_multiplier(self) -> float:
        """Price below which moving some target without end would pay."""
        steep = [abs(piece.line.slope) for piece in self.pieces if piece.endless]
        return max(steep, default=0.0) / self.problem.spec.label_flip_cost

    def dearest(self) -> float:
        """Price from which on nothing is moved."""
        spec = self.problem.spec
        norm = dual_norm(self.weights, spec.transport_norm)
        return max(abs(piece.line.slope) for piece in self.pieces) * max(norm, 1.0 / spec.label_flip_cost)

    def unmoved(self) -> Answer:
        """The rows' best pieces where nothing is moved."""
        heights = np.stack([piece.line.slope * self.residuals + piece.line.height for piece in self.pieces])
        best = heights.argmax(axis=0)
        nothing = np.zeros(best.shape[0])
        # For the transport norm l1 the reach is a weight: above the largest, no feature is moved.
        extent = np.full(best.shape[0], np.inf if self.problem.spec.transport_norm == "l1" else 0.0)
        return Answer(self.problem.weigh(heights.max(axis=0)), nothing, best.astype(np.int8), extent)

    def at(self, multiplier: float) -> Answer:
        """The rows' best pieces at a price, and what they move."""
        value, spent, act, extent = self._piece_at(0, multiplier)
        for number in range(1, len(self.pieces)):
            other = self._piece_at(number, multiplier)
            better = other.value > value
            value = np.where(better, other.value, value)
            spent = np.where(better, other.spent, spent)
            act = np.where(better, other.act, act)
            extent = np.where(better, other.extent, extent)
        return Answer(value, spent, act, extent).weighed(self.problem.row_weights)

    def _piece_at(self, number: int, multiplier: float) -> Answer:
        piece, cost = self.pieces[number], self.problem.spec.label_flip_cost
        slope, height = piece.line.slope, piece.line.height
        value = slope * self.residuals + height
        act = np.full(value.shape, number, dtype=np.int8)
        spent = extent = np.zeros_like(value)
        if piece.gains is not None:
            gain, spent, extent = piece.gains.at(multiplier / abs(slope))
            value = value + abs(slope) * gain
        pays = abs(slope) - cost * multiplier if math.isfinite(cost) else 0.0
        if slope != 0 and pays > 0:
            value = value + pays * piece.target_clearance
            spent = spent + cost * piece.target_clearance
        return Answer(value, spent, act, extent)

    def evaluated(self, actions: tuple[AdversaryAction, ...], value: float, multiplier: float) -> RiskEvaluation:
        """The expected loss of the worst-case distribution as a function of the plane."""
        x = self.problem.features
        gradient, intercept_slope, ways = np.zeros(x.shape[1]), 0.0, np.zeros((2, x.shape[1]))
        coefficients = np.zeros(x.shape[0])
        for action in actions:
            slopes = self.problem.weigh(np.array([piece.line.slope for piece in self.pieces])[action.act])
            gradient += action.share * (slopes @ x)
            coefficients += action.share / x.shape[0] * slopes
            intercept_slope += action.share * float(slopes.sum())
            for number, piece in enumerate(self.pieces):
                rows = np.flatnonzero(action.act == number)
                if piece.gains is not None and rows.size:
                    ways += action.share * self._moved(piece, rows, action.extents[rows])
        above, below = ways / x.shape[0]
        slope = gradient / x.shape[0] + (above - below) / 2
        return RiskEvaluation(
            value, multiplier, slope, intercept_slope / x.shape[0], 0.0, swing=(above + below) / 2, rows=coefficients
        )

    def _moved(self, piece: _Piece, rows: NDArray[np.intp], extent: FloatArray) -> FloatArray:
        """Sums (2, P) of what moving some rows of a piece adds at weights above 0 and below 0."""
        spec, x, steep = self.problem.spec, self.problem.features[rows], abs(piece.line.slope)
        far = extent[:, None]
        if spec.transport_norm != "linf":
            far = np.zeros_like(x)
            far[:, self.moved] = move_sizes(
                piece.clearance[rows], np.abs(self.weights[self.moved]), spec.transport_norm, extent
            )
        sides = np.full(rows.size, -piece.line.slope)
        return both_ways(x, self.support, sides, far, steep * self.problem.counts[rows])


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
        clearance = rise if line.slope > 0 else fall
        end = problem.labels - support.target_low if line.slope > 0 else support.target_high - problem.labels
        gains = None if line.slope == 0 or not moved.any() else make_gains(clearance, slope, spec.transport_norm)
        endless = line.slope != 0 and not np.isfinite(end).all()
        pieces.append(_Piece(line, gains, clearance, np.zeros_like(end) if endless else np.maximum(end, 0.0), endless))
    return _Rows(problem, support, weights, x @ weights + intercept - problem.labels, moved, tuple(pieces))
