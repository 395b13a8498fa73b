"""Scores of a classifier from its confusion counts."""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray, ProblemError


def f1_score(confusion: FloatArray) -> float:
    """F-1 from a confusion matrix, shape (C, C), true class by row and predicted class by column.

    Of one class: ``2 TP / (2 TP + FP + FN)``. Two classes: that of the second one, the fault, or where no row is faulty
    that of the first. More: its mean over the classes that rows have (macro F-1); a class that was only predicted, of
    which there is no row, costs the others their hits and adds no term of its own. NaN when no row was counted.
    """
    scores = _class_scores(confusion)
    if not scores.size:
        return float("nan")
    return float(scores[-1] if len(confusion) == 2 else scores.mean())


def macro_f1_score(confusion: FloatArray) -> float:
    """Mean F-1 over the classes that rows have, of two classes as of more; NaN when no row was counted.

    Where most rows are faulty, :func:`f1_score` of two classes hardly moves when the healthy ones are all missed.
    """
    scores = _class_scores(confusion)
    return float(scores.mean()) if scores.size else float("nan")


def _class_scores(confusion: FloatArray) -> FloatArray:
    """F-1 of each class that rows have, in the order of the classes."""
    if confusion.ndim != 2 or confusion.shape[0] != confusion.shape[1] or (confusion < 0).any():
        raise ProblemError("confusion must be a square matrix of counts at or above 0")
    totals, hits = confusion.sum(axis=1), np.diag(confusion)
    held = totals > 0
    scores = np.divide(2 * hits, totals + confusion.sum(axis=0), out=np.zeros_like(hits), where=held)
    return np.asarray(scores[held])


def class_recalls(confusion: FloatArray) -> FloatArray:
    """Share of each class's rows that were classified correctly, (C,), from a confusion matrix; NaN without rows."""
    totals = confusion.sum(axis=1)
    return np.asarray(np.divide(np.diag(confusion), totals, out=np.full_like(totals, np.nan), where=totals > 0))
