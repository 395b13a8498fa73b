"""Ranges in which measured values lie: what is outside of them, and how values inside are scaled to [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from services.contracts.base import Contract


class ValueRange(Contract):
    """A quantity by its name, the range in which it can lie, and what to do with a value outside."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")
    low: float
    high: float
    out_of_range: Literal["clip", "refuse"] = "clip"
    description: str = ""

    @model_validator(mode="after")
    def _range_is_one(self) -> Self:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"{self.name}: its range needs finite low < high, got {self.low}, {self.high}")
        return self

    @property
    def width(self) -> float:
        """Width of the range, in the unit."""
        return self.high - self.low


class Ranges:
    """The ranges of P quantities, for values (N, P) in their units; NaN is no value, and is left as it is."""

    def __init__(self, quantities: Sequence[ValueRange]) -> None:
        self.low = np.array([each.low for each in quantities])
        self.high = np.array([each.high for each in quantities])
        self._width = self.high - self.low
        self._refuses = np.array([each.out_of_range == "refuse" for each in quantities])

    def outside(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which values (N, P) are outside their range."""
        return (values < self.low) | (values > self.high)

    def first_refused(self, outside: NDArray[np.bool_]) -> tuple[int, int] | None:
        """Row and column of the first value outside that is refused, not clipped; None where there is none."""
        refused = np.argwhere(outside & self._refuses)
        return (int(refused[0, 0]), int(refused[0, 1])) if len(refused) else None

    def clip(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values (N, P), those outside set to the end of their range."""
        return np.clip(values, self.low, self.high)

    def scale(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values (..., P) to [0, 1] by the ranges; what lies outside is the caller's."""
        scaled: NDArray[np.float64] = (values - self.low) / self._width
        return scaled
