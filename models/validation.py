"""What makes rows valid training data for a problem, and supports from what a caller states."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from models.basics import FloatArray, ProblemError
from models.geometry.supports import BoxSupport, PolytopeSupport, Support
from models.losses.base import Task
from models.losses.joint import JointLoss
from models.problem import SiteProblem

BOX_TOLERANCE: Final = 1e-9
"""Share of a box side by which a feature may stick out: scaling to a range rounds, and rounding is not a violation."""

_MEAN_TOLERANCE: Final = 1e-9
"""By how much the mean of row weights may differ from 1: a sum over many rows rounds."""


def box_support(support: tuple[ArrayLike, ArrayLike] | None, n_features: int) -> BoxSupport | None:
    """Box from ``(low, high)``, scalars or vectors of shape (P,); None stays None (unbounded).

    :class:`ProblemError` for anything else, or a low that is not below its high.
    """
    if support is None:
        return None
    try:
        low, high = (np.full(n_features, np.asarray(bound, dtype=np.float64)) for bound in support)
    except (TypeError, ValueError):
        raise ProblemError(
            f"support must be None or a pair (low, high) of numbers or of vectors of length {n_features}"
        ) from None
    return BoxSupport(low=low, high=high)


def as_support(support: Support | tuple[ArrayLike, ArrayLike] | None, n_features: int) -> Support | None:
    """A support object as it is, anything else as :func:`box_support` reads it."""
    return support if isinstance(support, BoxSupport | PolytopeSupport) else box_support(support, n_features)


def check_rows(
    features: FloatArray, labels: FloatArray, support: Support | None, task: Task = "classification"
) -> None:
    """Refuse rows that are no training data; the text names shapes and counts, never values.

    ``ProblemError`` for empty data, shapes that do not fit, values that are not finite, labels other than -1 and +1 for
    a classification, or rows outside the support.
    """
    if features.ndim != 2 or labels.ndim != 1 or features.shape[0] != labels.shape[0]:
        raise ProblemError(f"features must be (N, P) and labels (N,), got {features.shape} and {labels.shape}")
    if features.shape[0] == 0 or features.shape[1] == 0:
        raise ProblemError(f"a problem needs at least one row and one feature, got features of shape {features.shape}")
    if not np.isfinite(features).all():
        raise ProblemError(f"features must be finite, {_count(~np.isfinite(features).all(axis=1))} rows are not")
    if task == "regression":
        if not np.isfinite(labels).all():
            raise ProblemError(f"targets must be finite numbers, {_count(~np.isfinite(labels))} rows have another one")
    elif not (labels * labels == 1.0).all():
        raise ProblemError(f"labels must be -1 or +1, {_count(np.abs(labels) != 1.0)} rows have another label")
    if isinstance(support, BoxSupport):
        _check_inside(features, support)
        if task == "regression":
            _check_targets(labels, support)
    elif support is not None:
        _check_polytope(features, labels, support)


def _check_inside(features: FloatArray, support: BoxSupport) -> None:
    if support.low.shape[0] != features.shape[1]:
        raise ProblemError(f"support has {support.low.shape[0]} features, the data have {features.shape[1]}")
    slack = BOX_TOLERANCE * (support.high - support.low)
    if (features.min(axis=0) >= support.low - slack).all() and (features.max(axis=0) <= support.high + slack).all():
        return
    outside = ((features < support.low - slack) | (features > support.high + slack)).any(axis=1)
    raise ProblemError(
        f"{_count(outside)} of {features.shape[0]} rows lie outside the support box; widen it or clip the features"
    )


def _check_targets(targets: FloatArray, support: BoxSupport) -> None:
    width = support.target_high - support.target_low
    slack = BOX_TOLERANCE * (width if np.isfinite(width) else 1.0)
    outside = (targets < support.target_low - slack) | (targets > support.target_high + slack)
    if outside.any():
        raise ProblemError(
            f"{_count(outside)} of {targets.shape[0]} targets lie outside the support "
            f"[{support.target_low:g}, {support.target_high:g}]; widen it or clip the targets"
        )


def _check_polytope(features: FloatArray, labels: FloatArray, support: PolytopeSupport) -> None:
    matrix, limits, column = support.matrix, support.limits, support.target_column
    if matrix.shape[1] != features.shape[1]:
        raise ProblemError(f"the support's matrix has {matrix.shape[1]} columns, the data have {features.shape[1]}")
    values = features @ matrix.T
    lengths = np.abs(matrix).sum(axis=1) + (0.0 if column is None else np.abs(column))
    sizes = np.abs(limits) + np.abs(features) @ np.abs(matrix).T + support.depth * lengths
    if column is not None:
        values = values + np.outer(labels, column)
        sizes = sizes + np.outer(np.abs(labels), np.abs(column))
    outside = (values > limits + BOX_TOLERANCE * sizes).any(axis=1)
    if outside.any():
        raise ProblemError(
            f"{_count(outside)} of {features.shape[0]} rows lie outside the support polytope; "
            "loosen its limits or leave the rows out"
        )


def check_site_problem(problem: SiteProblem) -> None:
    """Refuse rows that do not fit their specification (see :func:`check_rows`), and row weights that are none.

    :class:`ProblemError` says which and what is right.
    """
    loss = problem.spec.loss
    if isinstance(loss, JointLoss):
        check_rows(problem.features, problem.labels, None, "regression")
        if not np.isin(problem.labels, np.arange(loss.n_classes)).all():
            raise ProblemError(f"labels must be class indices from 0 to {loss.n_classes - 1}")
    else:
        check_rows(problem.features, problem.labels, problem.spec.support, loss.task)
    weights = problem.row_weights
    if weights is None:
        return
    if weights.shape != problem.labels.shape:
        raise ProblemError(f"row weights must be ({problem.labels.shape[0]},) like the rows, got {weights.shape}")
    if not ((weights > 0).all() and abs(float(weights.mean()) - 1.0) <= _MEAN_TOLERANCE):
        raise ProblemError("row weights must be above 0 and have the mean 1")


def _count(mask: NDArray[np.bool_] | np.bool_) -> int:
    return int(np.count_nonzero(mask))
