r"""Products of the nonnegative orthant and second-order cones, and their Nesterov-Todd scaling.

The rows of a program come in this order: the linear ones, then cone after cone, each ``{(t, u) : ||u||_2 <= t}``.
Formulas: Vandenberghe 2010, "The CVXOPT linear and quadratic cone program solvers", sections 4 and 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray

_SURFACE = 1e-16  # least size of a point over t^2: what float64 can tell from the boundary
_LEVEL = 0.1  # how far from the wanted product one may be, and one over it
_TINY = float(np.finfo(np.float64).tiny)  # least size of all, which is divided by


@dataclass(frozen=True)
class ConeScaling:
    """Scaling ``W = size (2 v v' - J)`` of one cone with ``W dual = W^-1 slack = point``, J = diag(1, -1, .., -1).

    ``root`` is v, ``back`` the same of W^-1 and ``axis`` that of W^-2; ``of_slack`` and ``of_dual`` are determinants.
    """

    root: FloatArray
    back: FloatArray
    axis: FloatArray
    size: float
    point: FloatArray
    of_slack: float
    of_dual: float

    @staticmethod
    def at(slack: FloatArray, dual: FloatArray) -> ConeScaling:
        """Scaling of a slack and a dual that are both inside."""
        of_slack, of_dual = determinant(slack), determinant(dual)
        s, z = slack / math.sqrt(of_slack), dual / math.sqrt(of_dual)
        # At least 1 inside the cone; rounding at its boundary must not say otherwise.
        cosine = max(float(s @ z), 1.0)
        axis = (s + _mirror(z)) / math.sqrt(2.0 * (1.0 + cosine))
        root = axis.copy()
        root[0] += 1.0
        root /= math.sqrt(2.0 * float(root[0]))
        size = math.sqrt(math.sqrt(of_slack) / math.sqrt(of_dual))
        return ConeScaling(root, _mirror(root), _mirror(axis), size, size * _turned(root, dual), of_slack, of_dual)

    def scale(self, vector: FloatArray) -> FloatArray:
        """``W vector``."""
        return _turned(self.root, vector) * self.size

    def unscale(self, vector: FloatArray) -> FloatArray:
        """``W^-1 vector``."""
        return _turned(self.back, vector) / self.size

    def unscale_twice(self, vector: FloatArray) -> FloatArray:
        """``W^-2 vector``."""
        return _turned(self.axis, vector) / (self.size * self.size)

    def divide(self, vector: FloatArray) -> FloatArray:
        """``x`` with ``point * x = vector`` in the Jordan product."""
        point, size = self.point, math.sqrt(self.of_slack) * math.sqrt(self.of_dual)
        head = (point[0] * vector[0] - float(point[1:] @ vector[1:])) / size
        result: FloatArray = (vector - head * point) / point[0]
        result[0] = head
        return result


def jordan_product(u: FloatArray, v: FloatArray) -> FloatArray:
    """Product of one cone: ``(<u, v>, u_0 v_1 + v_0 u_1)``."""
    result: FloatArray = u[0] * v + v[0] * u
    result[0] = u.dot(v)
    return result


def determinant(u: FloatArray) -> float:
    """``t^2 - ||u||^2`` of a point (t, u) without squaring away the difference."""
    head, tail = float(u[0]), u[1:]
    radius = math.sqrt(float(tail.dot(tail)))
    return max((head - radius) * (head + radius), _SURFACE * head * head, _TINY)


def depth(u: FloatArray) -> float:
    """How far inside one cone a point (t, u) lies, relative to its size."""
    return 1.0 - math.sqrt(float(u[1:].dot(u[1:]))) / float(u[0])


def lowest_change(point: FloatArray, change: FloatArray, size: float) -> float:
    """Minus one over the longest step inside one cone, 0 where every step is; ``size`` is the point's determinant."""
    head, tail = float(change[0]), change[1:]
    along = float(point[0]) * head - float(point[1:].dot(tail))
    bend = head * head - float(tail.dot(tail))
    # Never negative in exact arithmetic: the reversed Cauchy-Schwarz inequality of the cone.
    root = math.sqrt(max(along * along - bend * size, 0.0))
    # Where both are parallel, rounding can hide the border from the first; the second is that of the head.
    return min((along - root) / size, head / float(point[0]), 0.0)


@dataclass(frozen=True)
class Cones:
    """``split`` linear rows, and the rows of each second-order cone."""

    split: int
    parts: tuple[slice, ...]

    @staticmethod
    def of(rows: int, sizes: tuple[int, ...]) -> Cones:
        """The last ``sum(sizes)`` of the rows belong to cones of these sizes."""
        ends = rows - sum(sizes) + np.cumsum(sizes, dtype=np.intp)
        parts = tuple(slice(int(end) - size, int(end)) for end, size in zip(ends, sizes, strict=True))
        return Cones(rows - sum(sizes), parts)

    @property
    def degree(self) -> int:
        """What ``<slack, dual>`` is divided by for its mean."""
        return self.split + len(self.parts)

    def unit(self, rows: int) -> FloatArray:
        """Identity element: ones, and (1, 0, ..) for each cone."""
        unit = np.ones(rows)
        for part in self.parts:
            unit[part.start + 1 : part.stop] = 0.0
        return unit

    def depth(self, vector: FloatArray) -> float:
        """How far inside the second-order cones a point lies, relative to its size; infinite where there are none."""
        return min((depth(vector[part]) for part in self.parts), default=np.inf)


@dataclass(frozen=True)
class Scaling:
    """Nesterov-Todd scaling W of a product of cones, ``cones`` those of second order.

    Of the linear rows, ``linear`` is W, ``inverse`` W^-1 and ``squared`` W^-2.
    """

    split: int
    linear: FloatArray
    inverse: FloatArray
    squared: FloatArray
    cones: tuple[tuple[slice, ConeScaling], ...]
    point: FloatArray

    @staticmethod
    def at(slack: FloatArray, dual: FloatArray, cones: Cones) -> Scaling:
        """Scaling of a slack and a dual that are both inside."""
        split, point = cones.split, np.empty_like(slack)
        roots, dual_roots = np.sqrt(slack[:split]), np.sqrt(dual[:split])
        point[:split] = roots * dual_roots
        scaled = tuple((part, ConeScaling.at(slack[part], dual[part])) for part in cones.parts)
        for part, cone in scaled:
            point[part] = cone.point
        inverse = dual_roots / roots
        return Scaling(split, roots / dual_roots, inverse, inverse * inverse, scaled, point)

    def scale(self, vector: FloatArray) -> FloatArray:
        """``W vector``."""
        return self._apply(vector, self.linear, ConeScaling.scale)

    def unscale(self, vector: FloatArray) -> FloatArray:
        """``W^-1 vector``."""
        return self._apply(vector, self.inverse, ConeScaling.unscale)

    def unscale_twice(self, vector: FloatArray) -> FloatArray:
        """``W^-2 vector``."""
        return self._apply(vector, self.squared, ConeScaling.unscale_twice)

    def _apply(
        self, vector: FloatArray, linear: FloatArray, turn: Callable[[ConeScaling, FloatArray], FloatArray]
    ) -> FloatArray:
        result = np.empty_like(vector)
        result[: self.split] = linear * vector[: self.split]
        for part, cone in self.cones:
            result[part] = turn(cone, vector[part])
        return result

    def product(self, u: FloatArray, v: FloatArray) -> FloatArray:
        """Jordan product."""
        result = u * v
        for part, _ in self.cones:
            result[part] = jordan_product(u[part], v[part])
        return result

    def divide(self, v: FloatArray) -> FloatArray:
        """``x`` with ``point * x = v`` in the Jordan product."""
        result = np.empty_like(v)
        np.divide(v[: self.split], self.point[: self.split], out=result[: self.split])
        for part, cone in self.cones:
            result[part] = cone.divide(v[part])
        return result

    def levelling(self, slack: FloatArray, dual: FloatArray, wanted: float) -> FloatArray:
        """What products of linear rows far from ``wanted`` need to come near it (Gondzio 1996); 0 in the cones."""
        products = slack[: self.split] * dual[: self.split]
        change = np.zeros_like(slack)
        near = np.clip(products, _LEVEL * wanted, wanted / _LEVEL)
        np.maximum(near - products, -wanted / _LEVEL, out=change[: self.split])
        return change

    def longest(self, slack: FloatArray, dslack: FloatArray, dual: FloatArray, ddual: FloatArray) -> float:
        """Longest step with which the slack and the dual that are scaled both stay inside."""
        lowest = min(
            float((dslack[: self.split] / slack[: self.split]).min(initial=0.0)),
            float((ddual[: self.split] / dual[: self.split]).min(initial=0.0)),
        )
        for part, cone in self.cones:
            lowest = min(
                lowest, lowest_change(slack[part], dslack[part], cone.of_slack),
                lowest_change(dual[part], ddual[part], cone.of_dual),
            )
        return -1.0 / lowest if lowest < 0 else math.inf


def _mirror(vector: FloatArray) -> FloatArray:
    """The vector with all but its first entry negated."""
    mirrored: FloatArray = -vector
    mirrored[0] = vector[0]
    return mirrored


def _turned(root: FloatArray, vector: FloatArray) -> FloatArray:
    """``(2 v v' - J) vector`` with v the ``root``."""
    result: FloatArray = (2.0 * float(root @ vector)) * root
    result[0] -= vector[0]
    result[1:] += vector[1:]
    return result
