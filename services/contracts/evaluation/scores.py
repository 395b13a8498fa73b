"""Held-out scores of a regression: the sums that a site sends, and what they make together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final, Self

from pydantic import Field

from models.evaluation.intervals import residual_interval
from models.losses.base import Loss
from services.contracts.base import Contract
from services.contracts.machines.target import Target

COVERAGE_CONFIDENCE: Final = 0.9
"""Confidence of the interval whose coverage the sites count."""

REGRESSION_SUMS: Final = (
    "n_test", "absolute_error", "squared_error", "target_sum", "target_squares", "pinball_loss", "covered",
)
"""What a site sends of its held-out rows, all targets scaled: their number, sums of |error|, error^2, target,
target^2 and pinball loss, and how many lie in the interval."""


class RegressionScores(Contract):
    """Held-out scores in the target's unit; None where none are known, or in a model of classes.

    ``coverage`` is the share of held-out rows in the interval of confidence :data:`COVERAGE_CONFIDENCE`; ``r2`` is None
    where all held-out targets are alike; ``rmse`` is never below ``mae``. ``pinball`` is the mean loss of the model's
    quantile, 1/2 for other losses.
    """

    n_test: int | None = None
    mae: float | None = Field(default=None, description="mean absolute error, in the target's unit")
    rmse: float | None = Field(default=None, description="root mean squared error, in the target's unit")
    r2: float | None = Field(default=None, description="share of the targets' variance that is explained")
    pinball: float | None = Field(default=None, description="mean pinball loss, in the target's unit")
    coverage: float | None = Field(default=None, description="share of held-out targets inside their 0.9 interval")

    @classmethod
    def from_sums(cls, sums: Mapping[str, float], target: Target) -> Self:
        """Scores from the sums of :data:`REGRESSION_SUMS`, all of them 0 where no row was held out."""
        n = sums["n_test"]
        if n <= 0:
            return cls()
        # A plant tells its sums in steps, from below, those of squares in coarser ones (decision 90): what they lack of
        # the square of the mean error was lost there, and 0 would say that no row was missed.
        squared_error = max(sums["squared_error"], sums["absolute_error"] ** 2 / n)
        variance = sums["target_squares"] - sums["target_sum"] ** 2 / n
        known = variance > 1e-12 * max(1.0, sums["target_squares"])
        return cls(
            n_test=int(n),
            mae=target.width * sums["absolute_error"] / n,
            rmse=target.width * math.sqrt(squared_error / n),
            r2=1.0 - squared_error / variance if known else None,
            pinball=target.width * sums["pinball_loss"] / n,
            coverage=sums["covered"] / n,
        )


class ErrorInterval(Contract):
    """The target lies from ``estimate - below`` to ``estimate + above``, in its unit, with at least this probability.

    It follows by Markov's inequality from ``risk``, the worst-case expected loss of the scaled target at the model's
    weights, so it holds for every distribution that the certificate reckons with, that is, for measurements drawn from
    the sites in any mixture of the ball. It speaks of them all together, not of one measurement, and is wide: it
    assumes nothing of the errors.
    """

    confidence: float = Field(gt=0, lt=1)
    below: float = Field(ge=0)
    above: float = Field(ge=0)
    risk: float = Field(ge=0)

    @classmethod
    def implied(cls, loss: Loss, target: Target, risk: float, confidence: float) -> Self:
        """Interval that a finite risk implies at a confidence in (0, 1)."""
        low, high = residual_interval(loss, risk, confidence)
        return cls(confidence=confidence, below=target.width * high, above=-target.width * low, risk=risk)


SCORE_NAMES: Final = tuple(RegressionScores.model_fields)


def added(sums: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Sums of several sites together."""
    found = list(sums)
    return {name: math.fsum(each[name] for each in found) for name in REGRESSION_SUMS}
