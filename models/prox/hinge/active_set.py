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

from models.basics import FloatArray
from models.geometry.norms import dual_norm
from models.prox.hinge.equations import on_face, solve_equations, state_equations
from models.prox.hinge.pattern import Pattern, Trial, collect, revise
from models.prox.hinge.statement import Statement

_MORE_TIES = 3  # how many more rows than weights may tie, duplicate ones included
_SMALL = 10_000  # rows whose copies do not matter
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
        changes = int(np.count_nonzero(revised.support != pattern.support))
        if agrees or (changes == 0 and _same_face(revised, pattern)):  # what contradicts it then is rounding
            if not (pattern.tied and problem.norm == "l2" and problem.is_robust):
                return trial, count
            step = trial.weights - pattern.around
            if step @ step <= _SAME * (trial.weights @ trial.weights):
                return trial, count
        stalled = stalled + 1 if changes >= least else 0
        if changes > _HOPEFUL * problem.anchor.size or (changes > 0 and stalled > _PATIENCE):
            return None, count
        least = min(least, changes)
        pattern = revised
    return None, limit


def _same_face(first: Pattern, second: Pattern) -> bool:
    return first.tied == second.tied and bool((first.signs == second.signs).all())


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
    if soft is None and ties.rows.size > problem.anchor.size + _MORE_TIES:
        return None
    flips = ties.flipped.size + ties.either.size
    copies = (ties.kept.size + flips) * (2 if flips else 1)
    if copies > max(problem.rows.shape[0], _SMALL):
        return None  # the interior point needs less memory
    price = problem.price
    if problem.can_flip:
        force = (ties.flip - ties.keep) @ problem.rows
        price -= problem.flip * float(ties.flip.sum())
    else:
        force = -ties.keep @ problem.rows
    force += problem.linear
    equations = state_equations(problem, ties, force)
    loose = problem.is_robust and not pattern.tied
    system = equations if loose or not problem.is_robust else on_face(problem, pattern, equations, price)
    if system is None:
        return None
    width = 0.0
    if soft is not None:
        width = soft.width
        system.constant += width * ties.gather(soft.keep, soft.flip)
    solved = solve_equations(system, price, loose, width)
    if solved is None:
        return None
    weights, multiplier = solved.point, solved.multiplier if loose else math.inf
    if problem.is_robust and not loose:
        if weights.size > problem.anchor.size:  # the multiplier was a coordinate
            multiplier = float(weights[-1])
            weights = weights[:-1].copy()
            weights[: problem.n_features] += pattern.signs * multiplier
        else:
            multiplier = dual_norm(weights[: problem.n_features], problem.norm)
    shares = solved.shares
    stationarity = problem.stiffness * weights - equations.target
    stationarity += shares @ equations.rows
    ties.put(shares)
    return Trial(weights, multiplier, ties.keep, ties.flip, stationarity[: problem.n_features], ties.rows)
