"""Losses: convex, at or above 0, slopes that are subgradients, pieces that make the loss, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import ProblemError
from models.losses.base import Loss
from models.losses.catalogue import LOSS_NAMES, get_loss, losses_for

LOSSES: list[Loss] = [
    *(get_loss(name) for name in LOSS_NAMES),
    get_loss("huber", epsilon=0.1),
    get_loss("epsilon_insensitive", epsilon=0.0),
    get_loss("pinball", quantile=0.05),
    get_loss("pinball", quantile=0.9),
]
NUMBERS = st.floats(-50.0, 50.0)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_slope_is_a_subgradient_no_steeper_than_the_lipschitz_constant(loss: Loss) -> None:
    @settings(max_examples=60, derandomize=True)
    @given(at=NUMBERS, other=NUMBERS)
    def check(at: float, other: float) -> None:
        z, u = np.array([at]), np.array([other])
        here, there, slope = float(loss.value(z)[0]), float(loss.value(u)[0]), float(loss.slope(z)[0])
        assert here >= 0.0
        assert there >= here + slope * (other - at) - 1e-12 * (1 + abs(there))
        assert abs(slope) <= loss.lipschitz
        if loss.lines is not None:
            assert here == pytest.approx(max(line.slope * at + line.height for line in loss.lines), abs=1e-14)

    check()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_far_out_it_is_as_steep_as_its_lipschitz_constant(loss: Loss) -> None:
    far = np.array([-1e6, 1e6])
    assert max(abs(loss.slope(far))) == pytest.approx(loss.lipschitz, rel=1e-12)
    if loss.smooth:
        z = np.linspace(-3.0, 3.0, 1001)
        assert np.abs(np.diff(loss.slope(z))).max() < 0.02
    if loss.lines is not None:
        assert max(abs(line.slope) for line in loss.lines) == loss.lipschitz


def test_values_by_hand() -> None:
    z = np.array([-2.0, 0.0, 0.5, 3.0])
    np.testing.assert_allclose(get_loss("hinge").value(z), [3.0, 1.0, 0.5, 0.0])
    np.testing.assert_allclose(get_loss("smooth_hinge").value(z), [2.5, 0.5, 0.125, 0.0])
    np.testing.assert_allclose(get_loss("logistic").value(z), np.log1p(np.exp(-z)))
    np.testing.assert_allclose(get_loss("huber", epsilon=1.0).value(z), [1.5, 0.0, 0.125, 2.5])
    np.testing.assert_allclose(get_loss("epsilon_insensitive", epsilon=1.0).value(z), [1.0, 0.0, 0.0, 2.0])
    np.testing.assert_allclose(get_loss("pinball", quantile=0.9).value(z), [1.8, 0.0, 0.05, 0.3])


def test_slopes_where_a_loss_bends_by_hand() -> None:
    np.testing.assert_array_equal(get_loss("hinge").slope(np.array([0.9, 1.0, 1.1])), [-1.0, 0.0, 0.0])
    tolerant = get_loss("epsilon_insensitive", epsilon=1.0)
    np.testing.assert_array_equal(tolerant.slope(np.array([-2.0, -1.0, 0.0, 1.0, 2.0])), [-1.0, 0.0, 0.0, 0.0, 1.0])
    pinball = get_loss("pinball", quantile=0.75)
    np.testing.assert_array_equal(pinball.slope(np.array([-1.0, 0.0, 1.0])), [-0.75, 0.0, 0.25])


def test_a_mean_pinball_loss_is_least_at_the_quantile() -> None:
    targets = np.arange(1.0, 102.0)
    loss = get_loss("pinball", quantile=0.9)
    means = [float(loss.value(prediction - targets).mean()) for prediction in targets]
    assert targets[int(np.argmin(means))] == 91.0


def test_tasks() -> None:
    assert losses_for("classification") == ("hinge", "smooth_hinge", "logistic")
    assert losses_for("regression") == ("huber", "epsilon_insensitive", "pinball")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"name": "cubic"}, "there is no loss 'cubic'; losses are hinge"),
        ({"name": "pinball", "quantile": 0.0}, "quantile of the pinball loss must lie between 0 and 1"),
        ({"name": "pinball", "quantile": 1.0}, "quantile of the pinball loss must lie between 0 and 1"),
        ({"name": "pinball", "quantile": math.nan}, "quantile of the pinball loss must lie between 0 and 1"),
        ({"name": "huber", "epsilon": 0.0}, "epsilon of the huber loss must be a finite number above 0"),
        ({"name": "huber", "epsilon": math.inf}, "epsilon of the huber loss must be a finite number above 0"),
        ({"name": "epsilon_insensitive", "epsilon": -0.1}, "must be a finite number at or above 0"),
        ({"name": "hinge", "epsilon": 0.1}, "epsilon belongs to the losses huber and epsilon_insensitive"),
        ({"name": "hinge", "epsilon": 0.0}, "epsilon belongs to the losses huber and epsilon_insensitive"),
        ({"name": "huber", "quantile": 0.5}, "quantile belongs to the loss pinball"),
    ],
)
def test_refuses_parameters_without_meaning(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ProblemError, match=text) as refusal:
        get_loss(**arguments)
    assert "\n" not in str(refusal.value)
