"""Classes by separating planes: how many, the labels of each, and the class that their scores say.

Two classes make one head, the second class (the fault) being +1. C > 2 classes make C heads, class k against the rest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, ProblemError


def n_heads(n_classes: int) -> int:
    """Number of separating planes for C classes. :class:`ProblemError` for fewer than two."""
    if n_classes < 2:
        raise ProblemError(f"a classifier needs at least two classes, got {n_classes}")
    return 1 if n_classes == 2 else n_classes


def head_labels(class_indices: NDArray[np.intp], n_classes: int) -> FloatArray:
    """Labels -1/+1 of every head, shape (K, N), from class indices (N,) in 0..C-1.

    :class:`ProblemError` for anything else.
    """
    indices = np.asarray(class_indices)
    if indices.ndim != 1 or (indices < 0).any() or (indices >= n_classes).any():
        raise ProblemError(f"class indices must be a vector of integers from 0 to {n_classes - 1}")
    positive = np.array([1]) if n_heads(n_classes) == 1 else np.arange(n_classes)
    return np.where(indices[None, :] == positive[:, None], 1.0, -1.0)


def predict_scores(weights: FloatArray, features: FloatArray) -> FloatArray:
    """Scores (n, K) of features (n, P) under planes (K, P + 1), the intercept last.

    :class:`ProblemError` where they do not fit.
    """
    if weights.ndim != 2 or features.ndim != 2 or weights.shape[1] != features.shape[1] + 1:
        raise ProblemError(f"weights must be (K, P + 1) and features (n, P), got {weights.shape} and {features.shape}")
    return np.asarray(features @ weights[:, :-1].T + weights[:, -1])


def predict_class(weights: FloatArray, features: FloatArray) -> NDArray[np.intp]:
    """Class index of each row (n,): the sign of the one head, else the head with the highest score."""
    return class_of(predict_scores(weights, features))


def class_of(scores: FloatArray) -> NDArray[np.intp]:
    """Class index (n,) of scores (n, K), as :func:`predict_class` has it."""
    return (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)
