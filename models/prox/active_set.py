r"""Active-set steps: solve the equations of a guessed pattern, correct the guess by what contradicts it, repeat.

The objective is piecewise linear plus a quadratic, so once it is known in which pieces each row's maximum is attained
and which face of the norm constraint holds, the optimum solves linear equations (nearly linear ones for the norm l2,
where each round is a Newton step). At most about D rows tie; the system has one unknown a tie.

Prefer it after a good guess: the kinks at the last round's weights, or the duals of a nearly finished interior point.
It has no promise to converge, so it stops early when the guesses grow instead of settling.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dgesv, dgetrs

from models.problem import FloatArray
from models.prox.pattern import Pattern, Ties, Trial, collect, revise
from models.prox.statement import Statement, dual_norm_value

_MORE_TIES = 3  # how many more rows than weights may tie, duplicate ones included
_MOST_SOFT_TIES = 4  # ties over weights where ties give way: beyond, the guess is no good and its system large
_NUDGE = 1e-13  # relative diagonal that keeps the equations of duplicate rows solvable
_HOPEFUL = 0.7  # changes of a pattern over weights beyond which it is too far off to settle soon
_PATIENCE = 3  # trials in a row whose pattern may change no less than the best before
_SAME = 1e-14  # squared relative step of the weights below which a linearisation has converged


def settle(problem: Statement, pattern: Pattern, limit: int) -> tuple[Trial | None, int]:
    """Solve and revise ``pattern`` until the trial contradicts nothing, at most ``limit`` times.

    Returns the trial, or None when the pattern did not settle, and how many systems were solved. For the norm l2 the
    equations are linearised; the trial is returned when two in a row agree.
    """
    least, stalled = pattern.support.size, 0
    for count in range(1, limit + 1):
        trial = solve_pattern(problem, pattern)
        if trial is None:
            return None, count
        revised, agrees = revise(problem, pattern, trial)
        if agrees:
            if not (pattern.tied and problem.norm == "l2" and problem.is_robust):
                return trial, count
            step = trial.weights - pattern.around
            if step @ step <= _SAME * (trial.weights @ trial.weights):
                return trial, count
        changes = int(np.count_nonzero(revised.support != pattern.support))
        stalled = stalled + 1 if changes >= least else 0
        if changes > _HOPEFUL * problem.anchor.size or (changes > 0 and stalled > _PATIENCE):
            return None, count
        least = min(least, changes)
        pattern = revised
    return None, limit


@dataclass
class _System:
    """Minimise ``1/2 x' C^-1 x - <target, x>`` subject to the ties' equations ``constant + rows x - cost lam = 0``.

    C is ``diag(inverse)`` plus ``bend`` times the outer square of ``direction``. Where the norm ties lam to x, ``cost``
    is folded into the rows already.
    """

    rows: FloatArray
    cost: FloatArray
    constant: FloatArray
    target: FloatArray
    inverse: FloatArray
    direction: FloatArray | None = None
    bend: float = 0.0


@dataclass(frozen=True)
class Softness:
    """Ties that give way: the pieces of a tie may differ by ``width`` times (dual weight - centre of the weight).

    keep, flip : (n,) centres of the rows' dual weights, ``flip`` empty where no label can be flipped.
    """

    width: float
    keep: FloatArray
    flip: FloatArray


def solve_pattern(problem: Statement, pattern: Pattern, soft: Softness | None = None) -> Trial | None:
    """Optimum if ``pattern`` were right; None when its equations have no solution, or are too many to be a guess."""
    ties = collect(pattern.support, problem.can_flip)
    most = problem.anchor.size + _MORE_TIES if soft is None else _MOST_SOFT_TIES * problem.anchor.size
    if ties.rows.size > most:
        return None
    price = problem.price
    if problem.can_flip:
        force = (ties.flip - ties.keep) @ problem.rows
        price -= problem.flip * float(ties.flip.sum())
    else:
        force = -ties.keep @ problem.rows
    force += problem.linear
    equations = _equations(problem, ties, force)
    loose = problem.is_robust and not pattern.tied
    system = equations if loose or not problem.is_robust else _face(problem, pattern, equations, price)
    if system is None:
        return None
    width = 0.0
    if soft is not None:
        width = soft.width
        system.constant += width * ties.gather(soft.keep, soft.flip)
    solution = _dual(system, price, loose, width)
    if solution is None:
        return None
    shares = solution[: system.cost.size]
    free = system.target - shares @ system.rows
    point = system.inverse * free
    if system.direction is not None:
        point += (system.bend * float(system.direction @ free)) * system.direction
    weights, multiplier = point, math.inf
    if loose:
        multiplier = float(solution[-1])
    elif problem.is_robust and problem.norm == "l1" and pattern.signs.any():
        multiplier = float(point[-1])
        weights = point[:-1].copy()
        weights[: problem.n_features] += pattern.signs * multiplier
    elif problem.is_robust:
        multiplier = dual_norm_value(weights[: problem.n_features], problem.norm)
    stationarity = problem.stiffness * weights - equations.target
    stationarity += shares @ equations.rows
    ties.put(shares)
    return Trial(weights, multiplier, ties.keep, ties.flip, stationarity[: problem.n_features], ties.rows)


def _equations(problem: Statement, ties: Ties, force: FloatArray) -> _System:
    """The ties' equations with a multiplier of its own."""
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
    return _System(rows, cost, constant, target, np.full(target.size, 1.0 / problem.stiffness))


def _face(problem: Statement, pattern: Pattern, free: _System, price: float) -> _System | None:
    """The equations on the face of the norm constraint that ``pattern`` names."""
    p, stiffness = problem.n_features, problem.stiffness
    gradient = np.zeros(free.target.size)
    inverse = free.inverse
    gradient[:p] = pattern.signs
    if not pattern.signs.any():
        inverse[:p] = 0.0
        return _System(free.rows, free.cost, free.constant, free.target, inverse)
    if problem.norm == "l1":
        # the weights held at the bound move as one: the multiplier, which becomes the last coordinate
        held = pattern.signs != 0.0
        count = int(np.count_nonzero(held))
        rows = np.column_stack((free.rows, free.rows @ gradient - free.cost))
        target = np.append(free.target, float(free.target @ gradient) - price)
        inverse = np.append(inverse, 1.0 / (stiffness * count))
        inverse[:p][held] = 0.0
        return _System(rows, free.cost, free.constant, target, inverse)
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
    rows = free.rows - free.cost[:, None] * gradient
    return _System(rows, free.cost, free.constant, free.target - price * gradient, inverse, direction, bend)


def _dual(system: _System, price: float, loose: bool, width: float) -> FloatArray | None:
    """Shares of the ties and, when the multiplier is loose from the norm, the multiplier after them."""
    count = system.cost.size
    if count == 0:
        return None if loose else system.cost
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
    factor, pivots, solution, failed = dgesv(matrix, right)
    if failed:
        return None
    if nudge > 0.0:
        # one refinement takes the nudge out again
        correction = np.zeros_like(right)
        np.multiply(solution[:count], nudge, out=correction[:count])
        solution += dgetrs(factor, pivots, correction)[0]
    return solution if np.isfinite(solution).all() else None
