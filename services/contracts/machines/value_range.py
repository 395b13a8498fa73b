"""Ranges in which measured values lie: what is outside of them, and how values inside are scaled to [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from services.contracts.base import COLUMN_PATTERN, Contract

_SINGLE = 2.0**-24
"""Relative rounding of single precision, in which historians store: of a sensor at 0.3, its end, comes 0.30000001."""


class ValueRange(Contract):
    """A quantity by its name, the range in which it can lie, and what to do with a value outside."""

    name: str = Field(pattern=COLUMN_PATTERN)
    low: float
    high: float
    out_of_range: Literal["clip", "refuse"] = "clip"
    description: str = ""

    @model_validator(mode="after")
    def _range_is_one(self) -> Self:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"{self.name}: its range needs finite low < high, got {self.low}, {self.high}")
        if not (math.isfinite(self.high - self.low) and math.isfinite(self.high + self.low)):
            raise ValueError(f"{self.name}: its range is too wide for a float64, got {self.low:g}, {self.high:g}")
        return self

    @property
    def width(self) -> float:
        """Width of the range, in the unit."""
        return self.high - self.low

    @property
    def is_log(self) -> bool:
        """Whether values are scaled by their logarithms."""
        return False

    @property
    def middle(self) -> float:
        """The value that is scaled to 1/2: halfway, or of logarithms the geometric mean of the ends."""
        return math.sqrt(self.low) * math.sqrt(self.high) if self.is_log else (self.low + self.high) / 2.0


class Ranges:
    """The ranges of P quantities, for values (N, P) in their units; NaN is no value, and is left as it is.

    A value v in [low, high] is scaled to ``(v - low) / (high - low)``, or, by its logarithm, to ``ln(v / low) /
    ln(high / low)``. ``is_log`` (P,) says which, ``middle`` (P,) is what 1/2 comes from. ``start`` and ``width`` (P,)
    are low, or its logarithm, and the length from there to the other end.
    """

    def __init__(self, quantities: Sequence[ValueRange]) -> None:
        self.low = np.array([each.low for each in quantities])
        self.high = np.array([each.high for each in quantities])
        self.is_log = np.array([each.is_log for each in quantities])
        self.middle = np.array([each.middle for each in quantities])
        self.start = self._turned(self.low)
        self.width = self._turned(self.high) - self.start
        with np.errstate(over="ignore"):  # of the largest number that there is
            self._least: NDArray[np.float64] = self.low - np.abs(self.low) * _SINGLE
            self._most: NDArray[np.float64] = self.high + np.abs(self.high) * _SINGLE
        self._refuses = np.array([each.out_of_range == "refuse" for each in quantities])

    def outside(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which values (N, P) are outside their range, by more than an end of it loses in single precision."""
        return (values < self._least) | (values > self._most)

    def first_refused(self, outside: NDArray[np.bool_]) -> tuple[int, int] | None:
        """Row and column of the first value outside that is refused, not clipped; None where there is none."""
        refused = np.argwhere(outside & self._refuses)
        return (int(refused[0, 0]), int(refused[0, 1])) if len(refused) else None

    def clip(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values (N, P), those outside set to the end of their range."""
        return np.clip(values, self.low, self.high)

    def scale(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values (..., P) to [0, 1] by the ranges; what lies outside is the caller's."""
        scaled: NDArray[np.float64] = (self._turned(values) - self.start) / self.width
        return scaled

    def unscale(self, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values (..., P) in their units; :meth:`scale` the other way round."""
        values = np.asarray(self.start + self.width * scaled)
        values[..., self.is_log] = np.exp(values[..., self.is_log])
        return values

    def _turned(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values, or their logarithms where a range is scaled so."""
        if not self.is_log.any():
            return values
        turned = values.copy()
        turned[..., self.is_log] = np.log(values[..., self.is_log])
        return turned
