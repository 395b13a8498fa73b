r"""The minimum of a cut model and the projection on its level sets, as cone programs in (w, heights, norm).

- ``minimise``: the least of the model, for the lower bound;
- ``project``: the nearest point to a centre at which the model is at or below a level, for the next point to ask
  (Lemarechal, Nemirovskii, Nesterov 1995).

What they return is never trusted as a bound: see ``models.cuts.lower_bound``. Of many cuts a few count, so both begin
with a working set and take in what its solution violates (``models.cuts.working_set``). Each height enters the cuts of
its own site alone, so the solver eliminates them (``models.solvers.arrow_rows``). Where there are fewer cuts than
features and the norm is Euclidean, the solution lies in the span of the slopes and the centre: the program is stated in
an orthonormal basis of that, which is the side with the smaller factor. Small programs go to an active set method
first, whose solution counts where it meets all conditions of optimality (``models.solvers.active_set``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.cuts.cut_model import CutModel, ModelPoint
from models.cuts.program_start import Goal
from models.cuts.working_set import first_cuts, missed_cuts
from models.geometry.norms import DUAL_NORM
from models.solvers.solution import SolverStatus

if TYPE_CHECKING:
    from models.cuts.stated_program import HeightRule

_TIGHT, _ROUGH = 1e-12, 1e-9
"""Tolerances: a bound wants all that there is; where to ask next does not."""
_FAR = 1e-6
"""Way down to a level, over the unit of the heights, from which on a projection goes to active sets.

Nearer the last digits decide, and the vertex that these choose may be next to a point that was asked before, which a
plant refuses to answer."""
_SPANNED = 0.6
"""Share of the features below which the span of the slopes is worth its basis."""
_KEPT_LOW, _KEPT_NEAR, _WIDE = 3.0, 2.75, 256
"""Cuts of the working set of a minimum, and of a projection, at least, over the number of columns; the latter from so
many weights on, where a second solution is dearer than the cuts that it would have to take in.

A vertex has as many as columns. Each minimum has its own, so more of the earlier ones count again than in a projection,
which stays near its centre."""
_SWEEPS, _HASTY = 30, 5
"""Solutions after which all cuts are taken in; after which one is good enough where not all digits are wanted.

A cut that is left out then counts in the next program, and no bound rests on its absence."""


def minimise(model: CutModel, centre: FloatArray, rule: HeightRule | None = None, within: float = 0.0) -> ModelPoint:
    """Minimiser of the model, found from ``centre``, with multipliers.

    With a ``rule``: of the rule of the sites' models; the mixture is then the sums of the multipliers, as they are.
    ``within``: how far above its value there the model may be, in the units of the risk, by cuts that were left out.
    """
    goal = Goal.minimum(centre, within if rule is None else 0.0, _TIGHT)
    least = _KEPT_LOW * (centre.shape[0] + model.site_weights.shape[0])
    return _on_working_set(model, centre, rule, within, int(least), lambda few: _solve(few, centre, goal, rule))


def project(
    model: CutModel, centre: FloatArray, level: float, rule: HeightRule | None = None, within: float = 0.0,
    towards: FloatArray | None = None,
) -> ModelPoint:
    """Nearest point to ``centre`` at which the model (or the rule of the sites' models) is at or below ``level``.

    To some ten digits of the cuts: it bounds nothing, and the last digits of a cut are those of the features' unit.
    ``within``: as for :func:`minimise`. ``towards`` (D,): a point below the level, the model's minimiser: the way there
    meets the level at a point to start from, and tells the unit of the distance. It changes no solution.
    """
    model = model.without_last_digits
    goal = Goal(level, np.zeros_like(centre), 0.0, _ROUGH)
    if towards is not None and rule is None:
        goal = goal.on_the_way(model, centre, towards)
    least = _KEPT_NEAR * (centre.shape[0] + model.site_weights.shape[0]) if centre.shape[0] >= _WIDE else 0.0
    return _on_working_set(model, centre, rule, within, int(least), lambda few: _solve(few, centre, goal, rule))


def _on_working_set(
    model: CutModel, centre: FloatArray, rule: HeightRule | None, within: float, least: int,
    solve: Callable[[CutModel], ModelPoint],
) -> ModelPoint:
    """Solution of a program over all cuts, from those that count."""
    distinct = model.distinct
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


def _solve_whole(model: CutModel, centre: FloatArray, goal: Goal, rule: HeightRule | None) -> ModelPoint:
    """Solution of the program; of a small one by active sets where these find it.

    A small minimum with a cone and more columns than active sets take is begun near, and wants all digits, as one from
    afar does. A minimum that was begun near and not found, because it is not near, is begun again from afar.
    Not by active sets: a minimum without the norm. What bounds the weights there are the multipliers around it
    (``models.cuts.lower_bound``), of which a vertex has few.
    """
    # A server's solvers, with SciPy: a plant loads the methods and solves no such program.
    from models.cuts.stated_program import StatedProgram, is_small
    from models.solvers.active_set import FEW_COLUMNS, solve_by_active_sets
    from models.solvers.conic_interior_point import solve_cone_program

    small, has_cone = is_small(model), model.has_norm and DUAL_NORM[model.transport_norm] == "l2"
    columns = model.slope.shape[1] + model.site_weights.shape[0] + 1  # weights, heights, the norm
    near = goal.level is None and goal.drop > 0 and (not small or has_cone and columns > FEW_COLUMNS)
    begun = goal.from_afar() if small and not near else goal.with_all_digits() if small else goal
    stated = StatedProgram.of(model, centre, begun, rule)
    solution, fit = None, model.has_norm if goal.level is None else goal.drop > _FAR * stated.cuts.height
    if small and fit and rule is None:
        enough = stated.tolerance if goal.level is not None else goal.fine_tolerance(stated.cuts.height)
        solution = solve_by_active_sets(stated.program, enough)
    solution = solution or solve_cone_program(stated.program, stated.tolerance)
    if near and solution.status is not SolverStatus.SOLVED:
        stated = StatedProgram.of(model, centre, goal.from_afar(), rule)
        solution = solve_cone_program(stated.program, stated.tolerance)
    return stated.point(model, goal, rule, solution)
