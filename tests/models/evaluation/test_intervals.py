"""The interval that a certified risk implies ends where the loss is as high as Markov's inequality allows."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import ProblemError
from models.evaluation.intervals import residual_interval
from models.losses.base import Loss
from models.losses.catalogue import get_loss

LOSSES = [
    get_loss("huber", epsilon=0.3), get_loss("epsilon_insensitive", epsilon=0.2), get_loss("pinball", quantile=0.8),
    get_loss("squared"),
]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("risk", [1e-4, 0.02, 0.03, 0.6])  # .06 is between epsilon^2 / 2 and epsilon^2 of the huber
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_the_loss_at_both_ends_is_the_risk_over_what_the_confidence_leaves(
    loss: Loss, risk: float, confidence: float
) -> None:
    low, high = residual_interval(loss, risk, confidence)
    assert low < 0 < high
    np.testing.assert_allclose(loss.value(np.array([low, high])), risk / (1.0 - confidence), rtol=1e-9)


def test_without_a_risk_nothing_is_left_and_what_has_no_interval_is_refused() -> None:
    assert residual_interval(get_loss("squared"), 0.0, 0.9) == (0.0, 0.0)
    for loss, risk, confidence in (("hinge", 0.1, 0.9), ("huber", -0.1, 0.9), ("huber", 0.1, 1.0), ("huber", 0.1, 0.0)):
        with pytest.raises(ProblemError):
            residual_interval(get_loss(loss), risk, confidence)


@pytest.mark.parametrize("epsilon", [1e155, 1e200, 1e308])
def test_a_huber_threshold_whose_square_is_no_number_is_never_reached(epsilon: float) -> None:
    wide = residual_interval(get_loss("huber", epsilon=epsilon), 0.1, 0.9)
    assert wide == pytest.approx((-np.sqrt(2.0), np.sqrt(2.0)), rel=1e-12)
