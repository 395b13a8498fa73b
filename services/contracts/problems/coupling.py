"""Coupling of the planes of several classes: what a task asks of a plant, and what a version keeps."""

from __future__ import annotations

import numpy as np
from pydantic import Field, FiniteFloat

from models.basics import FloatArray
from services.contracts.base import Contract


class CouplingTask(Contract):
    """A task ``tune`` after the last round: the softmax loss on the scores of planes, and its gradient.

    Arrays: ``heads`` (K, P + 1) the planes, ``point_j`` (1, (K - 1)(K + 1)) for each of so many ``points``
    (``models.tuning.coupling``). The answer has, of point j, ``risk_j``, ``cut_height_j``, ``norm_weight_j`` (1,), the
    last of them 0, and ``slope_j`` of the point's shape.
    """

    points: int = Field(ge=1, le=8)


class Coupling(Contract):
    """The version's planes are ``matrix`` times those that the rounds trained, ``offsets`` added to the intercepts.

    ``objective``: log loss of the training rows in the plants' weights and its ridge (``models.tuning.coupling``);
    ``before``: without a coupling. Both are at most too high, where a plant's guard let another cut leave.
    ``at_least``: of every coupling. ``rounds`` those that it took, after the version's.
    """

    matrix: tuple[tuple[FiniteFloat, ...], ...]
    offsets: tuple[FiniteFloat, ...]
    objective: float
    before: float
    at_least: float
    rounds: int

    @classmethod
    def of(cls, found: FloatArray, *, objective: float, before: float, at_least: float, rounds: int) -> Coupling:
        """The record of ``(A, b)``, (K, K + 1)."""
        return cls(
            matrix=tuple(tuple(row) for row in found[:, :-1].tolist()), offsets=tuple(found[:, -1].tolist()),
            objective=objective, before=before, at_least=at_least, rounds=rounds,
        )

    @property
    def array(self) -> FloatArray:
        """``(A, b)``, (K, K + 1)."""
        return np.column_stack([np.array(self.matrix), np.array(self.offsets)])

    @property
    def words(self) -> str:
        """One line for readers of a version."""
        return (
            f"after the last round the classes' planes were coupled in {self.rounds} exchanges (softmax of their "
            f"scores on the training rows: at most {self.before:.4g} before, at most {self.objective:.4g} now, "
            f"{self.at_least:.4g} at least); objective and bounds are of the planes before it, every other figure of "
            "those of the version"
        )
