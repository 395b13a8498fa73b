r"""The equations of a pattern: a quadratic over a face of the norm constraint, subject to its ties.

    min_x  1/2 x' C^-1 x - <target, x>    subject to    constant + rows x - cost lam = 0,

C being ``diag(inverse)`` plus ``bend`` times the outer square of ``direction``. Its duals are the dual weights of the
ties. A tie that gives way, by ``width`` a unit of dual weight, turns its equation into a quadratic penalty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray
from models.prox.hinge.pattern import Pattern, Ties
from models.prox.hinge.statement import Statement
from models.solvers.factored import solve_by_cholesky, solve_by_lu, solve_lower, solve_upper

_NUDGE = 1e-13  # relative diagonal that keeps the equations of duplicate rows solvable
_ROUGH = 1e-4  # ratio of pivots below which the product of the rows has lost digits that the answer needs
_PASSES = 2  # the solution, and its correction by what its ties miss
_DEPENDENT = 1e-13  # ratio of the triangle's diagonal below which rows are copies of one another


@dataclass
class System:
    """See the module. Where the norm ties lam to x, ``cost`` is folded into the rows."""

    rows: FloatArray
    cost: FloatArray
    constant: FloatArray
    target: FloatArray
    inverse: FloatArray
    direction: FloatArray | None = None
    bend: float = 0.0

    def apply(self, vector: FloatArray) -> FloatArray:
        """``C vector``."""
        result = self.inverse * vector
        if self.direction is not None:
            result += (self.bend * float(self.direction @ vector)) * self.direction
        return result

    def root(self, vectors: FloatArray) -> FloatArray:
        """``C^1/2`` times a vector (D,), or columns (D, k).

        Wherever ``direction``, a unit vector, is not 0, ``inverse`` is the same.
        """
        result: FloatArray = (np.sqrt(self.inverse) * vectors.T).T
        if self.direction is not None:
            across = float(self.inverse[self.direction != 0.0].max())
            more = math.sqrt(across + self.bend) - math.sqrt(across)
            result += more * np.multiply.outer(self.direction, self.direction @ vectors)
        return result


@dataclass(frozen=True)
class Solved:
    """Dual weights of the ties, x, and the multiplier where it is loose from the norm (NaN elsewhere)."""

    shares: FloatArray
    point: FloatArray
    multiplier: float


def state_equations(problem: Statement, ties: Ties, force: FloatArray) -> System:
    """The ties' equations with a multiplier of its own; ``force`` is the pull of the rows that do not tie."""
    first, second = ties.kept.size, ties.flipped.size
    rows = problem.rows[np.concatenate((ties.kept, ties.flipped, ties.either))]
    rows[:first] *= -1.0
    rows[first + second :] *= 2.0
    constant = np.ones(rows.shape[0])
    constant[first + second :] = 0.0
    cost = np.zeros(rows.shape[0])
    cost[first:] = problem.flip
    target = problem.stiffness * problem.anchor
    target -= force
    return System(rows, cost, constant, target, np.full(target.size, 1.0 / problem.stiffness))


def on_face(problem: Statement, pattern: Pattern, free: System, price: float) -> System | None:
    """The equations on the face of the norm constraint that ``pattern`` names."""
    p, stiffness = problem.n_features, problem.stiffness
    gradient = np.zeros(free.target.size)
    inverse = free.inverse
    gradient[:p] = pattern.signs
    if not pattern.signs.any():
        inverse[:p] = 0.0
        return System(free.rows, free.cost, free.constant, free.target, inverse)
    if problem.norm == "l1":
        # the weights held at the bound move as one: the multiplier, which becomes the last coordinate
        held = pattern.signs != 0.0
        rows = np.column_stack((free.rows, free.rows @ gradient - free.cost))
        target = np.append(free.target, float(free.target @ gradient) - price)
        inverse = np.append(inverse, 1.0 / (stiffness * int(np.count_nonzero(held))))
        inverse[:p][held] = 0.0
        return System(rows, free.cost, free.constant, target, inverse)
    direction, bend = None, 0.0
    if problem.norm == "linf":
        inverse[:p] *= gradient[:p] != 0.0
    else:
        around = pattern.around[:p]
        radius = math.sqrt(float(around @ around))
        if radius == 0.0:
            return None
        np.divide(around, radius, out=gradient[:p])
        curved = stiffness + max(pattern.pull, 0.0) / radius
        inverse[:p] = 1.0 / curved
        direction, bend = gradient, 1.0 / stiffness - 1.0 / curved
    rows = free.rows
    if free.cost.any():  # without flips in the ties there is nothing to fold, and no copy to make
        rows = rows - free.cost[:, None] * gradient
    return System(rows, free.cost, free.constant, free.target - price * gradient, inverse, direction, bend)


def solve_equations(system: System, price: float, loose: bool, width: float) -> Solved | None:
    """Solve for the smaller of the ties' dual weights and x; None when there is no solution."""
    count = system.cost.size
    if count == 0:
        return None if loose else Solved(system.cost, system.apply(system.target), math.nan)
    if width > 0.0 and count > system.target.size:
        return _solve_primal(system, price, loose, width)
    return _solve_dual(system, price, loose, width)


def _solve_dual(system: System, price: float, loose: bool, width: float) -> Solved | None:
    count = system.cost.size
    scaled = system.rows * system.inverse
    right = scaled @ system.target
    right += system.constant
    matrix = np.empty((count + loose, count + loose))
    inner = matrix[:count, :count]
    np.matmul(scaled, system.rows.T, out=inner)
    if system.direction is not None:
        along = system.rows @ system.direction
        inner += (system.bend * along)[:, None] * along
        right += (system.bend * float(system.direction @ system.target)) * along
    diagonal = matrix.ravel()[: count * (count + loose) : count + loose + 1]
    nudge = 0.0 if width > 0.0 else _NUDGE * float(diagonal.max())
    diagonal += nudge + width
    if loose:
        matrix[:count, count] = matrix[count, :count] = system.cost
        matrix[count, count] = 0.0
        right = np.append(right, price)
    solve, pivots = solve_by_lu(matrix, count)
    if nudge > 0.0 and pivots.min() <= _ROUGH * pivots.max():
        found = _solve_orthogonal(system, price, loose)
        if found is not None:
            return found
    solution = solve(right)
    if nudge > 0.0:
        # one refinement takes the nudge out again
        correction = np.zeros_like(right)
        np.multiply(solution[:count], nudge, out=correction[:count])
        solution += solve(correction)
    if not np.isfinite(solution).all():
        return None
    shares = solution[:count]
    point = system.apply(system.target - shares @ system.rows)
    return Solved(shares, point, float(solution[-1]) if loose else math.nan)


def _solve_orthogonal(system: System, price: float, loose: bool) -> Solved | None:
    r"""The same from ``C^1/2 rows' = Q R``, whose condition is the root of that of the rows' product.

    With ``u = R shares`` and ``t = C^1/2 target`` the ties say ``u = Q' t + R^-T (constant - cost lam)``, a loose
    multiplier ``<R^-T cost, u> = price``, and ``x = C^1/2 (t - Q u)``. None where rows depend on one another. Features
    in units of their own (areas beside roundnesses) need it.
    """
    if system.cost.size > np.count_nonzero(system.inverse):
        return None
    basis, triangle = np.linalg.qr(system.root(system.rows.T))
    sizes = np.abs(np.diag(triangle))
    if sizes.min() <= _DEPENDENT * sizes.max():
        return None
    costs = solve_lower(triangle.T, system.cost)
    length = float(costs @ costs)
    if loose and length == 0.0:
        return None
    point, shares, multiplier = np.zeros_like(system.target), np.zeros_like(system.cost), 0.0
    missing, pull = system.constant, system.root(system.target)
    for _ in range(_PASSES):
        forces = solve_lower(triangle.T, missing) + basis.T @ pull
        if loose:
            rise = (float(costs @ forces) - price) / length
            forces -= rise * costs
            multiplier += rise
        shares = shares + solve_upper(triangle, forces)
        point = point + system.root(pull - basis @ forces)
        missing = system.constant + system.rows @ point - multiplier * system.cost
        pull, price = np.zeros_like(pull), 0.0
    return Solved(shares, point, multiplier if loose else math.nan) if np.isfinite(shares).all() else None


def _solve_primal(system: System, price: float, loose: bool, width: float) -> Solved | None:
    """More ties than unknowns, all of which give way: a penalised least-squares problem in the free coordinates."""
    free = (system.inverse > 0.0).nonzero()[0]
    rows, target = system.rows[:, free] if free.size < system.inverse.size else system.rows, system.target[free]
    curvature = np.diag(1.0 / system.inverse[free])
    if system.direction is not None:
        bent = system.direction[free] / system.inverse[free]
        curvature -= np.outer(bent, bent) * (system.bend / (1.0 + system.bend * float(system.direction[free] @ bent)))
    size = free.size
    matrix = np.zeros((size + loose, size + loose))
    matrix[:size, :size] = curvature + (rows.T @ rows) / width
    right = np.append(target, -price) if loose else target
    right = right - np.append(rows.T @ system.constant, -system.cost @ system.constant)[: size + loose] / width
    if loose:
        matrix[size, :size] = matrix[:size, size] = -(system.cost @ rows) / width
        matrix[size, size] = float(system.cost @ system.cost) / width
    solution = right
    if right.size:
        solve = solve_by_cholesky(matrix)
        if solve is None:
            return None
        solution = solve(right)
    if not np.isfinite(solution).all():
        return None
    point = np.zeros(system.target.size)
    point[free] = solution[:size]
    shares = (system.constant + rows @ solution[:size]) / width
    if loose:
        shares -= system.cost * (float(solution[-1]) / width)
    return Solved(shares, point, float(solution[-1]) if loose else math.nan)
