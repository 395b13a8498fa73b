r"""Probabilities from scores by one scale, found on rows that the scores' model did not see.

    P(class k | x) = exp(a z_k) / sum_j exp(a z_j),   z the scores of the heads, (0, score) for two classes, a > 0.

One positive scale keeps the order of the classes, so the most probable class is the predicted one. It is the maximum
likelihood scale of the scores out of fold (temperature scaling, Guo et al. 2017), with targets drawn in as Platt (1999)
does, ``(n_k + 1) / (n_k + 2)`` for the row's own class of n_k rows, so that separated classes have a finite scale too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from models.basics import FloatArray
from models.estimators.folds import with_whole_machines
from models.estimators.table import Table
from models.losses.exponentials import softmax

_SMALLEST = 1e-6
"""Least scale, times the largest score: where scores tell nothing, all classes are about as probable."""


def deal_folds(table: Table, n_folds: int) -> NDArray[np.intp]:
    """Fold of each row (N,), -1 for rows that are never held out.

    Equal rows go together, and the rows of a class at a site are dealt in turn, so that each fold leaves some of them;
    where a class has a single row at a site, that row stays. Whole machines where they are named.
    """
    first, which = table.same_rows()
    _, cell = np.unique(np.column_stack([table.site, table.outcomes])[first], axis=0, return_inverse=True)
    order = np.argsort(cell, kind="stable")
    folds = np.empty(first.shape[0], dtype=np.intp)
    folds[order] = np.arange(first.shape[0]) % n_folds
    folds[np.bincount(cell)[cell] == 1] = -1
    return with_whole_machines(folds[which], table, table.outcomes.astype(np.intp), n_folds)


def scores_of_classes(scores: FloatArray) -> FloatArray:
    """Scores (n, C) of the classes from those of the heads (n, K): of two classes the first has 0."""
    return np.column_stack([np.zeros(scores.shape[0]), scores]) if scores.shape[1] == 1 else scores


def likely_scale(scores: FloatArray, classes: NDArray[np.intp], counts: FloatArray) -> float:
    """Maximum likelihood scale of scores (n, C) for classes (n,) that count so often (n,); 1 without rows or scores."""
    size = float(np.abs(scores - scores.mean(axis=1, keepdims=True)).max(initial=0.0))
    if size == 0:
        return 1.0
    own = np.bincount(classes, counts, scores.shape[1])[classes]
    own = (own + 1.0) / (own + 2.0)
    targets = np.repeat(((1.0 - own) / (scores.shape[1] - 1))[:, None], scores.shape[1], axis=1)
    targets[np.arange(classes.shape[0]), classes] = own

    def slope(scale: float) -> float:
        return float(counts @ ((softmax(scale * scores) - targets) * scores).sum(axis=1))

    low, high = _SMALLEST / size, 1.0 / size
    if slope(low) >= 0:
        return low
    while slope(high) < 0:
        high *= 2.0
    return float(brentq(slope, low, high, xtol=1e-14 / size, rtol=1e-12))


def probabilities(scores: FloatArray, scale: float) -> FloatArray:
    """Probability of each class (n, C) from scores (n, C)."""
    return softmax(scale * scores)
