"""What a learner is, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from tests.benchmarks.accuracy.deal import Part

COVERAGE = 0.9


@dataclass(frozen=True)
class Outcome:
    """A learner's answers to the test rows; what is None does not apply.

    ``rounds`` and ``bytes_per_site`` are of tuning and training together (of the estimator float64 without framing, of
    the service whole frames, masks and signatures in them), ``tuning_rounds`` and ``tuning_bytes`` of the tuning alone;
    ``coverage`` and ``width`` (classes in a set, or units of the target) are of sets and intervals of
    :data:`COVERAGE`, None where the held-out rows are too few for it.
    """

    predicted: NDArray[Any]
    seconds: float
    rounds: int | None = None
    bytes_per_site: int | None = None
    coverage: float | None = None
    width: float | None = None
    tuning_rounds: int | None = None
    tuning_bytes: int | None = None


Learner = Callable[[Part, Part, int], Outcome]


def task_of(part: Part) -> str:
    """What the rows are for."""
    return "regression" if part.outcomes.dtype.kind == "f" else "classification"
