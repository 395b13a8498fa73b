r"""Nonconformity: how little an outcome goes with what the model says. Larger is stranger.

    class c:    s_c(x) = max_{k != c} z_k(x) - z_c(x)     the largest rival's score less its own
    target y:   r(x, y) = f(x) - y                        the residual, in scaled units

The margin needs no probabilities, so no exchange before the counts; with two classes every monotone score of the plane
gives the same sets. The two measures of strangeness of a row as such, whatever its outcome:

    size:    max_k |z_k(x)|            a score larger than those of the rows at hand
    reach:   ||x - 1/2||_2             far from the middle of the sensor ranges, in scaled features
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray


def class_scores(head_scores: FloatArray) -> FloatArray:
    """Scores (n, C) of the classes from those of the heads (n, K): two classes share one plane."""
    return np.hstack([-head_scores, head_scores]) if head_scores.shape[1] == 1 else head_scores


def class_margins(scores: FloatArray) -> FloatArray:
    """Nonconformity s (n, C) of every class from class scores (n, C), C >= 2."""
    order = np.sort(scores, axis=1)
    best, second = order[:, -1:], order[:, -2:-1]
    is_best = np.arange(scores.shape[1]) == scores.argmax(axis=1)[:, None]
    return np.where(is_best, second, best) - scores


def own_margins(scores: FloatArray, classes: NDArray[np.intp]) -> FloatArray:
    """Nonconformity (n,) of each row's own class."""
    return np.asarray(class_margins(scores)[np.arange(len(scores)), classes])


def class_sets(scores: FloatArray, threshold: float) -> NDArray[np.bool_]:
    """Classes whose nonconformity is at or below the threshold, (n, C); the most likely one is always there."""
    held = class_margins(scores) <= threshold
    held[np.arange(len(scores)), scores.argmax(axis=1)] = True
    return held


def score_sizes(head_scores: FloatArray) -> FloatArray:
    """Largest absolute score (n,) of the heads (n, K)."""
    return np.asarray(np.abs(head_scores).max(axis=1))


def reaches(scaled: FloatArray) -> FloatArray:
    """Distance (n,) of scaled features (n, P) from the middle of their ranges."""
    return np.asarray(np.linalg.norm(scaled - 0.5, axis=1))
