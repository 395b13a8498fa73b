"""Rows that differences of answers isolate, by the definition: one combination after the other."""

from __future__ import annotations

import itertools

import numpy as np


def alone(vector: np.ndarray, near: float = 1.4e-5) -> set[int]:
    """The row that a combination leaves alone, by the definition."""
    size = np.abs(vector)
    row = int(size.argmax())
    left = np.delete(size, row)
    return {row} if size[row] > 1e-9 and np.sqrt((left**2).sum()) <= near * size[row] else set()


def searched(vectors: np.ndarray) -> tuple[set[int], set[int]]:
    """Rows that pairs isolate, and pairs of pairs, one combination after the other."""
    known = [np.zeros(vectors.shape[1]), *vectors]
    pairs = [a - b for a, b in itertools.combinations(known, 2)]
    first = set().union(*(alone(each, 0.02) for each in pairs))
    signed = itertools.combinations(pairs, 2)
    return first, first.union(*(alone(a - b) | alone(a + b) for a, b in signed))


def activity(n_vectors: int, n_rows: int, seed: int) -> np.ndarray:
    """Coefficients like those of a hinge: nearly the same rows are active in all of them."""
    rng = np.random.default_rng(seed)
    start = rng.integers(0, 2, n_rows).astype(float)
    vectors = []
    for _ in range(n_vectors):
        start = start.copy()
        changed = rng.integers(0, n_rows, rng.integers(1, 4))
        start[changed] = rng.choice([0.0, 1.0, 0.37], changed.size)
        vectors.append(start / n_rows)
    return np.stack(vectors)
