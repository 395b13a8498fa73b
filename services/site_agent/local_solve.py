"""What a task asks of the mathematics: arrays in, arrays of model size out. Knows neither files nor frames."""

from __future__ import annotations

from collections.abc import Mapping

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
from services.contracts.messages import RadiusRule, TrainingSpec

IntArray = NDArray[np.intp]


def radius_of(rule: RadiusRule, n_samples: int) -> float:
    """Radius of the site's Wasserstein ball: the given one, or ``1 / (beta N_g)``."""
    if rule.rule == "fixed":
        return rule.value
    if rule.value <= 0:
        raise ProblemError("a radius from the number of samples needs beta above 0")
    return 1.0 / (rule.value * n_samples)


def robust_spec(spec: TrainingSpec, n_samples: int, n_features: int) -> RobustSpec:
    """The shared problem with the site's own radius; features are scaled, so sensor ranges are the box [0, 1]^P."""
    box = BoxSupport(np.zeros(n_features), np.ones(n_features)) if spec.support == "sensor_ranges" else None
    return RobustSpec(
        radius=radius_of(spec.radius, n_samples), label_flip_cost=spec.label_flip_cost,
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
