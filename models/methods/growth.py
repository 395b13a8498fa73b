"""What a round adds to an array that grows: all that a store needs to know of a method's state."""

from __future__ import annotations

from dataclasses import dataclass

from models.basics import FloatArray


@dataclass(frozen=True)
class Added:
    """Rows along ``axis`` that come after the ``start`` rows that an array had; ``start`` 0: they are all of it."""

    axis: int
    start: int
    rows: FloatArray
