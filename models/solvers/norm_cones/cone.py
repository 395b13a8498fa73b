"""What the interior point asks of a norm constraint."""

from __future__ import annotations

from abc import ABC, abstractmethod

from models.basics import FloatArray


class NormCone(ABC):
    """Slack and dual of ``multiplier >= ||w||_*`` during an interior point run.

    Vectors of the constraint are ``(multiplier, w)``: the transport multiplier first, then the P feature weights. A
    Newton step of the dual is ``shift - curvature @ step``: the curvature enters the normal matrix, the shift, which
    depends on the wanted complementarity, the right-hand side.

    ``degree`` is how many complementarity products the constraint counts for, ``multiplier`` where it starts.
    """

    degree: int
    multiplier: float

    @abstractmethod
    def __init__(self, features: FloatArray, floor: float, price: float, target: float) -> None:
        """Start near complementarity ``target`` with a dual worth ``price`` and a multiplier at or above ``floor``."""

    @abstractmethod
    def pull(self) -> FloatArray:
        """Return what the dual adds to minus the stationarity equations, shape (1 + P,)."""

    @abstractmethod
    def complementarity(self) -> float:
        """Return the inner product of slack and dual."""

    @abstractmethod
    def add_curvature(self, matrix: FloatArray) -> None:
        """Rescale, and add the curvature to the first P rows and columns and the last of the lower triangle."""

    @abstractmethod
    def shift(self, target: float, correction: float) -> FloatArray:
        """Return the shift for complementarity ``target``, less ``correction`` times the last step's second-order term.

        A ``target`` of 0 is the predictor's, which has no correction.
        """

    @abstractmethod
    def set_step(self, step: FloatArray) -> float:
        """Take the primal step, derive the dual one; return the most negative relative change (0 when none is).

        The longest step that stays inside is minus one over it.
        """

    @abstractmethod
    def curved_change(self) -> float:
        """Inner product of the steps of slack and dual."""

    @abstractmethod
    def move(self, length: float) -> None:
        """Move slack and dual by ``length`` of the step."""

    @abstractmethod
    def resettle(self, features: FloatArray, multiplier: float) -> bool:
        """Recompute the slack from the point; False, and nothing changed, where that leaves the cone."""
