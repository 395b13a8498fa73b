r"""From a start whose kinks are wrong to a pattern worth solving: semismooth Newton on a smoothed problem.

Kinks are rounded to a width that lets about as many rows tie as there are weights (a tie then gives way in proportion
to its dual weight), and the width shrinks. From then on the dual weights found are the centres of the next step's
ties, which makes it the augmented Lagrangian method: the ties harden without the width going to zero, and rows whose
dual weight leaves [0, 1] drop out. Where more rows tie at the optimum than there are weights, as when all weights are
0 or rows repeat, no hard pattern is worth solving, and these steps end at the optimum itself.

Prefer it where the answer is near the start but many rows cross a kink on the way; cold starts belong to the interior
point. Like the active set it promises nothing, and gives up when the ties grow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from models.basics import FloatArray
from models.geometry.norms import dual_norm
from models.prox.hinge.active_set import Softness, solve_pattern
from models.prox.hinge.breakpoints import best_multiplier, kink_distance
from models.prox.hinge.certify import certified
from models.prox.hinge.pattern import Pattern, Trial, pattern_at, revise, tied_rows
from models.prox.hinge.statement import Iterate, Statement

_TIES = (2.0, 0.6)  # ties over weights while the width shrinks
_HARDENING = 6  # steps of fixed width, where two or three do or none will
_CROWDED = 12  # steps where more rows than weights lie on a kink from the start
_ON_A_KINK = 1e-9  # distance to a kink that is none
_TOO_MANY = 3  # ties over weights at which it gives up elsewhere
_SPARE = 3  # ties above the number of weights that the active set still takes
_NARROWEST = 1e-6  # least width: narrower ties are hard to float64
_FEW = 2  # changes of the pattern at which it is ripe for hard ties
_LOOSE = 1e-12  # relative excess over the norm at which the multiplier is still tied to it


@dataclass(frozen=True)
class Approach:
    """Where the smoothing ended: a pattern that is ripe for hard ties, or a solution, or neither; systems solved."""

    pattern: Pattern | None
    found: Iterate | None
    iterations: int


def approach(problem: Statement, weights: FloatArray, multiplier: float, tolerance: float) -> Approach:
    """Go from a start near the optimum to a pattern that is nearer; ``tolerance`` as in `solve_locally`."""
    size = problem.anchor.size
    face: Pattern | None = None
    trial: Trial | None = None
    width, crowded = 0.0, False
    for spent, ties in enumerate(_TIES):
        margins = problem.rows @ weights
        distance = kink_distance(margins, multiplier, problem.flip)
        crowded = crowded or int(np.count_nonzero(distance <= _ON_A_KINK)) > size
        place = min(int(ties * size), distance.size - 1)
        distance.partition(place)
        width = max(float(distance[place]), _NARROWEST)
        pattern = pattern_at(problem, weights, multiplier, width)
        if face is not None:
            pattern = replace(pattern, signs=face.signs, pull=face.pull)
        half = np.full(margins.size, 0.5)
        soft = Softness(2.0 * width, half, half if problem.can_flip else np.zeros(0))
        trial = solve_pattern(problem, pattern, soft)
        if trial is None:
            return Approach(None, None, spent + 1)
        face, _ = revise(problem, pattern, trial)
        weights = trial.weights
        least = dual_norm(weights[: problem.n_features], problem.norm)
        multiplier = best_multiplier(problem.rows @ weights, problem.price, problem.flip, least)
        face = replace(face, tied=multiplier <= least * (1.0 + _LOOSE))
    if face is None or trial is None:
        return Approach(None, None, 0)
    pattern = replace(pattern_at(problem, weights, multiplier, width), tied=face.tied, signs=face.signs, pull=face.pull)
    return _harden(problem, pattern, trial, 2.0 * width, _CROWDED if crowded else _HARDENING, tolerance)


def _harden(problem: Statement, pattern: Pattern, trial: Trial, width: float, steps: int, tolerance: float) -> Approach:
    """At most ``steps`` augmented Lagrangian steps of fixed width."""
    size, ties = problem.anchor.size, 0
    for spent in range(len(_TIES) + 1, len(_TIES) + steps + 1):
        soft = Softness(width, np.clip(trial.keep, 0.0, 1.0), np.clip(trial.flip, 0.0, 1.0))
        following = solve_pattern(problem, pattern, soft)
        if following is None:
            return Approach(None, None, spent)
        trial, before = following, pattern.support
        pattern, agrees = revise(problem, pattern, trial)
        ties = tied_rows(pattern.support).size
        if ties > size and agrees:
            found = certified(problem, trial)
            if found.gap <= problem.allowed_gap(found.objective, tolerance):
                return Approach(None, found, spent)
        elif ties <= size and int(np.count_nonzero(before != pattern.support)) <= _FEW:
            return Approach(pattern, None, spent)
        elif ties > _TOO_MANY * size and steps < _CROWDED:
            return Approach(None, None, spent)
    return Approach(None if ties > size + _SPARE else pattern, None, len(_TIES) + steps)
