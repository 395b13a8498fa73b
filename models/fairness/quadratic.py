r"""Relative fairness over quadratic losses, solved at once where all rows are at hand.

    min_{theta in Theta} max_{lambda in Lambda_phi(A, B)} sum_i lambda_i f_i(theta)        (RF eq. 6)

with ``f_i(theta) = 1/2 theta' H_i theta + l_i' theta + c_i``, each convex and at or above 0, Theta a box or all of R^P.
With negative weights a single <lambda, f> need not be convex; what proves the solution is one lambda at which it is:

    min_theta <lambda, f(theta)>  <=  optimum  <=  max_lambda <lambda, f(theta)>,

the left side by arithmetic. Sequential quadratic programming over the corners of Lambda seen so far, with the Hessian
of <lambda, f> at their multipliers; near the solution it doubles the digits of each step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray, ProblemError
from models.fairness.ambiguity_set import RelativeSet
from models.solvers.cone_program import ConeProgram
from models.solvers.conic_interior_point import solve_cone_program

_STEPS = 200
"""Near a solution a step doubles the digits, so this many are never taken but where rounding stops the descent."""
_CURVED, _SAME, _LEAST = 1e-9, 1e-12, 1e-10
"""Curvature that is rounding, distance of corners that are one, least unit of the program: of sizes of order one."""
_ENOUGH = 1e-4
"""Share of what the model promises by which a step goes down: Armijo's usual one."""


@dataclass(frozen=True, eq=False)
class QuadraticLosses:
    """Losses of n sites: ``hessians`` (n, P, P) symmetric, ``slopes`` (n, P), ``constants`` (n,)."""

    hessians: FloatArray
    slopes: FloatArray
    constants: FloatArray

    @staticmethod
    def of_squares(features: list[FloatArray], targets: list[FloatArray], *, mean: bool = False) -> QuadraticLosses:
        """``f_i = sum_j (y_j - <x_j, theta>)^2`` over the rows of site i, or their ``mean``."""
        scales = [1.0 / len(y) if mean else 1.0 for y in targets]
        rows = list(zip(features, targets, scales, strict=True))
        return QuadraticLosses(
            np.array([2.0 * s * x.T @ x for x, _, s in rows]),
            np.array([-2.0 * s * x.T @ y for x, y, s in rows]),
            np.array([s * y @ y for _, y, s in rows]),
        )

    def values(self, point: FloatArray) -> FloatArray:
        """Loss of each site at a point (P,), shape (n,)."""
        return np.asarray(0.5 * (self.hessians @ point) @ point + self.slopes @ point + self.constants)

    def gradients(self, point: FloatArray) -> FloatArray:
        """Gradient of each site's loss, shape (n, P)."""
        return np.asarray(self.hessians @ point + self.slopes)

    def lower_bound(self, weights: FloatArray, near: FloatArray, box: tuple[FloatArray, FloatArray] | None) -> float:
        """``min_theta <weights, f>`` from below, -infinity where it is not convex; exact at its minimiser."""
        hessian = np.einsum("i,ipq->pq", weights, self.hessians)
        slope = weights @ self.gradients(near)
        value = float(weights @ self.values(near))
        sizes, directions = np.linalg.eigh(hessian)
        if sizes[0] < -_CURVED * sizes[-1]:
            return -math.inf
        if box is not None:
            low, high = box
            return value + float(np.minimum(slope * (low - near), slope * (high - near)).sum())
        if sizes[0] <= 0:
            return -math.inf
        return value - 0.5 * float(((directions.T @ slope) ** 2 / sizes).sum())


@dataclass(frozen=True)
class FairSolution:
    """Solution (P,) with each site's loss (n,), the saddle's ``weights`` lambda (n,), and what proves it.

    ``lower <= min max <lambda, f> <= upper``; ``lower`` is -infinity where the weights' objective is not convex: then
    the point is a critical one and no more is said.
    """

    point: FloatArray
    losses: FloatArray
    weights: FloatArray
    upper: float
    lower: float

    @property
    def gap(self) -> float:
        """``upper - lower``; infinite where nothing is proven."""
        return self.upper - self.lower


def solve_relative(
    losses: QuadraticLosses,
    ambiguity: RelativeSet,
    *,
    box: tuple[FloatArray, FloatArray] | None = None,
    start: FloatArray | None = None,
) -> FairSolution:
    """Solve RF eq. 6 over quadratic losses to working precision.

    ``box`` is (low, high) of Theta, shapes (P,); None: all of R^P. ``start`` (P,) is the minimiser of the mean loss,
    which must be strictly convex, where it is not given. ``ProblemError`` for losses and sets over different sites, or
    a mean loss that is flat in some direction.
    """
    n = losses.constants.shape[0]
    if n != ambiguity.size:
        raise ProblemError(f"there are losses of {n} sites and sets over {ambiguity.size}")
    mean = losses.hessians.mean(axis=0)
    sizes = np.linalg.eigvalsh(mean)
    if sizes[0] <= len(sizes) * np.finfo(np.float64).eps * sizes[-1]:
        raise ProblemError("the mean loss is flat in some direction; leave out features that depend on others")
    point = -np.linalg.solve(mean, losses.slopes.mean(axis=0)) if start is None else start
    if box is not None:
        point = np.clip(point, *box)
    search = _Search(losses, ambiguity, mean, box)
    best = search.evaluated(point, np.full(n, 1.0 / n))
    for _ in range(_STEPS):
        moved = search.step(best.point)
        if moved is None:
            break
        done = moved.gap <= 0 or (moved.upper >= best.upper - 1e-15 * abs(best.upper) and moved.gap >= best.gap)
        if moved.upper <= best.upper or moved.gap < best.gap:
            best = moved
        if done:
            break
    return best


class _Search:
    """Corners of Lambda seen so far, with the multipliers of the last program."""

    def __init__(
        self,
        losses: QuadraticLosses,
        ambiguity: RelativeSet,
        mean: FloatArray,
        box: tuple[FloatArray, FloatArray] | None,
    ) -> None:
        self._losses, self._set, self._mean, self._box = losses, ambiguity, mean, box
        self._corners = np.zeros((0, ambiguity.size))
        self._multipliers = np.zeros(0)

    def evaluated(self, point: FloatArray, weights: FloatArray) -> FairSolution:
        """A point with its bounds."""
        values = self._losses.values(point)
        lower = self._losses.lower_bound(weights, point, self._box)
        return FairSolution(point, values, weights, self._set.largest(values), lower)

    def step(self, point: FloatArray) -> FairSolution | None:
        """One step of sequential quadratic programming from a point; None where none goes down."""
        losses = self._losses
        self._add(losses.values(point))
        factor = np.asarray(np.linalg.cholesky(self._hessian()), dtype=np.float64)
        aim = self._set.largest(losses.values(point))
        for _ in range(_STEPS):
            heights = self._corners @ losses.values(point)
            move, top = self._program(point, heights, factor)
            model = aim - top
            weights = self._multipliers @ self._corners
            if self._add(losses.values(point + move)):
                continue
            for trial in self._trials(point, move, factor):
                found = self.evaluated(trial, weights)
                if found.upper <= aim - _ENOUGH * max(model, 0.0):
                    return found
            break
        here = self.evaluated(point, weights)
        return here if here.gap < math.inf else None

    def _trials(self, point: FloatArray, move: FloatArray, factor: FloatArray) -> list[FloatArray]:
        """The step, the step mended for how the losses bend, and shorter ones."""
        heights = self._corners @ self._losses.values(point + move)
        straight = self._corners @ self._losses.gradients(point) @ move
        kept = self._multipliers
        mended, _ = self._program(point, heights - straight, factor)
        self._multipliers = kept
        return [point + move, point + mended, *(point + 0.5**k * move for k in range(1, 40))]

    def _program(self, point: FloatArray, heights: FloatArray, factor: FloatArray) -> tuple[FloatArray, float]:
        """``min_d max_k heights_k + <g_k, d> + 1/2 d' H d`` within the box, H = factor factor'; the step and max."""
        p, count = point.shape[0], heights.shape[0]
        turn = np.linalg.inv(factor).T
        slopes = self._corners @ self._losses.gradients(point) @ turn
        size = max(float(np.abs(slopes).max()), _LEAST * float(np.sqrt(np.abs(heights).max())), _LEAST)
        rows = [np.hstack([slopes / size, -np.ones((count, 1))])]
        limits = [-(heights - heights.max()) / size**2]
        if self._box is not None:
            rows += [np.hstack([turn, np.zeros((p, 1))]), np.hstack([-turn, np.zeros((p, 1))])]
            limits += [(self._box[1] - point) / size, (point - self._box[0]) / size]
        # Columns: z with d = size * turn z, and the height above the largest one, in units of size^2.
        scaled = np.vstack(rows)
        program = ConeProgram(
            np.append(np.ones(p), 0.0), np.append(np.zeros(p), 1.0), scaled, np.concatenate(limits), (),
            np.append(np.zeros(p), 1.0),
        )
        solution = solve_cone_program(program, 1e-15)
        raw = np.maximum(solution.multipliers[:count], 0.0)
        self._multipliers = raw / raw.sum()
        move = size * (turn @ solution.point[:p])
        if self._box is not None:
            move = np.clip(point + move, *self._box) - point
        return move, float((heights + self._corners @ self._losses.gradients(point) @ move).max())

    def _hessian(self) -> FloatArray:
        """Hessian of <lambda, f> at the multipliers, lifted by the mean's where it is not convex."""
        if self._multipliers.any():
            weights = self._multipliers @ self._corners[: self._multipliers.shape[0]]
            hessian = np.asarray(np.einsum("i,ipq->pq", weights, self._losses.hessians))
        else:
            hessian = self._mean
        root = np.linalg.cholesky(self._mean)
        least = float(np.linalg.eigvalsh(np.linalg.solve(root, np.linalg.solve(root, hessian).T))[0])
        return hessian + max(_CURVED - least, 0.0) * self._mean

    def _add(self, values: FloatArray) -> bool:
        """Take in the corner that is worst for these losses; False where it is there already."""
        corner = self._set.member(values)
        if self._corners.shape[0] and (np.abs(self._corners - corner).max(axis=1) <= _SAME).any():
            return False
        self._corners = np.vstack([self._corners, corner])
        return True
