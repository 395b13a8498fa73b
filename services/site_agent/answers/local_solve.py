"""What a task asks of the mathematics: arrays in, arrays of model size out. Knows neither files nor frames."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from models.basics import Arrays, FloatArray, ProblemError
from models.geometry.supports import BoxSupport
from models.losses.joint import JointLoss
from models.methods.catalogue import check_parameters, get_method
from models.methods.guard import Guard
from models.methods.local_sgd.objectives.softmax import cross_entropy
from models.methods.local_sgd.scores_of_all import ScoresObjective, method_of
from models.methods.protocol import Method
from models.methods.row_account import Accounted
from models.multiclass import head_labels
from models.one_vs_rest import OneVsRestServer, accounted_heads, answer_heads_remembering
from models.problem import RobustSpec, SiteProblem
from models.validation import check_site_problem
from models.worst_case.joint_risk import joint_weights
from models.worst_case.radius import LightTail, confidence_radius, estimated_radius, samples_radius
from models.worst_case.risk import site_risk
from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.all_scores import joint_loss
from services.contracts.problems.lift import LiftSpec, draw_lift
from services.contracts.problems.support import scaled_support
from services.contracts.problems.training_spec import SiteRadius, TrainingSpec
from services.site_agent.answers.local_scores import IntArray, scores_at

_RADIUS_DIGITS = 3
"""Of an estimate: resampling leaves it uncertain in the second."""


def rounded_up(value: float, digits: int) -> float:
    """The least number of so many significant digits at or above a value of 0 or more."""
    if value <= 0 or not math.isfinite(value):
        return value
    places = digits - 1 - math.floor(math.log10(value))
    found = float(f"{value:.{digits - 1}e}")
    return found if found >= value else float(f"{found + 10.0**-places:.{digits - 1}e}")


def radius_of(spec: TrainingSpec, features: FloatArray, outcomes: FloatArray | IntArray) -> SiteRadius:
    """Radius of the site's Wasserstein ball by the rule of the problem, for (lifted) features (N, P).

    ``outcomes`` (N,) are class indices or scaled targets, as the loss needs.

    ``ProblemError`` for a rule by confidence that has none.

    An estimate resamples rows from the rule's seed, at the door one of the vault's own in its place, so the same data
    give the same radius. It is told at the join, so it is rounded up to three digits: further ones would be of single
    rows. One estimate serves all heads: a change of class costs a flip, which is at least what it costs in any of them.
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
        radius = rounded_up(found.radius, _RADIUS_DIGITS)
        return SiteRadius(radius=radius, confidence=rule.confidence, radius_is_estimate=True)
    tail = LightTail(rule.tail.exponent, rule.tail.c1, rule.tail.c2, rule.tail.c3)
    radius = confidence_radius(rule.confidence, n_samples, features.shape[1], tail)
    return SiteRadius(radius=radius, confidence=rule.confidence)


def lifted(spec: TrainingSpec, features: FloatArray) -> FloatArray:
    """Scaled features (N, P) as the method sees them; ``LiftMismatchError`` where the lift is not the asked one."""
    lift = draw_lift(spec.lift, features.shape[1])
    return features if lift is None else lift.apply(features)


def lift_box(spec: LiftSpec | None, features: FloatArray) -> BoxSupport | None:
    """Box that holds what a lift makes of any scaled features (N, P); None: no lift, and [0, 1]^P."""
    lift = draw_lift(spec, features.shape[1])
    return None if lift is None else lift.support


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
    if spec.loss.task == "regression" or isinstance(robust.loss, JointLoss):
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
    if isinstance(first.spec.loss, JointLoss) and not whole:
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
