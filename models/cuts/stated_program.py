"""A program on a cut model as a cone program in the model's units, and the way back from its solution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.cuts.cut_model import CutModel, ModelPoint
from models.cuts.norm_rows import norm_rows
from models.cuts.program_start import Goal, first_duals, on_the_path
from models.site_ambiguity.ball import pull_into_ball
from models.site_ambiguity.epigraph import MixtureRows, mixture_rows
from models.solvers.arrow_rows import ArrowRows
from models.solvers.cone_program import ConeProgram
from models.solvers.solution import Solution

_SMALL_PROGRAM = 25_000
"""Entries of the rows up to which the whole matrix is formed: with so few, calls cost more than products."""
_SMALL = 1e-3
"""Least unit of height: a hinge risk is of order one by nature, however near to 0 the cuts are at some point."""


class HeightRule(Protocol):
    """Another convex way to make one number of the sites' heights than the worst mixture of a ball.

    Nowhere falling in a height. ``tilt`` (D,) is a slope that is added to it; :meth:`rows` states it.
    """

    @property
    def tilt(self) -> FloatArray:
        """Slope (D,)."""

    def rows(self, heights: FloatArray) -> MixtureRows:
        """Rows and cost of the rule; ``heights`` (G,) are those of the start."""


def is_small(model: CutModel) -> bool:
    """Whether calls cost more than products: then the start is a unit away, and active sets are the quicker way."""
    rows, columns = (size + model.site_weights.shape[0] for size in model.slope.shape)
    return bool(rows * columns <= _SMALL_PROGRAM)


@dataclass(frozen=True)
class _Cuts:
    """The cuts and floors in the model's units, by site: heights at the centre are of order one, and so are slopes."""

    order: NDArray[np.intp]
    site: NDArray[np.intp]
    limits: FloatArray
    height: float
    steep: float

    @staticmethod
    def of(model: CutModel, centre: FloatArray) -> _Cuts:
        """Rows j < m are the cuts, m + g the floors; ``order`` says which stands where."""
        n_sites = model.site_weights.shape[0]
        heights = model.offset + model.slope @ centre
        tall = np.abs(heights) + model.norm_weight * float(model.norms(centre[None])[0])
        if model.swing is not None:
            tall = tall + model.swing @ np.abs(centre[: model.n_features])
        height = max(float(tall.max(initial=0.0)), _SMALL)
        steep = np.sqrt(np.einsum("jd,jd->j", model.slope, model.slope).max(initial=0.0))
        # Of cuts that are flat but for rounding, what bends them is the norm or the absolute weights.
        bent = max(float(model.swings.max(initial=0.0)), float(model.norm_weight.max(initial=0.0)))
        steep = max(float(steep), bent) or 1.0
        site = np.concatenate([model.site, np.arange(n_sites)])
        order = np.argsort(site, kind="stable")
        limits = np.concatenate([-heights / height, np.zeros(n_sites)])
        return _Cuts(order, site[order], limits[order], height, steep)

    def wide(self, model: CutModel, of_norm: FloatArray) -> FloatArray:
        """Coefficients (m + G, D + E) of the weights, and ``of_norm`` of the norm's columns, as the rows stand here."""
        (m, d), place = model.slope.shape, np.argsort(self.order)
        wide = np.zeros((self.order.shape[0], d + of_norm.shape[1]))
        wide[place[:m], :d] = model.slope
        wide[:, :d] /= self.steep
        wide[:, d:] = of_norm[self.order]
        return wide


@dataclass(frozen=True)
class StatedProgram:
    """A cone program from a centre (D,), and what leads back from its solution.

    ``level_row``: the row of the level; ``distance``: what squared distances are divided by.
    """

    centre: FloatArray
    program: ConeProgram
    tolerance: float
    cuts: _Cuts
    level_row: int
    distance: float

    @staticmethod
    def of(model: CutModel, centre: FloatArray, goal: Goal, rule: HeightRule | None) -> StatedProgram:
        """The program; rows are the cuts and floors by site, the mixture's, the level, the norm's and the cones."""
        level, n_sites, m, d = goal.level, model.site_weights.shape[0], model.site.shape[0], centre.shape[0]
        cuts = _Cuts.of(model, centre)
        height, steep, order = cuts.height, cuts.steep, cuts.order
        length = height / steep
        begin, (room, tolerance) = goal.begin / length, goal.in_units(height)
        # The squared distance in such units that the price of the level is of order one, as those of the cuts are.
        distance = float(begin @ begin) * height / goal.drop if begin.any() else 1.0
        norm = norm_rows(model, centre / length, steep, begin, room)
        wide, limits = cuts.wide(model, norm.weights), cuts.limits
        k = wide.shape[1]
        below = wide @ np.concatenate([begin, norm.start[: k - d]]) - limits
        raised, of_cuts = _above(below, cuts.site, room), None
        if goal.drop > 0:
            mean = goal.mean_product(height, below.size)
            raised, of_cuts = on_the_path(below, cuts.site, model.site_weights, mean)
        mixed = mixture_rows(model.site_weights, model.mixture, raised) if rule is None else rule.rows(raised)
        tilt = np.zeros(d) if rule is None else rule.tilt
        apart = norm.start.shape[0] - (k - d)
        width = k + n_sites + apart + mixed.start.shape[0]
        of_mixture = np.r_[k : k + n_sites, k + n_sites + apart : width]
        cost = np.zeros(width)
        cost[of_mixture] = mixed.cost
        cost[:d] = tilt / steep
        curvature, linear, ends = np.zeros(width), cost, np.zeros(0)
        if level is not None:
            curvature[:d], linear = 1.0 / distance, np.zeros(width)
            ends = np.array([(level - float(tilt @ centre)) / height])
        level_row = m + n_sites + mixed.rows.shape[0]
        others = np.zeros((mixed.rows.shape[0] + ends.shape[0] + norm.rows.shape[0] + mixed.cone.shape[0], width))
        first, last = mixed.rows.shape[0] + ends.shape[0], others.shape[0] - mixed.cone.shape[0]
        others[: mixed.rows.shape[0], of_mixture] = mixed.rows
        others[mixed.rows.shape[0] : first] = cost
        others[first:last, :k] = norm.rows[:, :k]
        others[first:last, k + n_sites : k + n_sites + apart] = norm.rows[:, k:]
        others[last:, of_mixture] = mixed.cone
        of_mixed, of_cone = np.zeros(mixed.rows.shape[0]), np.zeros(mixed.cone.shape[0])
        limits = np.concatenate([limits, of_mixed, ends, norm.limits, of_cone])
        cones = tuple(size for size in (norm.cone, mixed.cone.shape[0]) if size)
        start = np.concatenate([begin, norm.start[: k - d], raised, norm.start[k - d :], mixed.start])
        rows = ArrowRows(wide, cuts.site, others, cones)
        held = rows.dense() if rows.shape[0] * width <= _SMALL_PROGRAM else rows
        known = None if of_cuts is None else first_duals(model, mixed, norm, order, ends.shape[0], of_cuts)
        slack = goal.least_slack(height, below.size)
        program = ConeProgram(curvature, linear, held, limits, cones, start, known, slack)
        return StatedProgram(centre, program, tolerance, cuts, level_row, distance)

    def point(self, model: CutModel, goal: Goal, rule: HeightRule | None, solution: Solution) -> ModelPoint:
        """What a solution of the program is on the model."""
        (m, d), n_sites, level = model.slope.shape, model.site_weights.shape[0], goal.level
        height, length = self.cuts.height, self.cuts.height / self.cuts.steep
        duals = np.empty(m + n_sites)
        duals[self.cuts.order] = solution.multipliers[: m + n_sites]
        price = 1.0 if level is None else float(solution.multipliers[self.level_row])
        multipliers = duals[:m] / price if price > 0 else np.zeros(m)
        sums = np.asarray(np.bincount(model.site, weights=duals[:m], minlength=n_sites) + duals[m:], dtype=np.float64)
        return ModelPoint(
            self.centre + length * solution.point[:d],
            multipliers,
            0.0 if level is None else self.distance * price * length * length / height,
            pull_into_ball(sums, model.site_weights, model.mixture) if rule is None else sums,
        )


def _above(below: FloatArray, site: NDArray[np.intp], room: float) -> FloatArray:
    """Heights ``room`` above what the rows, sorted by site, hold them to."""
    return np.asarray(np.maximum.reduceat(below, np.flatnonzero(np.diff(site, prepend=-1))) + room)
