"""Supports in scaled features and targets hold the same machines as the plan's own system."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from models.basics import ProblemError
from models.geometry.supports import BoxSupport, PolytopeSupport
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.machines.target import Target
from services.contracts.problems.lift import SplineLiftSpec, draw_lift
from services.contracts.problems.support import PolytopeSpec, scaled_support, support_name

KIND = AssetType(
    name="rig",
    features=(Feature(name="p", unit="bar", low=2.0, high=6.0), Feature(name="q", unit="K", low=-1.0, high=9.0)),
    fault_classes=(FaultClass(name="ok", severity=0), FaultClass(name="leak", severity=1)),
    target=Target(name="wear", unit="mm", low=1.0, high=5.0),
)
LOW, WIDTH = np.array([2.0, -1.0]), np.array([4.0, 10.0])
BOX = ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0))


def polytope(*more: tuple[tuple[float, float], float, float], target: bool = False) -> PolytopeSpec:
    """The sensor ranges, those of the target, and further half-spaces (row, limit, its number for the target)."""
    rows, limits, column = [*BOX], [6.0, -2.0, 9.0, 1.0], [0.0] * 4
    if target:
        rows, limits, column = [*rows, (0.0, 0.0), (0.0, 0.0)], [*limits, 5.0, -1.0], [*column, 1.0, -1.0]
    for row, limit, number in more:
        rows, limits, column = [*rows, row], [*limits, limit], [*column, number]
    found = {"matrix": rows, "limits": limits, "target_column": column if target else None}
    return PolytopeSpec.model_validate(found)


def test_sensor_ranges_under_a_lift_are_those_of_its_coordinates() -> None:
    lift = draw_lift(SplineLiftSpec(kind="spline", segments=3), 2)
    assert lift is not None
    found = scaled_support("sensor_ranges", KIND, "classification", lift)
    assert isinstance(found, BoxSupport)
    np.testing.assert_array_equal([found.low, found.high], [lift.support.low, lift.support.high])
    assert found.low.size > 2


def test_a_polytope_holds_the_scaled_rows_whose_readings_it_holds() -> None:
    """3 p - q <= 10 in readings; the corner p = 4, q = 2 lies on its wall."""
    found = scaled_support(polytope(((3.0, -1.0), 10.0, 0.0)), KIND, "classification")
    assert isinstance(found, PolytopeSupport) and found.target_column is None
    slack = found.limits - found.matrix @ ((np.array([4.0, 2.0]) - LOW) / WIDTH)
    assert slack[-1] == pytest.approx(0.0, abs=1e-12) and (slack[:-1] > 0).all()
    np.testing.assert_allclose(np.abs(found.matrix).max(axis=1), 1.0)
    readings = np.random.default_rng(0).uniform((1.0, -3.0), (7.0, 11.0), (200, 2))
    inside = (found.matrix @ ((readings - LOW) / WIDTH).T <= found.limits[:, None] + 1e-12).all(axis=0)
    low, high = LOW, LOW + WIDTH
    wanted = ((readings >= low) & (readings <= high)).all(axis=1) & (readings @ [3.0, -1.0] <= 10.0)
    np.testing.assert_array_equal(inside, wanted)
    assert 20 < wanted.sum() < 180


def test_a_polytope_for_a_target_is_scaled_by_its_range_too() -> None:
    """p + 10 y <= 34: at p = 4 the target may be 3 mm, half of its range, and no more."""
    found = scaled_support(polytope(((1.0, 0.0), 34.0, 10.0), target=True), KIND, "regression")
    assert isinstance(found, PolytopeSupport) and found.target_column is not None
    row, column, limit = found.matrix[-1], found.target_column[-1], found.limits[-1]
    assert row @ [0.5, 0.3] + column * 0.5 == pytest.approx(limit)
    sizes = np.abs(np.column_stack([found.matrix, found.target_column])).max(axis=1)
    np.testing.assert_allclose(sizes, 1.0)


def test_the_sensor_ranges_bound_the_target_of_a_regression_alone() -> None:
    of_classes = scaled_support("sensor_ranges", KIND, "classification")
    of_target = scaled_support("sensor_ranges", KIND, "regression")
    assert isinstance(of_classes, BoxSupport) and isinstance(of_target, BoxSupport)
    assert (of_classes.target_low, of_classes.target_high) == (-math.inf, math.inf)
    assert (of_target.target_low, of_target.target_high) == (0.0, 1.0)
    for box in (of_classes, of_target):
        assert box.low.tolist() == [0.0, 0.0] and box.high.tolist() == [1.0, 1.0]
    assert scaled_support("unbounded", KIND, "regression") is None


@pytest.mark.parametrize(("spec", "task", "said"), [
    (polytope(), "regression", "needs a target_column"), (polytope(target=True), "classification", "has no target"),
    (PolytopeSpec(matrix=((1.0,),), limits=(1.0,)), "classification", "has 1 columns, asset type rig has 2 features"),
])
def test_a_polytope_of_another_problem_is_refused(spec: PolytopeSpec, task: Any, said: str) -> None:
    with pytest.raises(ProblemError, match=said):
        scaled_support(spec, KIND, task)


def test_one_sensor_on_a_scale_of_logarithms_is_enough_to_refuse_a_polytope() -> None:
    decades = Feature(name="q", unit="K", low=1.0, high=1000.0, scale="log")
    kind = KIND.model_copy(update={"features": (KIND.features[0], decades)})
    with pytest.raises(ProblemError, match="leave out features with scale log"):
        scaled_support(polytope(), kind, "classification")


@pytest.mark.parametrize("wrong", [
    {"matrix": ((1.0, 2.0), (1.0,)), "limits": (1.0, 1.0)}, {"matrix": ((),), "limits": (1.0,)},
    {"matrix": ((1.0,),), "limits": (1.0, 2.0)}, {"matrix": ((math.inf,),), "limits": (1.0,)},
    {"matrix": ((1.0,),), "limits": (1.0,), "target_column": (1.0, 2.0)}, {"matrix": (), "limits": ()},
])
def test_what_is_no_system_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        PolytopeSpec.model_validate(wrong)


def test_a_support_in_words() -> None:
    assert (support_name("sensor_ranges"), support_name(polytope())) == ("sensor_ranges", "polytope of 4 half-spaces")
