"""What a task asks of the mathematics: arrays in, arrays of model size out. Knows neither files nor frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.methods.base import Method
from models.problem import (
    Arrays,
    BoxSupport,
    FloatArray,
    ProblemError,
    RobustSpec,
    ServerProblem,
    SiteProblem,
    SiteTerms,
)
from services.contracts.lift import draw_lift
from services.contracts.messages import TrainingSpec

IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class SiteRadius:
    """Radius of the site's ball, the confidence that it stands for (0: none is claimed), and whether it is a guess."""

    radius: float
    confidence: float = 0.0
    is_estimate: bool = False


def radius_of(spec: TrainingSpec, features: FloatArray, classes: IntArray) -> SiteRadius:
    """Radius of the site's Wasserstein ball by the rule of the problem, for (lifted) features (N, P).

    An estimate resamples rows from the rule's seed, so the same data give the same radius. One estimate serves all
    heads: a change of class costs a flip, which is at least what it costs in any of them.
    """
    from models.radius import LightTail, confidence_radius, estimated_radius, samples_radius

    rule, n_samples = spec.radius, features.shape[0]
    if rule.rule == "fixed":
        return SiteRadius(rule.value)
    if rule.rule == "samples":
        return SiteRadius(samples_radius(rule.value, n_samples))
    if rule.confidence is None:
        raise ProblemError("a radius by confidence needs the confidence")
    if rule.tail is None:
        found = estimated_radius(
            features, classes.astype(np.float64), label_flip_cost=spec.label_flip_cost,
            transport_norm=spec.transport_norm, confidence=rule.confidence, seed=rule.seed,
        )
        return SiteRadius(found.radius, rule.confidence, True)
    tail = LightTail(rule.tail.exponent, rule.tail.c1, rule.tail.c2, rule.tail.c3)
    return SiteRadius(confidence_radius(rule.confidence, n_samples, features.shape[1], tail), rule.confidence)


def lifted(spec: TrainingSpec, features: FloatArray) -> FloatArray:
    """Scaled features (N, P) as the method sees them; ``LiftMismatchError`` where the lift is not the asked one."""
    lift = draw_lift(spec.lift, features.shape[1])
    return features if lift is None else lift.apply(features)


def join_answer(
    spec: TrainingSpec, features: FloatArray, classes: IntArray, check: float = 0.0
) -> dict[str, FloatArray]:
    """What a site says of itself when it joins: scalars about its (lifted) training rows (N, P).

    ``check`` is that of the lift.
    """
    found = radius_of(spec, features, classes)
    scalars = {
        "n_samples": float(features.shape[0]), "radius": found.radius, "radius_is_estimate": float(found.is_estimate),
        "confidence": found.confidence, "lift_check": check,
    }
    return {name: np.array(value) for name, value in scalars.items()}


def robust_spec(spec: TrainingSpec, features: FloatArray, classes: IntArray) -> RobustSpec:
    """The problem with the site's own radius, for (lifted) features (N, P).

    Scaled features lie in the box [0, 1]^P of their sensor ranges, and lifted ones in a box [0, 1] too.
    """
    n_features = features.shape[1]
    box = BoxSupport(np.zeros(n_features), np.ones(n_features)) if spec.support == "sensor_ranges" else None
    return RobustSpec(
        radius=radius_of(spec, features, classes).radius, label_flip_cost=spec.label_flip_cost,
        transport_norm=spec.transport_norm, support=box, fit_intercept=spec.fit_intercept,
    )


def check_weights(weights: FloatArray | None, n_heads: int, n_features: int) -> FloatArray:
    """Weights (K, P + 1) of an evaluation, or :class:`ProblemError`."""
    wanted = (n_heads, n_features + 1)
    if weights is None or weights.shape != wanted or not np.isfinite(weights).all():
        raise ProblemError(f"an evaluation needs finite weights of shape {wanted}")
    return weights


def confusion_counts(weights: FloatArray, features: FloatArray, classes: IntArray, n_classes: int) -> FloatArray:
    """Counts (C, C) of true class by diagnosed class."""
    from models.multiclass import predict_class

    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (classes, predict_class(weights, features)), 1.0)
    return counts


def head_risks(
    weights: FloatArray, features: FloatArray, classes: IntArray, n_classes: int, spec: RobustSpec
) -> FloatArray:
    """Exact worst-case risk (K,) of each head at weights (K, P + 1) on the training rows."""
    from models.multiclass import head_labels
    from models.worst_case import site_risk

    used = weights if spec.fit_intercept else weights[:, :-1]
    labels = head_labels(classes, n_classes)
    return np.array([
        site_risk(row, SiteProblem(features, signs, spec)).value for row, signs in zip(used, labels, strict=True)
    ])


def solve_round(
    method_name: str, parameters: Mapping[str, float], message: Arrays, features: FloatArray, classes: IntArray,
    n_classes: int, spec: RobustSpec,
) -> dict[str, FloatArray]:
    """Answer of the method's site half, every array with a leading axis K.

    Raises
    ------
    ProblemError
        No such method or parameter, or a message that does not fit it.
    RuntimeError
        The site half gave something of another shape than the method states, or not finite: it must not leave.
    """
    from models.methods.catalogue import check_parameters, get_method
    from models.multiclass import OneVsRestSite

    method = get_method(method_name)
    complete = check_parameters(method, parameters)
    for name, array in message.items():
        if not np.isfinite(array).all():
            raise ProblemError(f"message array {name} holds a value that is not finite")
    try:
        answer = OneVsRestSite(method.site, n_classes).answer(features, classes, spec, message, complete)
    except KeyError as error:
        raise ProblemError(f"the message has no array {error}") from None
    _check_answer(answer, _stated_shapes(method, features.shape[1], n_classes, spec))
    return answer


def _stated_shapes(
    method: Method, n_features: int, n_classes: int, spec: RobustSpec
) -> dict[str, tuple[int, ...]]:
    """Shapes that the method's server half admits; they are asked of it with the model's size alone."""
    from models.multiclass import OneVsRestServer, n_heads

    problem = ServerProblem(
        n_features=n_features, sites=(SiteTerms("self", 1.0, spec.radius, spec.label_flip_cost),),
        transport_norm=spec.transport_norm, fit_intercept=spec.fit_intercept, parameters=method.parameters,
    )
    return OneVsRestServer(method.server, n_heads(n_classes)).answer_shapes(problem)


def _check_answer(answer: Arrays, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """The guard behind every method: nothing leaves that has not the model's shape."""
    found = {name: array.shape for name, array in answer.items()}
    if found != dict(shapes):
        raise RuntimeError(f"the answer has the shapes {found}, the method states {dict(shapes)}")
    for name, array in answer.items():
        if not np.isfinite(array).all():
            raise RuntimeError(f"the answer's array {name} is not finite")
