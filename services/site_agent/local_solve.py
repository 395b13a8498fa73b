"""What a task asks of the mathematics: arrays in, arrays of model size out. Knows neither files nor frames."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.problem import BoxSupport, FloatArray, ProblemError, RobustSpec, SiteProblem
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
    """Counts (C, C) of true class by diagnosed class: the highest score wins, the first of equals."""
    scores = features @ weights[:, :-1].T + weights[:, -1]
    diagnosed = (scores[:, 0] > 0).astype(np.intp) if n_classes == 2 else scores.argmax(axis=1)
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (classes, diagnosed), 1.0)
    return counts


def head_labels(classes: IntArray, n_heads: int) -> list[FloatArray]:
    """Labels -1 and +1 for each head: the second class against the first, or each class against the rest."""
    positive = (1,) if n_heads == 1 else tuple(range(n_heads))
    return [np.where(classes == number, 1.0, -1.0) for number in positive]


def head_risks(weights: FloatArray, features: FloatArray, classes: IntArray, spec: RobustSpec) -> FloatArray:
    """Exact worst-case risk (K,) of each head at weights (K, P + 1) on the training rows."""
    from models.worst_case import site_risk

    used = weights if spec.fit_intercept else weights[:, :-1]
    labels = head_labels(classes, len(weights))
    return np.array([
        site_risk(row, SiteProblem(features, signs, spec)).value for row, signs in zip(used, labels, strict=True)
    ])
