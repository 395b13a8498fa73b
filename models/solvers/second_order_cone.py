r"""Products of the nonnegative orthant and second-order cones, and their Nesterov-Todd scaling.

The rows of a program come in this order: the linear ones, then cone after cone, each ``{(t, u) : ||u||_2 <= t}``.
Formulas: Vandenberghe 2010, "The CVXOPT linear and quadratic cone program solvers", sections 4 and 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray


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

    def longest(self, point: FloatArray, change: FloatArray) -> float:
        """Longest step that stays inside."""
        falling = change[: self.split] < 0
        steps = -point[: self.split][falling] / change[: self.split][falling]
        longest = float(steps.min(initial=np.inf))
        for part in self.parts:
            u, v = point[part], change[part]
            along = float(u[0] * v[0] - u[1:] @ v[1:])
            bend = float(v[0] * v[0] - v[1:] @ v[1:])
            root = along * along - bend * _determinant(u)
            if root >= 0 and (speed := float(np.sqrt(root)) - along) > 0:
                longest = min(longest, _determinant(u) / speed)
            if v[0] < 0:
                # Where u and v are parallel, rounding can hide the border above.
                longest = min(longest, float(-u[0] / v[0]))
        return longest


@dataclass(frozen=True)
class _Turn:
    """Scaling of one second-order cone: ``size`` times the hyperbolic turn about ``axis``; ``mirrored`` undoes it."""

    part: slice
    axis: FloatArray
    mirrored: FloatArray
    size: float

    @staticmethod
    def at(part: slice, slack: FloatArray, dual: FloatArray) -> _Turn:
        s_size, z_size = np.sqrt(_determinant(slack)), np.sqrt(_determinant(dual))
        s, z = slack / s_size, dual / z_size
        axis = (s + _mirror(z)) / (2.0 * np.sqrt(0.5 * (1.0 + float(s @ z))))
        return _Turn(part, axis, _mirror(axis), float(np.sqrt(s_size / z_size)))


@dataclass(frozen=True)
class Scaling:
    """Nesterov-Todd scaling W with ``W dual = W^-1 slack = point``; ``inverse`` is the linear part of W^-1."""

    split: int
    linear: FloatArray
    inverse: FloatArray
    turns: tuple[_Turn, ...]
    point: FloatArray

    @staticmethod
    def at(slack: FloatArray, dual: FloatArray, cones: Cones) -> Scaling:
        """Scaling of a slack and a dual that are both inside."""
        split, point = cones.split, np.empty_like(slack)
        roots, dual_roots = np.sqrt(slack[:split]), np.sqrt(dual[:split])
        point[:split] = roots * dual_roots
        turns = tuple(_Turn.at(part, slack[part], dual[part]) for part in cones.parts)
        for turn in turns:
            point[turn.part] = turn.size * _hyperbolic(turn.axis, dual[turn.part])
        return Scaling(split, roots / dual_roots, dual_roots / roots, turns, point)

    def scale(self, vector: FloatArray) -> FloatArray:
        """``W vector``."""
        result = np.empty_like(vector)
        result[: self.split] = self.linear * vector[: self.split]
        for turn in self.turns:
            result[turn.part] = turn.size * _hyperbolic(turn.axis, vector[turn.part])
        return result

    def unscale(self, vector: FloatArray) -> FloatArray:
        """``W^-1 vector``."""
        result = np.empty_like(vector)
        result[: self.split] = self.inverse * vector[: self.split]
        for turn in self.turns:
            result[turn.part] = _hyperbolic(turn.mirrored, vector[turn.part]) / turn.size
        return result

    def unscale_twice(self, vector: FloatArray) -> FloatArray:
        """``W^-2 vector``."""
        result = np.empty_like(vector)
        result[: self.split] = self.inverse * self.inverse * vector[: self.split]
        for turn in self.turns:
            tail = vector[turn.part]
            turned = (2.0 * float(turn.mirrored @ tail)) * turn.mirrored - _mirror(tail)
            result[turn.part] = turned / (turn.size * turn.size)
        return result

    def product(self, u: FloatArray, v: FloatArray) -> FloatArray:
        """Jordan product."""
        result = u * v
        for turn in self.turns:
            a, b = u[turn.part], v[turn.part]
            result[turn.part] = a[0] * b + b[0] * a
            result[turn.part.start] = float(a @ b)
        return result

    def divide(self, v: FloatArray) -> FloatArray:
        """``x`` with ``point * x = v`` in the Jordan product."""
        result = v / np.where(self.point == 0, 1.0, self.point)
        for turn in self.turns:
            a, b = self.point[turn.part], v[turn.part]
            head = (a[0] * b[0] - float(a[1:] @ b[1:])) / _determinant(a)
            result[turn.part] = (b - head * a) / a[0]
            result[turn.part.start] = head
        return result

    def gram(self, rows: FloatArray) -> FloatArray:
        """``rows' W^-2 rows``."""
        scaled = rows[: self.split] * self.inverse[:, None]
        total = scaled.T @ scaled
        for turn in self.turns:
            tail = rows[turn.part]
            along = turn.mirrored @ tail
            turned = 2.0 * np.outer(along, along) - np.outer(tail[0], tail[0]) + tail[1:].T @ tail[1:]
            total += turned / turn.size**2
        return np.asarray(total)


def depth(u: FloatArray) -> float:
    """How far inside one cone a point (t, u) lies, relative to its size."""
    return 1.0 - float(np.sqrt(u[1:] @ u[1:])) / float(u[0])


def _mirror(vector: FloatArray) -> FloatArray:
    """The vector with all but its first entry negated."""
    mirrored: FloatArray = -vector
    mirrored[:1] *= -1.0
    return mirrored


def _determinant(u: FloatArray) -> float:
    tail = float(np.sqrt(u[1:] @ u[1:]))
    return max((float(u[0]) - tail) * (float(u[0]) + tail), np.finfo(np.float64).tiny)


def _hyperbolic(axis: FloatArray, vector: FloatArray) -> FloatArray:
    """Product with ``[a0, a1'; a1, I + a1 a1' / (1 + a0)]``."""
    inner = float(axis[1:] @ vector[1:])
    result: FloatArray = vector + axis * (vector[0] + inner / (1.0 + axis[0]))
    result[0] = axis[0] * vector[0] + inner
    return result
