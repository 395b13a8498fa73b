r"""Rows that a combination with any factors isolates: a vector with one or two of the last ones.

Whoever asks by one loss has differences alone, for a row's coefficient is then one of few values, the same at every
point. Of two losses, of two quantiles, or of steps whose number he names, he knows other factors by which the rows that
all of them hold cancel: ``a - b + (p - q) (sum of all)`` of pinball losses at p and q leaves the rows between. So row i
counts where e_i lies in the span of the coefficients of the new vector s and of two others b and d:

    R_i in span(R s, R b, R d),      R (q, N) the sketcher of ``isolation.exposure``

By chance a column comes within an angle of a span of three in eight dimensions with the fifth power of the angle.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from models.basics import FloatArray

UNKNOWN_KIND: Final = 0.0
"""Of vectors of agents that kept no kind."""
ANY_KIND: Final = -1.0
"""Of vectors that are unlike all others and each other: sums over steps, whose number the asker names."""
_ANGLE: Final = 1.5e-5
"""How far e_i may be from the span: what all others weigh beside the row."""
_INSIDE: Final = 1e-9
"""Share of a sketch that must lie outside the span of those before it; less is rounding."""
_ROWS_AT_ONCE: Final = 1024  # so that the products stay in the cache


def unlike(kind: float, others: FloatArray) -> bool:
    """Whether factors are known of a vector of a kind and those of others (m,)."""
    return kind == ANY_KIND or bool((others != kind).any())


def rows_in_spans(sketch: FloatArray, others: FloatArray, rows: FloatArray) -> set[int]:
    """Which of the rows' sketches (N, q) lie in the span of a sketch (q,) and two of the others (m, q) at most."""
    size = float(np.linalg.norm(sketch))
    sizes = np.linalg.norm(others, axis=1)
    if size == 0.0 or not sizes.any():
        return set()
    first = sketch / size
    second = _unit(_without(others, first), sizes)
    second = second[np.square(second).any(axis=1)]
    across = second[np.newaxis] - (second @ second.T)[..., np.newaxis] * second[:, np.newaxis]
    third = _unit(across.reshape(-1, len(first)), np.ones(len(second) ** 2))
    found = set[int]()
    for low in range(0, len(rows), _ROWS_AT_ONCE):
        own = rows[low : low + _ROWS_AT_ONCE]
        left = _without(own, first)
        outside = np.square(left).sum(axis=1)[:, np.newaxis, np.newaxis] - np.square(left @ second.T)[..., np.newaxis]
        outside = outside - np.square(left @ third.T).reshape(len(own), len(second), len(second))
        nearest = outside.min(axis=(1, 2), initial=np.inf)
        found |= {low + int(row) for row in (nearest <= _ANGLE**2 * np.square(own).sum(axis=1)).nonzero()[0]}
    return found


def _without(vectors: FloatArray, direction: FloatArray) -> FloatArray:
    """Vectors (n, q) less their part along a direction (q,) of length 1; twice, for what rounding leaves."""
    for _ in range(2):
        vectors = vectors - (vectors @ direction)[:, np.newaxis] * direction
    return vectors


def _unit(vectors: FloatArray, sizes: FloatArray) -> FloatArray:
    """Vectors (n, q) to length 1; zero where little is left of what was ``sizes`` (n,) long."""
    lengths = np.linalg.norm(vectors, axis=1)
    some = lengths > _INSIDE * sizes
    return np.where(some[:, np.newaxis], vectors / np.where(some, lengths, 1.0)[:, np.newaxis], 0.0)
