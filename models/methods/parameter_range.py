"""Interval of values that a parameter may take."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """Finite values from ``low`` to ``high``; ``open_low``, ``open_high``: without that end; ``whole``: whole ones."""

    low: float
    high: float
    open_low: bool = True
    open_high: bool = False
    whole: bool = False

    def __contains__(self, value: float) -> bool:
        return (
            math.isfinite(value)
            and (value < self.high or not self.open_high and value == self.high)
            and (value > self.low or not self.open_low and value == self.low)
            and (not self.whole or float(value).is_integer())
        )

    def __str__(self) -> str:
        low = "above" if self.open_low else "at or above"
        high = "below" if self.open_high else "at most"
        text = f"{low} {self.low:g}" + (f" and {high} {self.high:g}" if math.isfinite(self.high) else "")
        return f"a whole number {text}" if self.whole else text
