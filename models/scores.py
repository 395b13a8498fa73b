"""Scores of a classifier from its confusion counts."""

from __future__ import annotations

import numpy as np

from models.problem import FloatArray, ProblemError


def f1_score(confusion: FloatArray) -> float:
    """F-1 from a confusion matrix, shape (C, C), true class by row and predicted class by column.

    Two classes: ``2 TP / (2 TP + FP + FN)`` of the second class, the fault. More: its mean over the classes that
    occur (macro F-1). NaN when no row was counted.
    """
    if confusion.ndim != 2 or confusion.shape[0] != confusion.shape[1] or (confusion < 0).any():
        raise ProblemError("confusion must be a square matrix of counts at or above 0")
    if confusion.sum() == 0:
        return float("nan")
    hits = np.diag(confusion)
    mistakes = confusion.sum(axis=0) + confusion.sum(axis=1) - 2 * hits
    occurs = 2 * hits + mistakes > 0
    scores = np.divide(2 * hits, 2 * hits + mistakes, out=np.zeros_like(hits), where=occurs)
    return float(scores[1]) if len(scores) == 2 else float(scores[occurs].mean())


def correct_rate(confusion: FloatArray) -> float:
    """Mean over the classes that occur of the share of their rows that were classified correctly (mCCR)."""
    totals = confusion.sum(axis=1)
    occurs = totals > 0
    return float((np.diag(confusion)[occurs] / totals[occurs]).mean()) if occurs.any() else float("nan")
