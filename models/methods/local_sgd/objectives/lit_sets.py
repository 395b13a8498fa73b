"""Which rows stand for those that light a hidden unit, so that no two units of an answer differ in a few rows.

The slopes of a unit are sums over the rows that light it: of two units that are lit by the same rows but one, the
difference is that row. So each unit is told over a set of rows of which any two are equal or differ in ``least`` rows
at least: its own, or the nearest one that is known. No rows and all rows are known from the start; then, in the order
of the units, every set that is that far from those before it.

Whether a unit is lit goes by readings in steps of a five-hundredth of their range: at which threshold a set changes, or
is another one's, would else tell a reading to all digits.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray

STEPS: Final = 500
"""Of a reading's range [0, 1]: as fine as the guard of a plant hides a row (a five-hundredth of its weight)."""
_NO_ROWS, _ALL_ROWS = -1, -2

Lit = NDArray[np.bool_]


def lit_rows(features: FloatArray, inner: FloatArray, bias: FloatArray) -> Lit:
    """Rows (N, H) that light each unit, features (N, P) in steps of a five-hundredth; U (H, P) and b (H,)."""
    coarse = np.rint(features * STEPS) / STEPS
    return np.asarray(coarse @ inner.T + bias > 0)


def shared_sets(lit: Lit, least: int) -> Lit:
    """Sets (N, H), any two equal or ``least`` rows apart, that stand for the rows that light each unit, (N, H)."""
    if len(lit) < least:
        return np.zeros_like(lit)
    count = lit.sum(axis=0)
    nearest = np.minimum(count, len(lit) - count)
    source = np.where(count <= len(lit) - count, _NO_ROWS, _ALL_ROWS)
    following = 0
    while (far := np.flatnonzero(nearest[following:] >= least)).size:
        unit = following + int(far[0])
        apart = (lit ^ lit[:, [unit]]).sum(axis=0)
        closer = apart < nearest
        nearest[closer], source[closer] = apart[closer], unit
        following = unit + 1
    told = lit[:, np.maximum(source, 0)]
    told[:, source == _NO_ROWS] = False
    told[:, source == _ALL_ROWS] = True
    return told
