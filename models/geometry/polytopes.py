r"""What a polytope ``{v : matrix v <= limits}`` must be to serve as a support, by two small linear programs.

DRFL section B assumes a Slater point, a point strictly inside; and where features could move without bounds there would
be no wall to speak of, so the polytope must be bounded.
"""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray, ProblemError
from models.geometry.linear_program import LinearProgram, Optimum, solve_linear_program

_FLAT = 1e-9
"""Depth, over the size of the limits, below which rounding decides whether there is an inside."""


def inner_point(matrix: FloatArray, limits: FloatArray) -> tuple[FloatArray, float]:
    """Point (P,) farthest from the walls, and how far: the centre of the largest ball inside.

    ``ProblemError`` where no point meets all inequalities, or none meets them strictly.
    """
    lengths = np.sqrt(np.einsum("rp,rp->r", matrix, matrix))
    if (limits[lengths == 0] < 0).any():
        raise ProblemError("the support polytope is empty: a row of zeros has a limit below 0")
    units = _units(matrix, limits)
    walls = matrix * units
    sizes = np.sqrt(np.einsum("rp,rp->r", walls, walls))
    sizes = np.where(sizes > 0, sizes, 1.0)
    goal = np.append(np.zeros(units.shape[0]), -1.0)
    rows = np.column_stack([walls / sizes[:, None], lengths * float(units.min()) / sizes])
    ends = limits / sizes
    scale = float(np.abs(ends).max(initial=0.0)) or 1.0
    free, open_end = np.full(goal.shape, -np.inf), np.full(ends.shape, -np.inf)
    highest = np.append(-free[:-1], scale)
    found = solve_linear_program(LinearProgram(goal, rows, open_end, ends, free, highest))
    if not found.solved:
        raise ProblemError(f"no point inside the support polytope could be found: {found.words}")
    depth = float(found.point[-1])
    if depth < -_FLAT * scale:
        raise ProblemError("the support polytope is empty: no point meets all its inequalities; loosen the limits")
    if depth <= _FLAT * scale:
        raise ProblemError(
            "the support polytope is flat: no point is strictly inside all its inequalities; loosen the limits"
        )
    return np.asarray(found.point[:-1] * units), depth * float(units.min())


def _units(matrix: FloatArray, limits: FloatArray) -> FloatArray:
    """Unit (P,) of each coordinate, about what the nearest wall leaves of it: the solver's tolerances are absolute."""
    reach = np.full(matrix.shape, np.inf)
    walls = np.broadcast_to(np.abs(limits)[:, None], matrix.shape)
    np.divide(walls, np.abs(matrix), out=reach, where=(matrix != 0) & (walls > 0))
    units = reach.min(axis=0, initial=np.inf)
    return np.where(np.isfinite(units), units, 1.0)


def check_bounded(matrix: FloatArray) -> None:
    """Refuse a polytope that goes on without end, whatever its limits (it is taken to be non-empty).

    ``{v : matrix v <= 0}`` is {0} alone exactly where the matrix has full column rank and some combination of its rows,
    every coefficient above 0, is 0 (Stiemke's lemma). ``ProblemError`` where the polytope is unbounded.
    """
    columns = np.abs(matrix).max(axis=0, initial=0.0)
    scaled = matrix / np.where(columns > 0, columns, 1.0)
    lengths = np.sqrt(np.einsum("rp,rp->r", scaled, scaled))
    rows = scaled[lengths > 0] / lengths[lengths > 0, None]
    bounded = rows.shape[0] > matrix.shape[1] and int(np.linalg.matrix_rank(rows)) == matrix.shape[1]
    if bounded:
        bounded = _least_weights(rows, -rows.sum(axis=0)).solved
    if not bounded:
        raise ProblemError(
            "the support polytope is unbounded: add inequalities so that every feature (and the target) has both ends"
        )


def combination(matrix: FloatArray, direction: FloatArray) -> FloatArray:
    """Least weights (r,), at or above 0, with which the rows of a bounded polytope's matrix add up to ``direction``.

    :class:`ProblemError` where no weights do: the polytope is unbounded there.
    """
    found = _least_weights(matrix, direction)
    if not found.solved:
        raise ProblemError("the support polytope is unbounded in a direction that its walls must answer")
    return found.point


def _least_weights(rows: FloatArray, direction: FloatArray) -> Optimum:
    """Weights (r,) of least sum, at or above 0, with which the rows (r, P) add up to ``direction`` (P,)."""
    nothing = np.zeros(rows.shape[0])
    program = LinearProgram(nothing + 1.0, rows.T, direction, direction, nothing, nothing + np.inf)
    return solve_linear_program(program)
