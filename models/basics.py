"""Words that all of the mathematics shares: arrays, transport norms, and the error of a problem without meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Arrays = Mapping[str, FloatArray]
TransportNorm = Literal["l1", "l2", "linf"]


class ProblemError(ValueError):
    """The problem as stated has no meaning; the text says what was wrong and what would be right."""
