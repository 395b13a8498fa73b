"""Solves one statement: active-set steps from a guess, an interior point when they do not settle."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from models.basics import FloatArray, ProblemError
from models.geometry.norms import dual_norm
from models.prox.hinge.active_set import settle
from models.prox.hinge.breakpoints import best_multiplier
from models.prox.hinge.certify import certified, subgradient_of_norm
from models.prox.hinge.interior_point import InteriorPoint, start_interior
from models.prox.hinge.pattern import Codes, Trial, pattern_at, pattern_of
from models.prox.hinge.smoothing import approach
from models.prox.hinge.statement import Iterate, Statement

_KINK_WIDTH = 1e-7  # how near a kink the last answer must be for the kink to be guessed active
_WARM_TRIALS = 10  # corrections of a guess at the start, of which most take two to four
_RIPE_TRIALS = 8  # the same from a pattern that smoothing left
_FINISH_TRIALS = 3  # the same between steps of the interior point, which costs as much as one or two
_ITERATION_LIMIT = 80  # interior point steps, several times what any drawn problem takes
_NEAR_END = 1e-7  # relative gap from which on a step without progress has met rounding
_NEARLY_ZERO = 1e-6  # dual norm of weights that may be 0 but for what the interior point leaves
_STUCK = 0.9  # a gap that falls by less than this, several times over, has met working precision


@dataclass(frozen=True)
class LocalAnswer:
    """An iterate, who found it, and how many linear systems that took."""

    found: Iterate
    solver: str
    iterations: int


def solve_locally(problem: Statement, start: FloatArray, floor: float, tolerance: float, warm: bool) -> LocalAnswer:
    """Solve a statement to a relative duality gap.

    Parameters
    ----------
    start : (D,), weights to start from. floor : the multiplier that is best for them.
    tolerance : wanted gap over the objective (over a thousandth a row where the objective is less).
    warm : whether the kinks at ``start`` are worth a guess.
    """
    spent = 0
    if warm:
        trial, spent = settle(problem, pattern_at(problem, start, floor, _KINK_WIDTH), _WARM_TRIALS)
        found = _accept(problem, trial, tolerance)
        if found is not None:
            return LocalAnswer(found, "active set", spent)
        near = approach(problem, start, floor, tolerance)
        spent += near.iterations
        if near.found is not None:
            return LocalAnswer(near.found, "smoothing", spent)
        if near.pattern is not None:
            trial, more = settle(problem, near.pattern, _RIPE_TRIALS)
            spent += more
            found = _accept(problem, trial, tolerance)
            if found is not None:
                return LocalAnswer(found, "smoothing, active set", spent)
    return _interior(problem, start_interior(problem, start, floor), tolerance, spent)


def _accept(problem: Statement, trial: Trial | None, tolerance: float) -> Iterate | None:
    """The trial with its certificate if that is good enough."""
    if trial is None:
        return None
    found = _certified(problem, trial, tolerance)
    return found if found.gap <= problem.allowed_gap(found.objective, tolerance) else None


def _certified(problem: Statement, trial: Trial, tolerance: float) -> Iterate:
    """The trial with its certificate; with that of a norm dual exact at its weights where its own proves too little."""
    found = certified(problem, trial)
    if found.gap <= problem.allowed_gap(found.objective, tolerance) or not problem.is_robust:
        return found
    exact = certified(problem, replace(trial, norm_dual=subgradient_of_norm(problem, trial)))
    return exact if exact.gap < found.gap else found


def _interior(problem: Statement, run: InteriorPoint, tolerance: float, spent: int) -> LocalAnswer:
    """Interior point, finished by active-set steps once few rows tie."""
    best = run.iterate()
    slow = 0
    failed: Codes | None = None
    for _ in range(_ITERATION_LIMIT):
        if best.gap <= problem.allowed_gap(best.objective, tolerance) or slow > 3:
            break
        if not run.advance():
            break
        spent += 1
        here = run.gap
        stuck = here > _STUCK * best.gap and best.gap < problem.allowed_gap(best.objective, _NEAR_END)
        slow = slow + 1 if stuck else 0
        if here < best.gap:
            best = run.iterate()
        pattern = pattern_of(run)
        if failed is not None and np.array_equal(pattern.support, failed):
            continue  # what did not settle from this support will not settle from it now
        trial, tries = settle(problem, pattern, _FINISH_TRIALS)
        spent += tries
        failed = pattern.support if tries else failed
        if trial is not None:
            found = _certified(problem, trial, tolerance)
            if found.gap <= problem.allowed_gap(found.objective, tolerance):
                return LocalAnswer(found, "interior point, active set", spent)
            if found.gap < best.gap:
                best = found
    if not math.isfinite(best.gap):
        raise ProblemError("the client step overflowed: features or centre are too large, scale them to order 1")
    # Slacks move by steps during the run; what is reported is measured at the point itself.
    found, at_zero = certified(problem, best), _at_zero(problem, best)
    if at_zero is not None and at_zero.objective < found.objective:
        found = at_zero
    return LocalAnswer(found, "interior point", spent)


def _at_zero(problem: Statement, point: Iterate) -> Iterate | None:
    """The point with weights that are nearly 0 put to 0: at a large radius their last digits would cost."""
    features = point.weights[: problem.n_features]
    if not problem.is_robust or dual_norm(features, problem.norm) > _NEARLY_ZERO:
        return None
    weights = point.weights.copy()
    weights[: problem.n_features] = 0.0
    margins = problem.rows @ weights
    multiplier = best_multiplier(margins, problem.price, problem.flip, 0.0)
    return certified(problem, replace(point, weights=weights, multiplier=multiplier))
