"""What a task asks of the mathematics: arrays in, arrays of model size out. Knows neither files nor frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from models.basics import Arrays, FloatArray, ProblemError
from models.conformal.grid import GRID_NUMBER, counts_at_or_below, score_grid
from models.conformal.scores import class_scores, own_margins, reaches, score_sizes
from models.conformal.spread import SPREAD_GRID_NUMBER, residual_counts
from models.conformal.temperature import confidence_counts
from models.geometry.supports import BoxSupport
from models.losses.base import Loss, Task
from models.losses.joint import CrammerSinger
from models.losses.regression import Pinball
from models.methods.catalogue import check_parameters, get_method
from models.methods.guard import Guard
from models.methods.local_sgd.objectives.network import NetworkObjective
from models.methods.local_sgd.objectives.softmax import cross_entropy
from models.methods.local_sgd.scores_of_all import ScoresObjective, method_of
from models.methods.protocol import Method
from models.methods.row_account import Accounted
from models.multiclass import (
    OneVsRestServer,
    accounted_heads,
    answer_heads_remembering,
    class_of,
    head_labels,
    predict_scores,
)
from models.problem import RobustSpec, SiteProblem
from models.validation import check_site_problem
from models.worst_case.joint_risk import joint_weights
from models.worst_case.radius import LightTail, confidence_radius, estimated_radius, samples_radius
from models.worst_case.risk import site_risk
from services.contracts.all_scores import joint_loss
from services.contracts.asset_type import AssetType
from services.contracts.calibration import ROWS
from services.contracts.lift import draw_lift
from services.contracts.messages import SiteRadius, TrainingSpec
from services.contracts.scores import REGRESSION_SUMS
from services.contracts.support import scaled_support

IntArray = NDArray[np.intp]


def radius_of(spec: TrainingSpec, features: FloatArray, outcomes: FloatArray | IntArray) -> SiteRadius:
    """Radius of the site's Wasserstein ball by the rule of the problem, for (lifted) features (N, P).

    ``outcomes`` (N,) are class indices or scaled targets, as the loss needs.

    ``ProblemError`` for a rule by confidence that has none.

    An estimate resamples rows from the rule's seed, so the same data give the same radius. One estimate serves all
    heads: a change of class costs a flip, which is at least what it costs in any of them.
    """
    rule, n_samples = spec.radius, features.shape[0]
    if rule.rule == "fixed":
        return SiteRadius(radius=rule.value)
    if rule.rule == "samples":
        return SiteRadius(radius=samples_radius(rule.value, n_samples))
    if rule.confidence is None:
        raise ProblemError("a radius by confidence needs the confidence")
    if rule.tail is None:
        found = estimated_radius(
            features, outcomes.astype(np.float64), label_flip_cost=spec.label_flip_cost,
            transport_norm=spec.transport_norm, confidence=rule.confidence, seed=rule.seed, task=spec.loss.task,
        )
        return SiteRadius(radius=found.radius, confidence=rule.confidence, radius_is_estimate=True)
    tail = LightTail(rule.tail.exponent, rule.tail.c1, rule.tail.c2, rule.tail.c3)
    radius = confidence_radius(rule.confidence, n_samples, features.shape[1], tail)
    return SiteRadius(radius=radius, confidence=rule.confidence)


def lifted(spec: TrainingSpec, features: FloatArray) -> FloatArray:
    """Scaled features (N, P) as the method sees them; ``LiftMismatchError`` where the lift is not the asked one."""
    lift = draw_lift(spec.lift, features.shape[1])
    return features if lift is None else lift.apply(features)


def join_answer(
    spec: TrainingSpec, features: FloatArray, outcomes: FloatArray | IntArray, check: float = 0.0
) -> dict[str, FloatArray]:
    """What a site says of itself when it joins: scalars about its (lifted) training rows (N, P).

    ``outcomes`` as in :func:`radius_of`; ``check`` is that of the lift.
    """
    found = radius_of(spec, features, outcomes).model_dump()
    scalars = {"n_samples": features.shape[0], "lift_check": check, **found}
    return {name: np.array(float(value or 0.0)) for name, value in scalars.items()}


def site_problems(
    spec: TrainingSpec, features: FloatArray, outcomes: FloatArray | IntArray, asset_type: AssetType
) -> tuple[SiteProblem, ...]:
    """Problem of each head: (lifted) training rows (N, P), ``outcomes`` as in :func:`radius_of`, the site's own ball.

    A regression has one head, its labels are the targets; so have a loss of all scores and all classes as one problem,
    whose labels are class indices.
    Rows that lie outside the support are refused with :class:`ProblemError`.
    """
    robust = robust_spec(spec, features, outcomes, asset_type)
    if spec.loss.of_all_scores:
        return (SiteProblem(features, outcomes.astype(np.float64), robust),)
    if spec.loss.task == "regression" or isinstance(robust.loss, CrammerSinger):
        labels = outcomes.astype(np.float64)[np.newaxis]
    else:
        labels = head_labels(outcomes.astype(np.intp), len(asset_type.fault_classes))
    problems = tuple(SiteProblem(features, row, robust) for row in labels)
    for problem in problems:
        check_site_problem(problem)
    return problems


def robust_spec(
    spec: TrainingSpec, features: FloatArray, outcomes: FloatArray | IntArray, asset_type: AssetType
) -> RobustSpec:
    """The ball with the site's own radius, for (lifted) features (N, P) and ``outcomes`` as in :func:`radius_of`.

    Scaled features lie in the box [0, 1]^P of their sensor ranges, and lifted ones in the box of their lift.
    """
    return RobustSpec(
        radius=radius_of(spec, features, outcomes).radius, label_flip_cost=spec.label_flip_cost,
        transport_norm=spec.transport_norm, fit_intercept=spec.fit_intercept,
        loss=joint_loss(spec, asset_type) or spec.loss.loss,
        support=scaled_support(
            spec.support, asset_type, spec.loss.task, draw_lift(spec.lift, len(asset_type.features))
        ),
    )


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
    """Whether residuals are to be counted by the estimate too. Grids are fixed: on a finer one a count is a score."""
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
    if isinstance(loss, CrammerSinger):
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


def head_risks(
    weights: FloatArray, problems: Sequence[SiteProblem], *, whole: bool = False,
    objective: ScoresObjective | None = None,
) -> FloatArray:
    """Exact worst-case risk (K,) of each head at weights (K, P + 1) on the training rows.

    ``whole``: the weights are as the heads' problems have them, (K, D). With an ``objective`` of all scores, which has
    no ball, its mean loss (1,).
    """
    if objective is not None:
        (rows,) = problems
        return np.array([cross_entropy(scores_at(weights, rows.features, objective), rows.labels.astype(np.intp))[0]])
    first = problems[0]
    if isinstance(first.spec.loss, CrammerSinger) and not whole:
        weights = joint_weights(weights, first.spec.fit_intercept)[np.newaxis]
        whole = True
    return np.array([
        site_risk(row if whole or head.spec.fit_intercept else row[:-1], head).value
        for row, head in zip(weights, problems, strict=True)
    ])


def solve_round(
    method_name: str,
    parameters: Mapping[str, float],
    message: Arrays,
    problems: Sequence[SiteProblem],
    least_rows: int,
    memory: Arrays | None = None,
    guard: Guard | None = None,
    objective: ScoresObjective | None = None,
) -> tuple[Accounted, Arrays]:
    """Answer of the method's site half to K problems, every array with a leading axis K, and its account by rows.

    On sums ``memory`` is what the site remembers of its own answers in the run, which comes back with this one in it;
    None: each answer is seen, and nothing is remembered. ``least_rows`` is the site's own: no step of the method goes
    by fewer of its rows. ``guard`` chooses what leaves in place of a cut that would isolate a row. ``objective``: of
    all scores, what the steps descend on in place of the problem's loss of margins. ``ProblemError``
    for no such method or parameter, or a message that does not fit it; ``RuntimeError`` where the site half gave
    something of another shape than the method states, or not finite: it must not leave.
    """
    method, n_features = get_method(method_name), problems[0].features.shape[1]
    if objective is not None:
        method = method_of(method, objective, n_features)
    complete = {**check_parameters(method, parameters), "least_rows": float(least_rows)}
    for name, array in message.items():
        if not np.isfinite(array).all():
            raise ProblemError(f"message array {name} holds a value that is not finite")
    try:
        if memory is not None:
            answer, memory = answer_heads_remembering(method.site, problems, message, complete, memory, guard)
        else:
            answer = accounted_heads(method.site, problems, message, complete, guard)
    except KeyError as error:
        raise ProblemError(f"the message has no array {error}") from None
    shapes = _stated_shapes(method, complete, problems[0], len(problems), objective)
    _check_answer(answer.arrays, shapes)
    return answer, memory or {}


def _stated_shapes(
    method: Method, parameters: Mapping[str, float], first: SiteProblem, n_heads: int,
    objective: ScoresObjective | None = None,
) -> dict[str, tuple[int, ...]]:
    """Shapes that the method's server half admits; they are asked of it with its parameters and the model's size."""
    n_features = first.features.shape[1]
    boxed = method.place("box") == "box" and isinstance(first.spec.support, BoxSupport)
    dimension = first.dimension if objective is None else objective.size(n_features)
    n_swings = n_features if boxed else 0
    return OneVsRestServer(method.server, n_heads).answer_shapes(dimension, n_swings, parameters)


def _check_answer(answer: Arrays, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """The guard behind every method: nothing leaves that has not the model's shape."""
    found = {name: array.shape for name, array in answer.items()}
    if found != dict(shapes):
        raise RuntimeError(f"the answer has the shapes {found}, the method states {dict(shapes)}")
    for name, array in answer.items():
        if not np.isfinite(array).all():
            raise RuntimeError(f"the answer's array {name} is not finite")
