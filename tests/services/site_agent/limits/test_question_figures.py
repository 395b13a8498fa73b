"""The figures that a question is held against are those of their formulas, where an inequality would not tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.geometry.supports import BoxSupport
from models.losses.catalogue import get_loss
from models.losses.joint import CrammerSinger
from models.problem import RobustSpec, SiteProblem
from services.site_agent.limits.questions import _changes, risk_floor

ROWS = np.random.default_rng(3).uniform(size=(12, 2))


def all_classes(labels: np.ndarray, norm: Any) -> SiteProblem:
    return SiteProblem(ROWS, labels, RobustSpec(0.25, 1.0, norm, loss=CrammerSinger(3)))


@pytest.mark.parametrize(
    ("norm", "near", "far"), [("l1", 3.0, 6.0), ("l2", np.sqrt(10.0), np.sqrt(40.0)), ("linf", 4.0, 8.0)]
)
def test_a_floor_of_all_classes_goes_by_those_that_the_rows_have(norm: Any, near: float, far: float) -> None:
    """Planes 0, (3, 1) and (-3, -1): rows of class 0 are no further from another than one of them is from 0."""
    weights = np.array([3.0, 1.0, -3.0, -1.0, 0.0, 0.0])
    assert risk_floor(weights, all_classes(np.zeros(12), norm)) == pytest.approx(0.25 * near)
    assert risk_floor(weights, all_classes(np.arange(12) % 2 * 1.0, norm)) == pytest.approx(0.25 * far)


@pytest.mark.parametrize(("norm", "apart"), [("l1", 6.0), ("l2", np.sqrt(40.0)), ("linf", 8.0)])
def test_a_step_of_all_classes_moves_rows_and_what_the_ball_adds(norm: Any, apart: float) -> None:
    """Scores of [0, 1]^2 move apart by 8 at most, 6 + 2; with intercepts .5 and -.5 by 9."""
    step = np.array([[[3.0, 1.0, -3.0, -1.0, 0.5, -0.5]]])
    found = _changes(step, (all_classes(np.arange(12) % 3 * 1.0, norm),))
    assert found == pytest.approx([9.0 + 0.25 * apart])


@pytest.mark.parametrize(("quantile", "side"), [(0.9, 0.1), (0.2, 0.2), (0.5, 0.5)])
def test_a_floor_of_a_target_in_a_box_takes_the_cheaper_side(quantile: float, side: float) -> None:
    walls = BoxSupport(np.zeros(2), np.array([1.0, 2.0]), 0.0, 1.0)
    spec = RobustSpec(0.5, 1.0, "l1", walls, loss=get_loss("pinball", quantile=quantile))
    floor = risk_floor(np.array([4.0, -1.0, 0.3]), SiteProblem(ROWS, ROWS[:, 0], spec))
    assert floor == pytest.approx(0.5 / 3.0 * side * 3.0), "a sixth of the box's diameter, half of 4 + 2"


def test_of_a_loss_without_a_constant_nothing_is_too_near() -> None:
    site = SiteProblem(ROWS, ROWS[:, 0], RobustSpec(0.0, 1.0, loss=get_loss("squared")))
    steps = np.array([[[0.0, 0.0, 1e-12]], [[0.0, 0.0, 0.0]]])
    assert _changes(steps, (site,)).tolist() == [np.inf, 0.0]
