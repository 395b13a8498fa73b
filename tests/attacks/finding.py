"""The attacks: each gives the rows (of one site) that it finds; a cosine within 1e-10 of 1 counts as found."""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray
from models.methods.site_answers import RiskSite
from models.problem import SiteProblem

NEAR = 1e-10
LATEST = 24  # vectors whose differences are held to one another: 276 pairs
QUESTIONS = 600  # of the bisection


def rows_along(vectors: FloatArray, rows: FloatArray) -> set[int]:
    """Rows (N, D) of which some vector (M, D) is a multiple."""
    sizes = np.linalg.norm(vectors, axis=1)
    large = sizes > 1e-11
    if not large.any():
        return set()
    directions = vectors[large] / sizes[large, None]
    whole = rows / np.linalg.norm(rows, axis=1)[:, None]
    found: set[int] = set()
    for chunk in np.array_split(directions, max(1, len(directions) // 20_000)):
        found.update(np.flatnonzero((np.abs(chunk @ whole.T) >= 1.0 - NEAR).any(axis=0)).tolist())
    return found


def pairs_of(vectors: FloatArray) -> FloatArray:
    """Every difference of two of the vectors and zero."""
    known = np.vstack([np.zeros(vectors.shape[1]), vectors])
    first, second = np.triu_indices(len(known), 1)
    return np.asarray(known[first] - known[second])


def pairwise(vectors: FloatArray, rows: FloatArray) -> set[int]:
    """Rows that are a difference of two vectors."""
    return rows_along(pairs_of(vectors), rows)


def differences(vectors: FloatArray, rows: FloatArray) -> set[int]:
    """Rows that are a difference of differences of the latest vectors."""
    pairs = pairs_of(vectors[-LATEST:])
    found = pairwise(vectors, rows)
    for each in pairs:
        found |= rows_along(np.vstack([pairs - each, pairs + each]), rows)
    return found


def span(vectors: FloatArray, coefficients: FloatArray, rows: FloatArray) -> set[int]:
    """Rows that a linear combination gives, for one who knows every coefficient (M, N): an upper bound."""
    recovered = np.linalg.pinv(coefficients, rcond=1e-9) @ vectors
    return {row for row in range(len(rows)) if row in rows_along(recovered[row][None], rows)}


def bisection(problem: SiteProblem, rows: FloatArray, steepness: float) -> set[int]:
    """Rows that a coordinator gets by steep questions along one feature, halving where two answers differ."""

    def slope(threshold: float) -> FloatArray:
        plane = np.zeros(rows.shape[1])
        plane[0], plane[-1] = steepness, -steepness * threshold
        return RiskSite().answer(problem, {"point": plane}, {})["slope"]

    low, high = -0.1, 1.1
    open_parts, asked = [(low, slope(low), high, slope(high))], [slope(low), slope(high)]
    while open_parts and len(asked) < QUESTIONS:
        left, before, right, after = open_parts.pop(0)
        if np.abs(before - after).max() < 1e-12 or right - left < 1e-9:
            continue
        middle = 0.5 * (left + right)
        here = slope(middle)
        asked.append(here)
        open_parts += [(left, before, middle, here), (middle, here, right, after)]
    return pairwise(np.array(asked), rows)


def dropped(sums: FloatArray, sums_without: FloatArray, rows: FloatArray) -> set[int]:
    """Rows that the sums over all plants and over all but one give, asked the same questions: pairs of the one's."""
    return pairwise(sums - sums_without, rows)


