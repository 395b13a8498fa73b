"""Losses and gradients of what local steps descend on: finite differences, known values, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.basics import ProblemError
from models.losses.catalogue import get_loss
from models.losses.regression import Squared
from models.methods.local_sgd.objectives.base import MeanLoss, Objective
from models.methods.local_sgd.objectives.linear import LinearObjective
from models.methods.local_sgd.objectives.network import NetworkObjective
from models.methods.local_sgd.objectives.softmax import SoftmaxObjective

RANDOM = np.random.default_rng(0)
FEATURES = RANDOM.normal(size=(12, 4))
CLASSES = RANDOM.integers(0, 3, 12).astype(float)
SIGNS = np.where(CLASSES > 0, 1.0, -1.0)
OBJECTIVES: list[tuple[Objective, np.ndarray]] = [
    (LinearObjective(Squared()), CLASSES),
    (LinearObjective(Squared(), fit_intercept=False), CLASSES),
    (LinearObjective(get_loss("logistic")), SIGNS),
    (LinearObjective(get_loss("huber")), CLASSES),
    (SoftmaxObjective(3), CLASSES),
    (NetworkObjective(3, hidden=5), CLASSES),
]


@pytest.mark.parametrize(("objective", "labels"), OBJECTIVES)
def test_gradient_is_that_of_the_loss(objective: Objective, labels: np.ndarray) -> None:
    weights = np.random.default_rng(1).normal(size=objective.size(4))
    value, gradient = objective.loss_and_gradient(weights, FEATURES, labels)
    assert value == pytest.approx(objective.loss(weights, FEATURES, labels), rel=1e-12)
    for k in range(weights.shape[0]):
        step = np.zeros_like(weights)
        step[k] = 1e-6
        ahead, behind = (objective.loss(weights + sign * step, FEATURES, labels) for sign in (1.0, -1.0))
        assert gradient[k] == pytest.approx((ahead - behind) / 2e-6, abs=1e-6)


@pytest.mark.parametrize(
    "objective", [SoftmaxObjective(3), NetworkObjective(3, hidden=5, dropout=0.0), NetworkObjective(3, hidden=5)]
)
@pytest.mark.parametrize("drawn", [False, True])
def test_a_mixed_loss_is_the_two_labels_losses_of_the_mixed_rows(objective: Objective, drawn: bool) -> None:
    """The one pass over the mixed rows against the general rule's two; each label's pass drops its own units."""
    weights, others = np.random.default_rng(1).normal(size=objective.size(4)), (FEATURES[::-1], CLASSES[::-1])
    found, general = (
        mix(weights, (FEATURES, CLASSES), others, 0.3, np.random.default_rng(5) if drawn else None)
        for mix in (objective.mixed_loss_and_gradient, lambda *args: MeanLoss.mixed_loss_and_gradient(objective, *args))
    )
    assert found[0] == pytest.approx(general[0], rel=1e-12)
    np.testing.assert_allclose(found[1], general[1], rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("dropout", [0.2, 0.5])
def test_units_that_stay_make_up_for_those_that_are_dropped(dropout: float) -> None:
    """Where chance drops none, all count for more: so the scores are those of all units on the mean over the draws."""
    objective, plain = (NetworkObjective(3, hidden=6, dropout=share) for share in (dropout, 0.0))
    weights = np.random.default_rng(2).normal(size=objective.size(4))
    _, _, outer, _ = objective.layers(raised := weights.copy(), 4)
    outer /= 1.0 - dropout

    class DropsNone(np.random.Generator):
        def random(self, size: Any = None, *terms: Any, **named: Any) -> Any:
            return np.full(size, 0.999)

    found, _ = objective.loss_and_gradient(weights, FEATURES, CLASSES, DropsNone(np.random.PCG64(0)))
    assert found == pytest.approx(plain.loss(raised, FEATURES, CLASSES), rel=1e-12)


def test_dropout_has_the_gradient_of_the_network_that_is_left() -> None:
    objective, seed = NetworkObjective(3, hidden=6, dropout=0.5), 7
    weights = objective.start(4, 0)
    loss, gradient = objective.loss_and_gradient(weights, FEATURES, CLASSES, np.random.default_rng(seed))
    for k in range(weights.shape[0]):
        step = np.zeros_like(weights)
        step[k] = 1e-6
        ahead, behind = (
            objective.loss_and_gradient(weights + sign * step, FEATURES, CLASSES, np.random.default_rng(seed))[0]
            for sign in (1.0, -1.0)
        )
        assert gradient[k] == pytest.approx((ahead - behind) / 2e-6, abs=1e-6)
    assert loss != objective.loss(weights, FEATURES, CLASSES)


def test_known_values() -> None:
    assert SoftmaxObjective(3).loss(np.zeros(15), FEATURES, CLASSES) == pytest.approx(np.log(3))
    assert LinearObjective(Squared()).loss(np.zeros(5), FEATURES, CLASSES) == pytest.approx(np.mean(CLASSES**2))
    extreme = SoftmaxObjective(3).loss_and_gradient(np.full(15, 1e6) * np.arange(15), FEATURES, CLASSES)
    assert np.isfinite(extreme[0]) and np.isfinite(extreme[1]).all()


def test_a_network_starts_the_same_for_a_seed() -> None:
    objective = NetworkObjective(3)
    np.testing.assert_array_equal(objective.start(4, 3), objective.start(4, 3))
    assert (objective.start(4, 3) != objective.start(4, 4)).any()
    assert objective.start(4, 3).shape == (objective.size(4),) == (50 * 5 + 3 * 51,)


@pytest.mark.parametrize("label", [3.0, -1.0, 0.5])
def test_labels_that_are_no_classes_are_refused(label: float) -> None:
    with pytest.raises(ProblemError, match="labels must be class indices from 0 to 2"):
        SoftmaxObjective(3).loss(np.zeros(15), FEATURES[:1], np.array([label]))


def test_a_network_that_is_none_is_refused() -> None:
    with pytest.raises(ProblemError, match="dropout must be at or above 0 and below 1, got 1.0"):
        NetworkObjective(3, dropout=1.0)
    with pytest.raises(ProblemError, match="got 0 units and 3 classes"):
        NetworkObjective(3, hidden=0)


def test_mixed_rows_of_a_regression_have_mixed_targets() -> None:
    """``ratio`` is the share of the site's own rows."""
    objective, weights = LinearObjective(Squared(), fit_intercept=False), np.array([2.0])
    own, others = (np.array([[1.0]]), np.array([3.0])), (np.array([[5.0]]), np.array([1.0]))
    loss, gradient = objective.mixed_loss_and_gradient(weights, own, others, 0.75)
    residual = 2.0 * (0.75 * 1.0 + 0.25 * 5.0) - (0.75 * 3.0 + 0.25 * 1.0)
    assert loss == pytest.approx(residual**2)
    np.testing.assert_allclose(gradient, [2.0 * residual * 2.0])
