"""The range of what a site's risk can be: no wider than rows reach, and as wide as rounding and a price need."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models.basics import TransportNorm
from models.geometry.supports import BoxSupport
from models.losses.catalogue import get_loss
from models.methods.bundle.wafl import priced_risk
from models.problem import RobustSpec, SiteProblem
from models.worst_case.risk import site_cut, site_risk, worst_case_risk
from models.worst_case.risk_range import RiskRange, risk_range, steepest_slope


def test_a_range_gives_way_to_rounding_and_to_no_more() -> None:
    for low, high, size in ((0.2, 0.7, 1.0), (100.0, 400.0, 400.0), (5.0, math.inf, 5.0)):
        found = RiskRange(low, high)
        for inside in (low - 9e-7 * size, min(high, 1e9) + 9e-7 * size):
            assert inside in found
        assert low - 1.1e-6 * size not in found
        assert math.isinf(high) or high + 1.1e-6 * size not in found


def test_no_slope_is_steeper_than_is_said_and_one_is_as_steep() -> None:
    """A row at the end of its range, whose feature the whole radius moves further up."""
    for radius, name in ((0.5, "hinge"), (2.0, "pinball")):
        loss = get_loss(name)
        task = {"label_flip_cost": math.inf, "transport_norm": "l2", "loss": loss}
        label = -1.0 if loss.task == "classification" else 0.0
        found = worst_case_risk(
            [3.0], [[1.0]], [label], radius=radius, support=BoxSupport(np.zeros(1), np.full(1, 9.0)), **task
        )
        assert found.subgradient == pytest.approx([steepest_slope(loss, radius)])


@pytest.mark.parametrize("name", ["hinge", "logistic", "huber"])
def test_a_price_of_transport_above_the_norm_raises_the_risk_as_far_as_the_range_goes(name: str) -> None:
    """Of the one row that fares worst of all."""
    loss, weights = get_loss(name), np.array([1.0, -0.5, 0.2])
    row, label = ([1.0, 0.0], -1.0) if loss.task == "classification" else ([0.0, 1.0], 1.0)
    site = SiteProblem(np.array([row]), np.array([label]), RobustSpec(0.3, 10.0, "l2", loss=loss))
    for price in (0.0, 1.0, 4.0):
        norm = float(np.linalg.norm(weights[:2]))
        found = risk_range(
            weights, loss, radius=0.3, label_flip_cost=10.0, transport_norm="l2", fit_intercept=True, multiplier=price
        )
        risk = priced_risk(weights, max(price, norm), site)[0]
        assert risk in found and found.high == pytest.approx(risk)


@pytest.mark.parametrize("name", ["hinge", "smooth_hinge", "logistic", "huber", "pinball"])
@pytest.mark.parametrize("intercept", [-5.0, -0.2, 5.0])
def test_without_a_ball_the_range_is_that_of_the_loss_over_all_rows(name: str, intercept: float) -> None:
    loss, scores = get_loss(name), intercept + np.linspace(-0.5, 1.5, 2001)
    numbers = np.concatenate([scores, -scores] if loss.task == "classification" else [scores, scores - 1.0])
    found = risk_range(
        np.array([1.5, -0.5, intercept]), loss, radius=0.0, label_flip_cost=1.0, transport_norm="l2", fit_intercept=True
    )
    values = loss.value(numbers)
    assert (found.low, found.high) == pytest.approx((values.min(), values.max()), abs=1e-6)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("name", ["hinge", "pinball", "epsilon_insensitive"])
def test_a_cut_on_a_box_where_a_weight_is_0_is_below_the_risk_where_it_is_not(name: str, norm: TransportNorm) -> None:
    """A feature that no plan moved there may not be moved for nothing elsewhere."""
    draw, loss = np.random.default_rng(6), get_loss(name)
    features, labels = draw.uniform(size=(20, 3)), np.where(np.arange(20) % 2 == 0, 1.0, -1.0)
    spec = RobustSpec(0.05, math.inf, norm, BoxSupport(np.zeros(3), np.ones(3)), True, loss)
    problem = SiteProblem(features, labels, spec)
    for weights in ([1.5, 0.0, -0.5, 0.1], [0.0, 0.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.3]):
        at = np.array(weights)
        cut = site_cut(at, problem)
        assert cut.height == pytest.approx(site_risk(at, problem).value) and cut.swing is not None
        for other in at + draw.normal(size=(60, 4)) * 10.0 ** draw.uniform(-3, 1, (60, 1)):
            bound = cut.height + cut.slope @ (other - at) + cut.swing @ (np.abs(other) - np.abs(at))[:3]
            assert bound <= site_risk(other, problem).value * (1.0 + 1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("tiny", [5e-324, 1e-310, 1e-200, 1e-160])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("name", ["hinge", "pinball"])
def test_a_weight_that_is_next_to_nothing_changes_no_risk_on_a_box_and_warns_of_nothing(
    name: str, norm: TransportNorm, tiny: float
) -> None:
    """The wall of such a feature is beyond what a float64 holds, counted in weights."""
    features, labels = [[0.2, 0.7], [0.9, 0.1], [0.5, 0.5]], [1.0, -1.0, 1.0]
    found, wanted = (
        worst_case_risk(
            [each, 1.0], features, labels, radius=0.3, label_flip_cost=1.0, transport_norm=norm,
            support=BoxSupport(np.zeros(2), np.ones(2)), loss=get_loss(name),
        ) for each in (tiny, 0.0)
    )
    assert found.value == pytest.approx(wanted.value, rel=1e-12)
