"""What the oracle judges: a site's rows, its Wasserstein ball and its support, and how dear a transport is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.oracles.wasserstein.losses import Array, OracleLoss


@dataclass(frozen=True)
class Box:
    """``low <= x <= high``, and a range of the target for a regression."""

    low: Array
    high: Array
    target_low: float = -np.inf
    target_high: float = np.inf


@dataclass(frozen=True)
class Polytope:
    """``matrix v <= limits``, v the features and, for a regression, the target last."""

    matrix: Array
    limits: Array


@dataclass(frozen=True)
class OracleSite:
    """Rows (N, P) with labels or targets (N,), transport cost ``||x - x'|| + flip_cost (1[y != y'] or |y - y'|)``."""

    features: Array
    labels: Array
    loss: OracleLoss
    norm: str
    radius: float
    flip_cost: float
    support: Box | Polytope | None = None

    @property
    def points(self) -> Array:
        """Where the rows lie in the space in which mass is moved: features, and targets for a regression."""
        return np.column_stack([self.features, self.labels]) if self.loss.regression else self.features

    def move_cost(self, moves: Array) -> Array:
        """What moves (..., d) of points cost, label flips apart."""
        cost = norm_of(moves[..., : self.features.shape[1]], self.norm)
        if self.loss.regression:
            target = np.abs(moves[..., -1])
            cost = cost + np.where(target > 0, min(self.flip_cost, 1e300) * target, 0.0)
        return cost

    def arguments(self, plane: Array, intercept: float, moves: Array, labels: Array) -> Array:
        """Margins or residuals (N,) of the rows after moves (N, d); ``labels`` are those after flips."""
        scores = self.features @ plane + moves[:, : plane.shape[0]] @ plane + intercept
        return scores - (self.labels + moves[:, -1]) if self.loss.regression else labels * scores


def norm_of(vectors: Array, norm: str) -> Array:
    """Norm along the last axis."""
    sizes = np.abs(vectors)
    if norm == "l1":
        return np.asarray(sizes.sum(axis=-1))
    if norm == "linf":
        return np.asarray(sizes.max(axis=-1, initial=0.0))
    largest = sizes.max(axis=-1, initial=0.0)
    scale = np.where(largest > 0, largest, 1.0)
    return np.asarray(scale * np.sqrt(((sizes / scale[..., None]) ** 2).sum(axis=-1)))


def steepest_unit(plane: Array, norm: str) -> Array:
    """Move of norm 1 that raises <plane, x> by the most; 0 for a plane of zeros."""
    move = np.zeros_like(plane)
    if not plane.any():
        return move
    if norm == "linf":
        return np.where(plane >= 0, 1.0, -1.0)
    if norm == "l1":
        at = int(np.argmax(np.abs(plane)))
        move[at] = np.sign(plane[at])
        return move
    return plane / norm_of(plane, "l2")


def gain_of_unit(plane: Array, norm: str) -> float:
    """The dual norm, as its definition has it: what the steepest move of norm 1 gains."""
    return float(plane @ steepest_unit(plane, norm))
