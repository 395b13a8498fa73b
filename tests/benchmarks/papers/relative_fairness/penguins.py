"""The penguins problem of the paper on relative fairness (appendix J.1): three clients, three weights, a grid.

``(bill length) = theta_1 + theta_2 (bill depth) + theta_3 (flipper length)`` on the first ten complete rows of each
species; a client's loss is its sum of squares. The paper prints the last term of the residual with a plus; with its own
range of theta only the minus fits, which is taken here. A = B = the simplex, so the objective is
``max_i f_i - phi min_j f_j``.
"""

from __future__ import annotations

import csv

import numpy as np

from models.basics import FloatArray
from models.fairness.ambiguity_set import RelativeSet
from models.fairness.quadratic import QuadraticLosses
from tests.benchmarks.data import table_path

SPECIES = ("Adelie", "Chinstrap", "Gentoo")
PHIS = (0.0, 0.01, 0.02, 0.03, 0.04, 0.05)
_COLUMNS = ("bill_depth_mm", "flipper_length_mm")
_TARGET = "bill_length_mm"
_ROWS = 10

BOX = (np.array([-35.0, 0.0, 0.0]), np.array([-25.0, 1.0, 1.0]))
"""Convex hull of the paper's grid."""

GRID = tuple(np.linspace(low, high, 1001) for low, high in zip(*BOX, strict=True))
"""The paper's grid: steps of 0.01 in theta_1, of 0.001 in the others."""


def clients() -> tuple[list[FloatArray], list[FloatArray]]:
    """Features (10, 3) with a leading 1, and targets (10,), of each species."""
    with table_path("palmer_penguins").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    features, targets = [], []
    for species in SPECIES:
        own = [r for r in rows if r["label"] == species and all(r[name] for name in (*_COLUMNS, _TARGET))][:_ROWS]
        features.append(np.array([[1.0, *(float(r[name]) for name in _COLUMNS)] for r in own]))
        targets.append(np.array([float(r[_TARGET]) for r in own]))
    return features, targets


def losses() -> QuadraticLosses:
    """The three sums of squares."""
    return QuadraticLosses.of_squares(*clients())


def ambiguity(phi: float) -> RelativeSet:
    """Lambda_phi over three clients with A = B = the simplex."""
    return RelativeSet.of_shares(len(SPECIES), phi, 1 / 3, 1 / 3)


def solve_on_grid(quadratics: QuadraticLosses, phi: float, near: FloatArray) -> FloatArray:
    """The best point of the whole grid; ``near`` is a point at which to start.

    No point is left out unread: ``max f - phi min f >= (1 - phi) f_i`` for each i, so only points with
    ``f_i <= (best value seen) / (1 - phi)`` for all i can win. For each (theta_1, theta_2) that is an interval of
    theta_3, and those are gone through.
    """
    nearby = _around(near)
    at, value = _value(quadratics, nearby, phi)
    best = nearby[at]
    first, second = np.meshgrid(GRID[0], GRID[1], indexing="ij")
    lowest, highest = np.zeros(first.size), np.ones(first.size)
    pairs = np.column_stack([first.ravel(), second.ravel()])
    for hessian, slope, constant in zip(quadratics.hessians, quadratics.slopes, quadratics.constants, strict=True):
        half = 0.5 * hessian[2, 2]
        linear = pairs @ hessian[:2, 2] + slope[2]
        rest = 0.5 * np.einsum("np,pq,nq->n", pairs, hessian[:2, :2], pairs) + pairs @ slope[:2] + constant
        room = linear * linear - 4.0 * half * (rest - value / (1.0 - phi))
        root = np.sqrt(np.maximum(room, 0.0))
        lowest = np.where(room >= 0, np.maximum(lowest, (-linear - root) / (2.0 * half)), np.inf)
        highest = np.where(room >= 0, np.minimum(highest, (-linear + root) / (2.0 * half)), -np.inf)
    step = GRID[2][1]
    left, right = np.ceil(lowest / step - 1e-9), np.floor(highest / step + 1e-9)
    alive = np.flatnonzero(left <= right)
    counts = (right[alive] - left[alive]).astype(np.intp) + 1
    for block in np.array_split(np.arange(alive.shape[0]), max(1, int(counts.sum()) // 2_000_000 + 1)):
        repeated = np.repeat(block, counts[block])
        within = np.arange(repeated.shape[0]) - np.repeat(np.cumsum(counts[block]) - counts[block], counts[block])
        third = GRID[2][(left[alive][repeated] + within).astype(np.intp)]
        points = np.column_stack([pairs[alive][repeated], third])
        if points.shape[0]:
            at, found = _value(quadratics, points, phi)
            if found < value:
                best, value = points[at], found
    return np.asarray(best)


def _around(near: FloatArray) -> FloatArray:
    """Grid points within some steps of a point."""
    axes = []
    for axis, place in zip(GRID, near, strict=True):
        at = int(np.argmin(np.abs(axis - place)))
        axes.append(axis[max(at - 12, 0) : at + 13])
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)


def _value(quadratics: QuadraticLosses, points: FloatArray, phi: float) -> tuple[int, float]:
    """Index and value of the best of the points (K, 3)."""
    found = [
        0.5 * np.einsum("np,pq,nq->n", points, hessian, points) + points @ slope + constant
        for hessian, slope, constant in zip(quadratics.hessians, quadratics.slopes, quadratics.constants, strict=True)
    ]
    objective = np.max(found, axis=0) - phi * np.min(found, axis=0)
    at = int(np.argmin(objective))
    return at, float(objective[at])
