r"""One scale for probabilities, from whole numbers that are summed over plants.

    P(class k | x) = exp(a z_k) / sum_j exp(a z_j),    a > 0,

keeps the order of the classes. The most probable class has probability ``p_a(x) = max_k P``; its sum over the held-out
rows grows with a, and the scale is the one at which it is the number of rows that were told right:

    sum_i p_a(x_i) = right          (matching of confidence and accuracy: Clarte, Loureiro, Krzakala, Zdeborova 2023)

with ``(right + 1) / (n + 2)`` in place of ``right / n``, so that separated classes have a finite scale too. Plants tell
the sum at fixed scales, rounded to whole rows, and how many were right: one exchange, and counts alone.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from models.basics import FloatArray
from models.losses.exponentials import softmax

SCALES: Final = tuple(float(scale) for scale in 2.0 ** (np.arange(33) / 2.0 - 6.0))
"""The scales: 2^-6 to 2^10 in steps of the root of 2."""


def confidence_counts(scores: FloatArray) -> FloatArray:
    """Sum of the largest probability over rows of class scores (n, C) at each of the scales, to whole rows: (S,)."""
    return np.array([np.rint(softmax(scale * scores).max(axis=1).sum()) for scale in SCALES])


def matched_scale(confidences: FloatArray, right: float, n: float) -> float | None:
    """Scale at which the mean confidence is the accuracy, between two of the scales by interpolation; None: no rows."""
    if n <= 0:
        return None
    wanted = (right + 1.0) / (n + 2.0)
    mean = np.maximum.accumulate(confidences) / n
    place = int(np.searchsorted(mean, wanted))
    if place == 0 or place == len(SCALES):
        return SCALES[min(place, len(SCALES) - 1)]
    low, high = mean[place - 1], mean[place]
    part = (wanted - low) / (high - low)
    return float(np.exp((1.0 - part) * np.log(SCALES[place - 1]) + part * np.log(SCALES[place])))


def scaled_probabilities(scores: FloatArray, scale: float) -> FloatArray:
    """Probability of each class (n, C) from class scores (n, C)."""
    return softmax(scale * scores)
