"""The attacks on vectors: each gives the rows that it finds; a cosine within 1e-10 of 1 counts as found."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from models.basics import FloatArray

NEAR = 1e-10
LATEST = 20  # vectors whose differences are held to one another: 210 pairs
_PER_CHUNK = 20_000  # directions held to all rows at once


def rows_along(vectors: FloatArray, rows: FloatArray) -> set[int]:
    """Rows (N, D) of which some vector (M, D) is a multiple."""
    sizes = np.linalg.norm(vectors, axis=1)
    large = sizes > 1e-11
    if not large.any():
        return set()
    directions = vectors[large] / sizes[large, None]
    whole = rows / np.linalg.norm(rows, axis=1)[:, None]
    found: set[int] = set()
    for chunk in np.array_split(directions, max(1, len(directions) // _PER_CHUNK)):
        found.update(np.flatnonzero((np.abs(chunk @ whole.T) >= 1.0 - NEAR).any(axis=0)).tolist())
    return found


def pairs_of(vectors: FloatArray) -> FloatArray:
    """Every difference of two of the vectors and zero."""
    known = np.vstack([np.zeros(vectors.shape[1]), vectors])
    first, second = np.triu_indices(len(known), 1)
    return np.asarray(known[first] - known[second])


def pairwise(vectors: FloatArray, rows: FloatArray) -> set[int]:
    """Rows that are a difference of two vectors."""
    return rows_along(pairs_of(vectors), rows) if len(vectors) else set()


def differences(vectors: FloatArray, rows: FloatArray) -> set[int]:
    """Rows that are a difference of differences of the latest vectors, or of two of all."""
    found = pairwise(vectors, rows)
    if not len(vectors):
        return found
    pairs = pairs_of(vectors[-LATEST:])
    for number, each in enumerate(pairs):
        found |= rows_along(np.vstack([pairs[: number + 1] - each, pairs[: number + 1] + each]), rows)
    return found


def span(coefficients: FloatArray, rows: FloatArray) -> set[int]:
    """Rows that a linear combination gives, for one who knows every coefficient (M, N): an upper bound."""
    if not len(coefficients):
        return set()
    recovered = np.linalg.pinv(coefficients, rcond=1e-9) @ (coefficients @ rows)
    return {row for row in range(len(rows)) if row in rows_along(recovered[row][None], rows)}


def bisection(ask: Callable[[float], FloatArray | None], questions: int) -> FloatArray:
    """Vectors that a coordinator gets by halving a threshold along one feature where two answers differ.

    ``ask`` gives the vector at a threshold, None where it is refused.
    """
    low, high = -0.1, 1.1
    ends = ask(low), ask(high)
    asked = [each for each in ends if each is not None]
    open_parts = [(low, ends[0], high, ends[1])]
    while open_parts and len(asked) < questions:
        left, before, right, after = open_parts.pop(0)
        if before is None or after is None or np.abs(before - after).max() < 1e-12 or right - left < 1e-9:
            continue
        middle = 0.5 * (left + right)
        here = ask(middle)
        if here is None:
            continue
        asked.append(here)
        open_parts += [(left, before, middle, here), (middle, here, right, after)]
    return np.array(asked)
