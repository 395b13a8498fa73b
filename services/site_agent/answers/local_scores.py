"""What a site counts of its held-out rows for an evaluation: arrays in, scalars and counts out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, ProblemError
from models.conformal.grid import GRID_NUMBER, counts_at_or_below, score_grid
from models.conformal.scores import class_scores, own_margins, reaches, score_sizes
from models.conformal.spread import SPREAD_GRID_NUMBER, residual_counts
from models.conformal.temperature import confidence_counts
from models.losses.base import Loss, Task
from models.losses.joint import JointLoss
from models.losses.regression import Pinball
from models.methods.local_sgd.objectives.network import NetworkObjective
from models.methods.local_sgd.objectives.softmax import cross_entropy
from models.methods.local_sgd.scores_of_all import ScoresObjective
from models.multiclass import (
    class_of,
    head_labels,
    predict_scores,
)
from models.problem import SiteProblem
from services.contracts.evaluation.calibration import ROWS
from services.contracts.evaluation.scores import REGRESSION_SUMS

IntArray = NDArray[np.intp]


def check_weights(weights: FloatArray | None, n_heads: int, n_features: int) -> FloatArray:
    """Weights (K, P + 1) of an evaluation, or :class:`ProblemError`."""
    wanted = (n_heads, n_features + 1)
    if weights is None or weights.shape != wanted or not np.isfinite(weights).all():
        raise ProblemError(f"an evaluation needs finite weights of shape {wanted}")
    return weights


def scores_at(weights: FloatArray, features: FloatArray, objective: ScoresObjective | None = None) -> FloatArray:
    """Scores (n, K) of features (n, P) under planes (K, P + 1), or the parameters (1, D) of a network."""
    if isinstance(objective, NetworkObjective):
        return objective.scores(weights[0], features)
    return predict_scores(weights, features)


def check_interval(interval: FloatArray | None) -> FloatArray:
    """Ends (2,) of the residuals' interval of an evaluation, or :class:`ProblemError`."""
    if interval is None or interval.shape != (2,) or not np.isfinite(interval).all():
        raise ProblemError("an evaluation of a regression needs an interval of two finite numbers")
    return interval


def check_grid(number: FloatArray, task: Task) -> bool:
    """Whether residuals are to be counted by the estimate too. Grids are fixed: on a finer one a count is a score.

    :class:`ProblemError` for another grid.
    """
    allowed = (GRID_NUMBER, SPREAD_GRID_NUMBER) if task == "regression" else (GRID_NUMBER,)
    if number.shape != () or float(number) not in allowed:
        raise ProblemError(f"held-out scores are counted on grid {' or '.join(map(str, allowed))} alone")
    return float(number) == SPREAD_GRID_NUMBER


def confusion_counts(
    weights: FloatArray, features: FloatArray, classes: IntArray, n_classes: int, least_rows: int,
    objective: ScoresObjective | None = None,
) -> FloatArray:
    """Counts (C, C) of true class by diagnosed class; 0 for a class with fewer than ``least_rows`` rows."""
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (classes, class_of(scores_at(weights, features, objective))), 1.0)
    counts[counts.sum(axis=1) < least_rows] = 0.0
    return counts


def held_out_loss(
    weights: FloatArray, features: FloatArray, outcomes: FloatArray | IntArray, loss: Loss, n_classes: int,
    objective: ScoresObjective | None = None,
) -> FloatArray:
    """Mean loss () of held-out rows (n, P) at weights (K, P + 1), the heads summed; ``outcomes`` as for training."""
    if not len(features):
        return np.array(0.0)
    if objective is not None:
        return np.array(cross_entropy(scores_at(weights, features, objective), outcomes.astype(np.intp))[0])
    scores = predict_scores(weights, features).T
    if loss.task == "regression":
        return np.array(loss.value(scores[0] - outcomes).mean())
    if isinstance(loss, JointLoss):
        return np.array(np.maximum(0.0, 1.0 + own_margins(scores.T, outcomes.astype(np.intp))).mean())
    margins = head_labels(outcomes.astype(np.intp), n_classes) * scores
    return np.array(loss.value(margins).mean(axis=1).sum())


def regression_sums(
    weights: FloatArray, features: FloatArray, targets: FloatArray, interval: FloatArray, quantile: float
) -> dict[str, FloatArray]:
    """Sums over held-out rows (n, P) with scaled targets (n,): the scalars of ``scores.REGRESSION_SUMS``.

    ``interval`` (2,) are the ends of the residual, prediction minus target, whose coverage is counted.
    """
    residuals = predict_scores(weights, features)[:, 0] - targets
    covered = (residuals >= interval[0]) & (residuals <= interval[1])
    sums = (
        float(len(targets)), np.abs(residuals).sum(), np.square(residuals).sum(), targets.sum(),
        np.square(targets).sum(), Pinball(quantile).value(residuals).sum(), covered.sum(),
    )
    return {name: np.array(float(value)) for name, value in zip(REGRESSION_SUMS, sums, strict=True)}


def calibration_counts(
    weights: FloatArray, features: FloatArray, scaled: FloatArray, outcomes: FloatArray | IntArray, task: Task,
    objective: ScoresObjective | None = None,
) -> dict[str, FloatArray]:
    """Whole numbers of held-out rows (n, D), lifted, and (n, P), ``scaled``: what ``calibration_shapes`` says.

    ``outcomes`` (n,) are class indices or scaled targets. Counts are over all rows, of whichever class, so that none of
    them tells of a class with few; the grid is the fixed one, and the task cannot ask for another.
    """
    heads, grid = scores_at(weights, features, objective), score_grid()
    found: dict[str, FloatArray] = {"n_test": np.array(float(len(features)))}
    if task == "regression":
        errors, sizes = heads[:, 0] - outcomes, np.abs(heads[:, 0] - 0.5)
    else:
        scores, classes = class_scores(heads), outcomes.astype(np.intp)
        errors, sizes = own_margins(scores, classes), score_sizes(heads)
        found["confidences"] = confidence_counts(scores)
        found["right"] = np.array(float((scores.argmax(axis=1) == classes).sum()))
    rows = zip(ROWS, (errors, sizes, reaches(scaled)), strict=True)
    return found | {"counts": np.stack([counts_at_or_below(values, grid) for _, values in rows])}


def spread_counts(
    weights: FloatArray, features: FloatArray, targets: FloatArray, training: SiteProblem, least_rows: int = 1
) -> dict[str, FloatArray]:
    """Whole numbers of residuals by tenth of the estimate (``models.conformal.spread``), on the fixed grids.

    Of held-out rows (n, D), lifted, with scaled targets (n,); and, on coarser thresholds, of the training rows, which
    say where the errors are large and how lopsided they are: those of a tenth with ``least_rows`` of them or more, so
    that no few training rows are told apart. ``n_train`` are the training rows that were counted.
    """
    estimates, trained = (predict_scores(weights, rows)[:, 0] for rows in (features, training.features))
    counted = residual_counts(trained, training.labels, coarse=True)
    counted[counted[:, -1] < least_rows] = 0.0
    return {
        "by_estimate": residual_counts(estimates, targets), "training": counted,
        "n_train": np.array(counted[:, -1].sum()),
    }
