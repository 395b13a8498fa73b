r"""Exact worst-case risk of the losses of several classes as one problem: Crammer-Singer hinge, and softmax.

    L(x, y; W) = max_{k != y} max(0, 1 + s_k(x) - s_y(x)),      s_k(x) = <w_k, x> + b_k   (Crammer and Singer 2001)
    L(x, y; W) = log sum_k exp(s_k(x) - s_y(x))                                           (softmax)

over the ball of distributions within ``radius`` of the rows, a move costing ``||x - x'|| + kappa 1[y != y']``. By
duality the worst case is ``inf_{lam >= 0} lam radius + mean_i max_{y'} sup_x' (L(x', y') - lam ||x' - x_i|| - lam kappa
1[y' != y_i])``. Features have no bounds, and far out L is the maximum of functions that are affine in x with slopes
``w_k - w_y'``, and nowhere steeper, so the inner supremum is ``L(x_i, y')`` where ``lam >= ||w_k - w_y'||_*`` for all
k, and infinite elsewhere:

    r(W) = min_{lam >= l(W)} lam radius + mean_i max(L_i, M_i - kappa lam),      l(W) = max_{k, l} ||w_k - w_l||_*,

with ``L_i = L(x_i, y_i)`` and ``M_i = max_{y'} L(x_i, y')``, of the hinge ``1 + max_k s_k(x_i) - min_l s_l(x_i)``: the
label that costs most is that of the least score. Nothing is relaxed, so the value is exact on unbounded features, and
above the risk on any support. With labels that do not flip (kappa infinite) only the classes that the rows have can
stand for l.

What is bought at a price is as for two classes (``models.worst_case.label_flips``), with ``M_i - L_i`` for what a flip
adds. At an optimal price the subgradient is the mean over the rows of those of L_i or M_i, each as often as it is
bought, and the radius that is left times a subgradient of l; r is convex, so it gives a cut. With two classes and
``W = (-w/2, w/2)`` all of it is the hinge, or the logistic loss, of the margin.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, ProblemError
from models.geometry.norms import dual_norms, steepest_move
from models.losses.joint import JointLoss, Softmax
from models.problem import SiteProblem
from models.worst_case.label_flips import buy_flips
from models.worst_case.saddle_point import RiskEvaluation

IntArray = NDArray[np.intp]


def class_planes(weights: FloatArray, n_classes: int, n_features: int, fit_intercept: bool) -> FloatArray:
    """Planes (C, P + 1), the intercept last (0 without one), of a vector (D,): slopes row by row, then intercepts.

    :class:`ProblemError` where it has another length.
    """
    split = n_classes * n_features
    if weights.shape != (split + n_classes * int(fit_intercept),):
        raise ProblemError(f"{n_classes} planes of {n_features} features do not make a vector {weights.shape}")
    last = weights[split:] if fit_intercept else np.zeros(n_classes)
    return np.hstack([weights[:split].reshape(n_classes, n_features), last[:, None]])


def joint_planes(weights: FloatArray, loss: JointLoss, n_features: int, fit_intercept: bool) -> FloatArray:
    """Planes (C, P + 1) of the loss's weights (D,): that of class 0 is 0."""
    others = class_planes(weights, loss.planes, n_features, fit_intercept)
    return np.vstack([np.zeros(n_features + 1), others])


def joint_weights(planes: FloatArray, fit_intercept: bool) -> FloatArray:
    """The loss's weights (D,) of planes (C, P + 1): counted from the plane of class 0."""
    others = planes[1:] - planes[0]
    return np.concatenate([others[:, :-1].ravel(), *([others[:, -1]] if fit_intercept else [])])


def check_classes(problem: SiteProblem, n_classes: int) -> IntArray:
    """Labels as class indices; ``ProblemError`` for others, and for a support: the risk is that of free features."""
    if problem.spec.support is not None:
        raise ProblemError("the risk of all classes is for features without bounds: leave the support out")
    classes = problem.labels.astype(np.intp)
    if n_classes < 2 or not ((classes == problem.labels) & (classes >= 0) & (classes < n_classes)).all():
        raise ProblemError(f"labels must be class indices from 0 to {n_classes - 1}")
    return classes


def steepest_pair(slopes: FloatArray, from_class: IntArray, problem: SiteProblem) -> tuple[float, int, int]:
    """Largest dual norm of a difference of two slopes (C, P), and its classes: from which, and to which."""
    apart = dual_norms(slopes[None, :, :] - slopes[from_class][:, None, :], problem.spec.transport_norm)
    start, end = np.unravel_index(int(apart.argmax()), apart.shape)
    return float(apart[start, end]), int(from_class[start]), int(end)


class _RowLosses(NamedTuple):
    """Losses (N,) of the rows, and the subgradients (N, C) in their scores."""

    losses: FloatArray
    coefficients: FloatArray


def _crammer_singer(scores: FloatArray, classes: IntArray) -> tuple[_RowLosses, _RowLosses]:
    """The hinge of scores (N, C) with the labels as they are, and with the one that costs most."""
    rows = np.arange(len(classes))
    rivals = 1.0 + scores
    rivals[rows, classes] = scores[rows, classes]
    best = rivals.argmax(axis=1)
    high, low = scores.argmax(axis=1), scores.argmin(axis=1)
    high = np.where(high == low, (low + 1) % scores.shape[1], high)  # all scores are one
    found = []
    for losses, up, down in (
        (rivals[rows, best] - scores[rows, classes], best, classes),
        (1.0 + scores[rows, high] - scores[rows, low], high, low),
    ):
        coefficients = np.zeros_like(scores)
        np.add.at(coefficients, (rows, up), 1.0)
        np.add.at(coefficients, (rows, down), -1.0)
        found.append(_RowLosses(losses, coefficients))
    return found[0], found[1]


def _softmax(scores: FloatArray, classes: IntArray) -> tuple[_RowLosses, _RowLosses]:
    """The same of the negative log likelihood."""
    rows, high = np.arange(len(classes)), scores.max(axis=1, keepdims=True)
    powers = np.exp(scores - high)
    total = powers.sum(axis=1, keepdims=True)
    height = (high + np.log(total))[:, 0]
    found = []
    for label in (classes, scores.argmin(axis=1)):
        coefficients = powers / total
        coefficients[rows, label] -= 1.0
        found.append(_RowLosses(height - scores[rows, label], coefficients))
    return found[0], found[1]


def risk_of_planes(
    planes: FloatArray, problem: SiteProblem
) -> tuple[float, float, FloatArray, FloatArray]:
    """Risk at planes (C, P + 1), price, subgradient (C, P + 1), and the rows' coefficients (N, C) in it."""
    n_classes = planes.shape[0]
    classes, spec, features = check_classes(problem, n_classes), problem.spec, problem.features
    slopes, scores = planes[:, :-1], features @ planes[:, :-1].T + planes[:, -1]
    told, flipping = (_softmax if isinstance(spec.loss, Softmax) else _crammer_singer)(scores, classes)
    from_class = np.arange(n_classes) if np.isfinite(spec.label_flip_cost) else np.unique(classes)
    steep, start, end = steepest_pair(slopes, from_class, problem)
    flips = buy_flips(flipping.losses - told.losses, spec.radius, spec.label_flip_cost, steep, problem.row_weights)
    count = len(classes)
    value = float(problem.weigh(told.losses).sum() + flips.added) / count + steep * flips.leftover
    shares = flips.shares(count)[:, None]
    coefficients = (1.0 - shares) * told.coefficients + shares * flipping.coefficients
    coefficients *= problem.counts[:, None] / count
    slope = coefficients.T @ features
    move = flips.leftover * steepest_move(slopes[end] - slopes[start], spec.transport_norm)
    slope[end] += move
    slope[start] -= move
    return value, steep, np.column_stack([slope, coefficients.sum(axis=0)]), coefficients


def evaluate_joint(weights: FloatArray, problem: SiteProblem) -> RiskEvaluation:
    """Worst-case risk at the weights (D,) of a :class:`models.losses.joint.JointLoss`; the slope is whole.

    ``rows`` (C - 1, N): the slope of a class is a sum over the rows of its own.

    :class:`ProblemError` for weights of another length.
    """
    loss, spec = problem.spec.loss, problem.spec
    assert isinstance(loss, JointLoss)
    if weights.shape != (problem.dimension,):
        raise ProblemError(f"weights must have shape ({problem.dimension},), got {weights.shape}")
    planes = joint_planes(weights, loss, problem.features.shape[1], spec.fit_intercept)
    value, price, gradient, coefficients = risk_of_planes(planes, problem)
    slope = np.concatenate([gradient[1:, :-1].ravel(), *([gradient[1:, -1]] if spec.fit_intercept else [])])
    return RiskEvaluation(value, price, slope, 0.0, 0.0, rows=np.ascontiguousarray(coefficients[:, 1:].T))
