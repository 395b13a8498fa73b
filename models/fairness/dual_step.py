r"""The dual step of Scaff-PD-IA: one joint quadratic program over A x B, solved exactly by sorting.

    maximise  <lambda, s> - ||lambda - lambda0||^2 / (2 sigma)      over lambda = (a - phi b)/(1 - phi), a in A, b in B

(RF Algorithm 1), that is, with ``v = (1 - phi)(lambda0 + sigma s)``, the projection of v on ``A - phi B``. Two separate
projections would not do: a and b share their residual ``u = v - a + phi b``. Optimality says that a puts its weight
where u is largest and b where u is smallest, so there are prices mu and nu with

    a_i = cap_i where u_i > mu, 0 where u_i < mu;      b_i = cap_i where u_i < nu, 0 where u_i > nu.

Whether mu is above, below or at nu, the sites come apart:

- above: a and b meet no site together; a is the projection of v, phi b that of -v;
- below: sites between the prices are full in both; a is the projection of v + phi cap_b, phi b that of cap_a - v;
- at:    a - phi b is the projection of v on ``{-phi cap_b <= x <= cap_a, sum x = 1 - phi}``, then split.

Each is a search for one level among sorted breaks. The case that leaves the smallest gap is the solution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray, ProblemError
from models.fairness.ambiguity_set import RelativeSet
from models.geometry.capped_simplex import CappedSimplex
from models.geometry.projections import fill

_FEASIBLE = 1e-12
"""How far from 1 the sum of a split may be by rounding; a split that misses more is of another case."""


@dataclass(frozen=True)
class DualStep:
    r"""The next dual variable ``weights`` = lambda (n,), with members a of A and b of B that make it.

    lambda is unique, a and b need not be. ``gap`` proves it: ``||lambda - optimum||^2 (1 - phi)^2 <= gap``.
    """

    weights: FloatArray
    worst: FloatArray
    best: FloatArray
    gap: float


def dual_step(ambiguity: RelativeSet, losses: FloatArray, current: FloatArray, step: float) -> DualStep:
    r"""``argmax_lambda <lambda, losses> - ||lambda - current||^2 / (2 step)`` over Lambda_phi(A, B).

    ``losses`` s (n,) may be negative (they are extrapolated), ``current`` lambda0 (n,) need not be in the set, ``step``
    is sigma, above 0. ``ProblemError`` for vectors of another length or with values that are not finite, or a step that
    is no number above 0.
    """
    for name, vector in (("losses", losses), ("current", current)):
        if vector.shape != (ambiguity.size,):
            raise ProblemError(f"{name} must have shape ({ambiguity.size},), one number a site, got {vector.shape}")
        if not np.isfinite(vector).all():
            raise ProblemError(f"{name} must be finite, {int((~np.isfinite(vector)).sum())} are not")
    if not (math.isfinite(step) and step > 0):
        raise ProblemError(f"the dual step must be a finite number above 0, got {step}")
    return nearest_member(ambiguity, current + step * losses)


def nearest_member(ambiguity: RelativeSet, point: FloatArray) -> DualStep:
    """Euclidean projection of a point (n,) on Lambda_phi(A, B)."""
    phi, top = ambiguity.phi, ambiguity.worst
    goal = (1.0 - phi) * point
    if phi == 0.0:
        a = top.nearest(goal)
        found = [(a, ambiguity.best.best(goal - a))]
    else:
        found = _candidates(goal, top, ambiguity.best, phi)
    gaps = [_gap(goal, a, b, ambiguity) for a, b in found]
    least = int(np.argmin(gaps))
    a, b = found[least]
    if phi > 0.0:
        b = ambiguity.best.nearest(b)  # dividing by a small phi has made its rounding large
    return DualStep(np.asarray((a - phi * b) / (1.0 - phi)), a, b, max(gaps[least], 0.0))


def _candidates(
    goal: FloatArray, top: CappedSimplex, low: CappedSimplex, phi: float
) -> list[tuple[FloatArray, FloatArray]]:
    """(a, b) of the three cases; each is a member of A x B."""
    none, caps = np.zeros(top.size), phi * low.caps
    apart = (top.nearest(goal), fill(-goal, none, caps, phi) / phi)
    together = (top.nearest(goal + caps), fill(top.caps - goal, none, caps, phi) / phi)
    joint = fill(goal, -caps, top.caps, 1.0 - phi)
    floor, ceiling = np.maximum(joint, 0.0), np.minimum(top.caps, joint + caps)
    room = float((ceiling - floor).sum())
    a = floor + np.clip((1.0 - float(floor.sum())) / room, 0.0, 1.0) * (ceiling - floor) if room > 0 else floor
    found = [apart, together]
    if abs(float(a.sum()) - 1.0) <= _FEASIBLE:
        found.append((a, (a - joint) / phi))
    return found


def _gap(goal: FloatArray, a: FloatArray, b: FloatArray, ambiguity: RelativeSet) -> float:
    """What the residual could still gain over A x B: 0 at the projection, and nowhere else."""
    residual = goal - a + ambiguity.phi * b
    gain = (ambiguity.worst.worst(residual) - a) @ residual
    return float(gain + ambiguity.phi * ((b - ambiguity.best.best(residual)) @ residual))
