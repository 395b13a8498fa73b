r"""What one fold of a site says of a candidate: counts and sums, never a row; and the score that all sites' make.

Classes: confusion counts (C, C), true class by row. A target: number of rows and sum of their errors (2,), the absolute
error, or of a pinball loss that loss. Both add up over sites, so masked sums over plants serve as well as single ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.evaluation.scores import macro_f1_score
from models.losses.base import Loss
from models.losses.regression import Pinball
from models.multiclass import predict_class, predict_scores


def score_shape(loss: Loss, n_classes: int) -> tuple[int, ...]:
    """Shape of what one fold says of a candidate."""
    return (2,) if loss.task == "regression" else (n_classes, n_classes)


def class_counts(
    weights: FloatArray, features: FloatArray, classes: NDArray[np.intp], n_classes: int,
    row_weights: FloatArray | None = None,
) -> FloatArray:
    """Counts (C, C) of true by told class at weights (K, P + 1)."""
    counts, told = np.zeros((n_classes, n_classes)), predict_class(weights, features)
    np.add.at(counts, (classes, told), 1.0 if row_weights is None else row_weights)
    return counts


def without_rare(counts: FloatArray, least_rows: int) -> FloatArray:
    """Counts (C, C) of rows that were each counted once, 0 for a true class of fewer than ``least_rows`` of them."""
    return np.where(counts.sum(axis=1, keepdims=True) < least_rows, 0.0, counts)


def error_sums(
    weights: FloatArray, features: FloatArray, targets: FloatArray, loss: Loss, row_weights: FloatArray | None = None
) -> FloatArray:
    """Number of rows and sum of their errors, (2,), at weights (1, P + 1)."""
    residuals = predict_scores(weights, features)[:, 0] - targets
    errors = loss.value(residuals) if isinstance(loss, Pinball) else np.abs(residuals)
    counts = np.ones_like(errors) if row_weights is None else row_weights
    return np.array([counts.sum(), counts @ errors])


def fold_score(total: FloatArray, loss: Loss) -> float:
    """Score of the sites' sums, higher is better: macro F-1, or minus the mean error; NaN where nothing was counted."""
    if loss.task == "classification":
        return macro_f1_score(total)
    return -float(total[1] / total[0]) if total[0] > 0 else float("nan")
