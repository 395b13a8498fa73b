r"""The minimum of a cut model and the projection on its level sets, as cone programs in (w, heights, norm).

- ``minimise``: the least of the model, for the lower bound;
- ``project``: the nearest point to a centre at which the model is at or below a level, for the next point to ask
  (Lemarechal, Nemirovskii, Nesterov 1995).

What they return is never trusted as a bound: see ``models.cuts.lower_bound``. Of many cuts a few count, so both begin
with a working set and take in what its solution violates (``models.cuts.working_set``). Each height enters the cuts of
its own site alone, so the solver eliminates them (``models.solvers.arrow_rows``). Where there are fewer cuts than
features and the norm is Euclidean, the solution lies in the span of the slopes and the centre: the program is stated in
an orthonormal basis of that, which is the side with the smaller factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.cuts.cut_model import CutModel, ModelPoint
from models.cuts.norm_rows import norm_rows
from models.cuts.program_start import Goal, first_duals, on_the_path
from models.cuts.working_set import distinct_cuts, first_cuts, missed_cuts
from models.geometry.norms import DUAL_NORM
from models.site_ambiguity.ball import pull_into_ball
from models.site_ambiguity.epigraph import MixtureRows, mixture_rows
from models.solvers.active_set import solve_by_active_sets
from models.solvers.arrow_rows import ArrowRows
from models.solvers.conic_interior_point import ConeProgram, solve_cone_program
from models.solvers.solution import Solution

_TIGHT, _ROUGH = 1e-12, 1e-9
"""Tolerances: a bound wants all that there is; where to ask next does not."""
_SMALL_PROGRAM = 25_000
"""Entries of the rows up to which the whole matrix is formed: with so few, calls cost more than products."""
_SMALL = 1e-3
"""Least unit of height: a hinge risk is of order one by nature, however near to 0 the cuts are at some point."""
_SPANNED = 0.6
"""Share of the features below which the span of the slopes is worth its basis."""
_KEPT = 3
"""Cuts of the working set of a minimum, at least, over the number of columns: a vertex has as many as columns.

Each minimum has its own, so more of the earlier ones count again than in a projection, which stays near its centre."""
_SWEEPS, _HASTY = 30, 5
"""Solutions after which all cuts are taken in; after which one is good enough where not all digits are wanted.

A cut that is left out then counts in the next program, and no bound rests on its absence."""


class HeightRule(Protocol):
    """Another convex way to make one number of the sites' heights than the worst mixture of a ball.

    Nowhere falling in a height. ``tilt`` (D,) is a slope that is added to it; :meth:`rows` states it.
    """

    @property
    def tilt(self) -> FloatArray:
        """Slope (D,)."""

    def rows(self, heights: FloatArray) -> MixtureRows:
        """Rows and cost of the rule; ``heights`` (G,) are those of the start."""


def minimise(model: CutModel, centre: FloatArray, rule: HeightRule | None = None, within: float = 0.0) -> ModelPoint:
    """Minimiser of the model, found from ``centre``, with multipliers.

    With a ``rule``: of the rule of the sites' models; the mixture is then the sums of the multipliers, as they are.
    ``within``: how far above its value there the model may be, in the units of the risk, by cuts that were left out.
    """
    goal = Goal.minimum(centre, within if rule is None else 0.0, _TIGHT)
    least = _KEPT * (centre.shape[0] + model.site_weights.shape[0])
    return _on_working_set(model, centre, rule, within, least, lambda few: _solve(few, centre, goal, rule))


def project(
    model: CutModel, centre: FloatArray, level: float, rule: HeightRule | None = None, within: float = 0.0,
    towards: FloatArray | None = None,
) -> ModelPoint:
    """Nearest point to ``centre`` at which the model (or the rule of the sites' models) is at or below ``level``.

    To some ten digits of the cuts: it bounds nothing, and the last digits of a cut are those of the features' unit.
    ``within``: as for :func:`minimise`. ``towards`` (D,): a point below the level, the model's minimiser: the way there
    meets the level at a point to start from, and tells the unit of the distance. It changes no solution.
    """
    model = model.without_last_digits()
    goal = Goal(level, np.zeros_like(centre), 0.0, _ROUGH)
    if towards is not None and rule is None:
        goal = goal.on_the_way(model, centre, towards)
    return _on_working_set(model, centre, rule, within, 0, lambda few: _solve(few, centre, goal, rule))


def _on_working_set(
    model: CutModel, centre: FloatArray, rule: HeightRule | None, within: float, least: int,
    solve: Callable[[CutModel], ModelPoint],
) -> ModelPoint:
    """Solution of a program over all cuts, from those that count."""
    distinct = distinct_cuts(model)
    chosen = None if rule is not None else first_cuts(model, centre, distinct, least)
    for sweep in range(_SWEEPS):
        if chosen is None:
            break
        found = solve(model.of_cuts(chosen))
        missed, near = missed_cuts(model, found.point, chosen, distinct, within)
        if near or within > 0 and sweep + 1 >= _HASTY:
            return replace(found, multipliers=_spread(found.multipliers, chosen), missed=missed)
        chosen = chosen | missed
    found = solve(model.of_cuts(distinct))
    return replace(found, multipliers=_spread(found.multipliers, distinct))


def _spread(multipliers: FloatArray, chosen: NDArray[np.bool_]) -> FloatArray:
    """Multipliers (m,) of all cuts from those of the chosen ones."""
    spread = np.zeros(chosen.shape[0])
    spread[chosen] = multipliers
    return spread


def _solve(model: CutModel, centre: FloatArray, goal: Goal, rule: HeightRule | None) -> ModelPoint:
    """Solution in the span of the slopes and the centre where that is smaller, else over all weights."""
    p, spanning = model.n_features, model.site.shape[0] + 1
    flat = model.swing is None and model.feature_scale is None and rule is None
    if not flat or spanning > _SPANNED * p or (model.has_norm and DUAL_NORM[model.transport_norm] != "l2"):
        return _solve_whole(model, centre, goal, rule)
    basis = np.linalg.qr(np.column_stack([model.slope[:, :p].T, centre[:p]]))[0]
    slope = np.hstack([model.slope[:, :p] @ basis, model.slope[:, p:]])
    inside = np.concatenate([basis.T @ centre[:p], centre[p:]])
    spanned = replace(model, slope=slope, n_features=basis.shape[1])
    begin = np.concatenate([basis.T @ goal.begin[:p], goal.begin[p:]])
    found = _solve_whole(spanned, inside, replace(goal, begin=begin), rule)
    moved = found.point[: basis.shape[1]] - inside[: basis.shape[1]]
    point = np.concatenate([centre[:p] + basis @ moved, found.point[basis.shape[1] :]])
    return replace(found, point=point)


@dataclass(frozen=True)
class _Cuts:
    """The cuts and floors in the model's units, by site: heights at the centre are of order one, and so are slopes."""

    order: NDArray[np.intp]
    site: NDArray[np.intp]
    slope: FloatArray
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
        steep = float(np.sqrt(np.einsum("jd,jd->j", model.slope, model.slope).max(initial=0.0))) or 1.0
        site = np.concatenate([model.site, np.arange(n_sites)])
        order = np.argsort(site, kind="stable")
        slope = np.vstack([model.slope / steep, np.zeros((n_sites, centre.shape[0]))])
        limits = np.concatenate([-heights / height, np.zeros(n_sites)])
        return _Cuts(order, site[order], slope, limits, height, steep)


def _solve_whole(model: CutModel, centre: FloatArray, goal: Goal, rule: HeightRule | None) -> ModelPoint:
    """Solution of a small program by active sets where these find it, else by the interior point."""
    n_sites = model.site_weights.shape[0]
    if (model.site.shape[0] + n_sites) * (centre.shape[0] + n_sites) <= _SMALL_PROGRAM:
        afar = _Stated.of(model, centre, goal.from_afar(), rule)
        tolerance = afar.tolerance if goal.level is not None else goal.in_units(afar.cuts.height)[1]
        if rule is None and (exact := solve_by_active_sets(afar.program, tolerance)) is not None:
            return afar.point(model, centre, goal, rule, exact)
        if goal.level is not None or goal.drop == 0:
            return afar.point(model, centre, goal, rule, solve_cone_program(afar.program, tolerance))
    stated = _Stated.of(model, centre, goal, rule)
    return stated.point(model, centre, goal, rule, solve_cone_program(stated.program, stated.tolerance))


@dataclass(frozen=True)
class _Stated:
    """A cone program in the model's units, and what leads back from its solution."""

    program: ConeProgram
    tolerance: float
    cuts: _Cuts
    level_row: int
    distance: float

    @staticmethod
    def of(model: CutModel, centre: FloatArray, goal: Goal, rule: HeightRule | None) -> _Stated:
        """The program; rows are the cuts and floors by site, the mixture's, the level, the norm's and the cones."""
        level, n_sites, m, d = goal.level, model.site_weights.shape[0], model.site.shape[0], centre.shape[0]
        cuts = _Cuts.of(model, centre)
        height, steep, order = cuts.height, cuts.steep, cuts.order
        length = height / steep
        begin, (room, tolerance) = goal.begin / length, goal.in_units(height)
        # The squared distance in such units that the price of the level is of order one, as those of the cuts are.
        distance = float(begin @ begin) * height / goal.drop if begin.any() else 1.0
        norm = norm_rows(model, centre / length, steep, begin, room)
        wide = np.hstack([cuts.slope, norm.weights])[order]
        limits = cuts.limits[order]
        k = wide.shape[1]
        below = wide @ np.concatenate([begin, norm.start[: k - d]]) - limits
        raised, of_cuts = _above(below, cuts.site, room), None
        if level is not None and goal.drop > 0:
            raised, of_cuts = on_the_path(below, cuts.site, model.site_weights, goal.drop / height / below.size)
        mixed = mixture_rows(model.site_weights, model.mixture, raised) if rule is None else rule.rows(raised)
        tilt = np.zeros(d) if rule is None else rule.tilt
        apart = norm.start.shape[0] - (k - d)
        width = k + n_sites + apart + mixed.start.shape[0]
        of_norm = np.r_[0:k, k + n_sites : k + n_sites + apart]
        of_mixture = np.r_[k : k + n_sites, k + n_sites + apart : width]
        cost = np.zeros(width)
        cost[of_mixture] = mixed.cost
        cost[:d] = tilt / steep
        curvature, linear, ends = np.zeros(width), cost, np.zeros(0)
        blocks = [_wide(mixed.rows, width, of_mixture)]
        if level is not None:
            curvature[:d], linear = 1.0 / distance, np.zeros(width)
            blocks.append(cost[None])
            ends = np.array([(level - float(tilt @ centre)) / height])
        level_row = m + n_sites + mixed.rows.shape[0]
        blocks += [_wide(norm.rows, width, of_norm), _wide(mixed.cone, width, of_mixture)]
        limits = np.concatenate([limits, np.zeros(mixed.rows.shape[0]), ends, norm.limits, np.zeros(mixed.cone.shape[0])])
        cones = tuple(size for size in (norm.cone, mixed.cone.shape[0]) if size)
        start = np.concatenate([begin, norm.start[: k - d], raised, norm.start[k - d :], mixed.start])
        rows = ArrowRows(wide, cuts.site, np.vstack(blocks), cones)
        held = rows.dense() if rows.shape[0] * width <= _SMALL_PROGRAM else rows
        known = first_duals(model, cuts.site, mixed, norm, order, ends.shape[0], of_cuts) if goal.drop > 0 else None
        program = ConeProgram(curvature, linear, held, limits, cones, start, known, goal.least_slack(height, below.size))
        return _Stated(program, tolerance, cuts, level_row, distance)

    def point(
        self, model: CutModel, centre: FloatArray, goal: Goal, rule: HeightRule | None, solution: Solution
    ) -> ModelPoint:
        """What a solution of the program is on the model."""
        (m, d), n_sites, level = model.slope.shape, model.site_weights.shape[0], goal.level
        height, length = self.cuts.height, self.cuts.height / self.cuts.steep
        duals = np.empty(m + n_sites)
        duals[self.cuts.order] = solution.multipliers[: m + n_sites]
        price = 1.0 if level is None else float(solution.multipliers[self.level_row])
        multipliers = duals[:m] / price if price > 0 else np.zeros(m)
        sums = np.asarray(np.bincount(model.site, weights=duals[:m], minlength=n_sites) + duals[m:], dtype=np.float64)
        return ModelPoint(
            centre + length * solution.point[:d],
            multipliers,
            0.0 if level is None else self.distance * price * length * length / height,
            pull_into_ball(sums, model.site_weights, model.mixture) if rule is None else sums,
        )


def _wide(rows: FloatArray, width: int, columns: NDArray[np.intp]) -> FloatArray:
    """Rows over some of the columns as rows over all."""
    wide = np.zeros((rows.shape[0], width))
    wide[:, columns] = rows
    return wide


def _above(below: FloatArray, site: NDArray[np.intp], room: float) -> FloatArray:
    """Heights ``room`` above what the rows, sorted by site, hold them to."""
    return np.asarray(np.maximum.reduceat(below, np.flatnonzero(np.diff(site, prepend=-1))) + room)
