r"""Best moves inside a polytope: ``max_v <a, v> - lam cost(v)`` over ``matrix (row + v) <= limits``, by enumeration.

The objective is concave, so its maximum lies inside some face of the polytope cut by the planes on which the cost
bends (``v_p = 0`` for l1, ``v_p = +-v_q`` for linf, target unmoved). For l1 and linf the objective is linear on every
cell: the corners of all cells are enough, whatever the direction and the price. For l2 each face has at most one
stationary point, in closed form. The objective itself decides among all that lie inside; for small dimensions only.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from tests.oracles.wasserstein.losses import Array
from tests.oracles.wasserstein.problem import OracleSite, Polytope

ROUNDING = 1e-11
"""Share of the size of its terms by which a candidate may break a wall."""


class PolytopeMoves:
    """Best moves of all rows of a site at once."""

    def __init__(self, site: OracleSite, polytope: Polytope) -> None:
        self._site, p = site, site.features.shape[1]
        self._still = site.loss.regression and np.isinf(site.flip_cost)
        rooms = np.maximum(polytope.limits - site.points @ polytope.matrix.T, 0.0)
        # Features and target each in a unit of their own, in which the walls are about 1 away.
        of_features = self._unit(polytope.matrix[:, :p], rooms)
        of_target = self._unit(polytope.matrix[:, p:], rooms) if site.loss.regression else 1.0
        self._units = np.append(np.full(p, of_features), [of_target] * (site.loss.regression and not self._still))
        self._p, self._d = p, self._units.shape[0]
        self._scaled = replace(site, flip_cost=site.flip_cost * of_target / of_features)
        walls = polytope.matrix[:, : self._d] * self._units
        length = np.sqrt((walls**2).sum(axis=1))
        self._walls = walls[length > 0] / length[length > 0, None]
        self._room = rooms[:, length > 0] / length[length > 0]
        planes, offsets = self._planes()
        self._corners = self._inside(self._meeting(planes, offsets))
        self._faces = [self._face(planes, offsets, size) for size in range(self._d)] if site.norm == "l2" else []

    def best(self, direction: Array, lam: float) -> Array:
        """Moves (N, d) that gain the most for ``direction`` (d,) at the price ``lam``."""
        a, lam = direction[: self._d] * self._units, lam * float(self._units[0])
        parts = [self._corners] + [self._stationary(face, a, lam) for face in self._faces]
        moves = np.concatenate(parts, axis=1)
        gains = moves @ a - lam * self._cost(moves)
        best = moves[np.arange(moves.shape[0]), np.argmax(gains, axis=1)] * self._units
        return np.column_stack([best, np.zeros(best.shape[0])]) if self._still else np.asarray(best)

    @staticmethod
    def _unit(walls: Array, rooms: Array) -> float:
        length = np.abs(walls).max(axis=1)
        away = rooms[:, length > 0].max(axis=0) / length[length > 0]
        return float(away.max(initial=0.0)) or 1.0

    def _cost(self, moves: Array) -> Array:
        if self._still:
            moves = np.concatenate([moves, np.zeros((*moves.shape[:-1], 1))], axis=-1)
        return self._scaled.move_cost(moves)

    def _planes(self) -> tuple[Array, Array]:
        """Normals (m, d) and offsets (N, m) of the walls and of the planes on which the cost bends."""
        unit, p = np.eye(self._d), self._p
        bends = [unit[-1]] if self._d > p else []
        if self._site.norm == "l1":
            bends += list(unit[:p])
        if self._site.norm == "linf":
            bends += [unit[i] + s * unit[j] for i, j in combinations(range(p), 2) for s in (1.0, -1.0)]
            bends += [unit[0]] if p == 1 else []
        normals = np.vstack([self._walls, *bends]) if bends else self._walls
        zeros = np.zeros((self._room.shape[0], len(bends)))
        return normals, np.hstack([self._room, zeros])

    def _meeting(self, planes: Array, offsets: Array) -> Array:
        """Points (N, S, d) in which d planes meet, and the row itself."""
        subsets = np.array(list(combinations(range(planes.shape[0]), self._d)))
        stacks = planes[subsets]
        subsets, stacks = subsets[np.abs(np.linalg.det(stacks)) > 1e-13], stacks[np.abs(np.linalg.det(stacks)) > 1e-13]
        points = np.einsum("sdk,nsk->nsd", np.linalg.inv(stacks), offsets[:, subsets])
        return np.concatenate([np.zeros((offsets.shape[0], 1, self._d)), points], axis=1)

    def _face(self, planes: Array, offsets: Array, size: int) -> tuple[Array, Array, Array, Array]:
        """Of all faces on ``size`` planes: a point (N, S, d), a basis (S, d, k), and what makes it round in features.

        Faces that hold a direction of the target alone are left out: the objective is linear along it.
        """
        starts, bases, rounds = [], [], []
        for subset in combinations(range(planes.shape[0]), size):
            chosen = planes[list(subset)]
            left, sizes, right = np.linalg.svd(chosen) if size else (np.eye(0), np.zeros(0), np.eye(self._d))
            if size and sizes[-1] < 1e-13:
                continue
            basis = right[size:].T
            _, of_features, turn = np.linalg.svd(basis[: self._p], full_matrices=True)
            if of_features.shape[0] < basis.shape[1] or of_features[-1] < 1e-13:
                continue
            inverse = right[:size].T @ np.diag(1.0 / sizes) @ left.T if size else np.zeros((self._d, 0))
            starts.append(offsets[:, list(subset)] @ inverse.T)
            bases.append(basis @ turn.T)
            rounds.append(of_features)
        k, n = self._d - size, offsets.shape[0]
        if not bases:
            return np.zeros((n, 0, self._d)), np.zeros((0, self._d, k)), np.zeros((0, k)), np.zeros((n, 0))
        start, basis, round_ = np.stack(starts, axis=1), np.stack(bases), np.stack(rounds)
        along = np.einsum("nsp,spk->nsk", start[..., : self._p], basis[:, : self._p]) / round_**2
        start = start - np.einsum("nsk,sdk->nsd", along, basis)
        return start, basis, round_, np.sqrt((start[..., : self._p] ** 2).sum(axis=-1))

    def _stationary(self, face: tuple[Array, Array, Array, Array], a: Array, lam: float) -> Array:
        """Where the derivative along the face vanishes (N, S, d), for either sign of the target's move."""
        start, basis, round_, off = face
        found = []
        for sign in (1.0, -1.0) if self._d > self._p else (1.0,):
            pull = a.copy()
            if self._d > self._p:
                pull[-1] -= sign * lam * self._scaled.flip_cost
            slope = np.einsum("sdk,d->sk", basis, pull) / round_
            size = np.sqrt((slope**2).sum(axis=1))
            bends = size < lam
            rest = np.sqrt(np.where(bends, lam - size, 1.0)) * np.sqrt(np.where(bends, lam + size, 1.0))
            steps = np.where(bends[:, None], slope / rest[:, None], 0.0) / round_
            found.append(start + np.einsum("sdk,sk->sd", basis, steps) * off[..., None])
        return self._inside(np.concatenate(found, axis=1))

    def _inside(self, moves: Array) -> Array:
        """Moves that stay inside but for rounding; the others stay at the row."""
        reach, room = moves @ self._walls.T, self._room[:, None, :]
        size = np.abs(moves).sum(axis=-1, keepdims=True) + room
        inside = np.isfinite(moves).all(axis=-1) & (reach <= room + ROUNDING * size).all(axis=-1)
        return np.where(inside[..., None], moves, 0.0)
