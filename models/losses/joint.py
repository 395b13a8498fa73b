"""Losses of all classes as one problem; each row counts by the scores of all of them, not by one margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from models.basics import ProblemError
from models.losses.base import Line, Task
from models.losses.classification import Hinge


@dataclass(frozen=True)
class JointLoss(Hinge):
    """A loss of the scores of all classes, as steep as the hinge in the difference of two scores.

    Labels are class indices. The plane of class 0 is 0, since a plane that is added to all of them changes no loss:
    weights are the planes of the classes 1 to C - 1, slopes row by row, then their intercepts.
    """

    n_classes: int
    task: ClassVar[Task] = "classification"
    lines: ClassVar[tuple[Line, ...] | None] = None

    def __post_init__(self) -> None:
        """Refuse what has no second plane."""
        if self.n_classes < 3:
            raise ProblemError(f"all classes as one problem needs three at least, got {self.n_classes}")

    @property
    def planes(self) -> int:
        """Planes that are trained, C - 1."""
        return self.n_classes - 1


@dataclass(frozen=True)
class CrammerSinger(JointLoss):
    r"""``max_{k != y} max(0, 1 + s_k - s_y)``: the hinge of the least margin ``s_y - s_k`` (Crammer and Singer 2001).

    ``value`` and ``slope`` are of the least margin.
    """

    name: ClassVar[str] = "crammer_singer"


@dataclass(frozen=True)
class Softmax(JointLoss):
    r"""``log sum_k exp(s_k - s_y)``: the negative log likelihood of a multinomial logistic regression."""

    name: ClassVar[str] = "softmax"
