"""The reference solver: what it tries in turn, what it refuses, and in which units it sees the price of transport."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from models.geometry.supports import BoxSupport
from models.losses.catalogue import get_loss
from models.problem import RobustSpec

cp = pytest.importorskip("cvxpy", reason="the reference needs the extra 'reference'")

from models.reference import solve  # noqa: E402
from models.reference.solve import price_variable, solve_tightly  # noqa: E402

BOX, OPEN = (BoxSupport(np.zeros(2), np.ones(2), *ends) for ends in ((0.0, 1.0), (0.0, math.inf)))


def least() -> Any:
    x = cp.Variable(2)
    return cp.Problem(cp.Minimize(cp.sum_squares(x - np.array([1.0, 3.0]))), [x <= 2.0])


def test_a_program_has_its_value_and_what_has_none_is_an_error() -> None:
    assert solve_tightly(least()) == pytest.approx(1.0, abs=1e-9)
    x = cp.Variable()
    with pytest.raises(ArithmeticError, match="ended with status infeasible"):
        solve_tightly(cp.Problem(cp.Minimize(x), [x >= 1, x <= 0]))
    with pytest.raises(ArithmeticError, match="ended with status unbounded"):
        solve_tightly(cp.Problem(cp.Minimize(x), [x <= 0]))


@pytest.mark.parametrize("failing", [0, 1, 2, 3])
def test_settings_are_tried_in_turn_until_one_does_not_fail(failing: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tried, way = list[Any](), solve._solve

    def fails(program: Any, settings: Any) -> None:
        tried.append(settings)
        if len(tried) <= failing:
            raise cp.SolverError(f"failure {len(tried)}")
        way(program, settings)

    monkeypatch.setattr(solve, "_solve", fails)
    if failing == 3:
        with pytest.raises(ArithmeticError, match="failed on this problem") as refused:
            solve_tightly(least())
        assert str(refused.value.__cause__) == "failure 1"
    else:
        assert solve_tightly(least()) == pytest.approx(1.0, abs=1e-9)
    assert tried == list(solve._WAYS[: min(failing + 1, 3)])


@pytest.mark.parametrize(
    ("loss", "radius", "cost", "support", "unit"),
    [
        ("hinge", 0.01, 0.1, None, 0.1), ("hinge", 0.2, 0.1, None, 1.0), ("hinge", 0.01, 2.0, None, 1.0),
        ("hinge", 0.01, math.inf, None, 1.0), ("pinball", 0.2, 0.1, None, 0.1), ("pinball", 0.2, 0.1, OPEN, 0.1),
        ("pinball", 0.2, 0.1, BOX, 1.0), ("pinball", 0.05, 0.1, BOX, 0.1), ("pinball", 0.2, 2.0, OPEN, 1.0),
    ],
)
def test_the_price_is_in_units_of_a_cheap_flip_that_is_rare_or_of_a_target_without_end(
    loss: str, radius: float, cost: float, support: Any, unit: float
) -> None:
    price = price_variable(RobustSpec(radius, cost, "l2", support, loss=get_loss(loss)))
    variable = price.variables()[0]
    assert variable.attributes["nonneg"]
    variable.value = 3.0
    assert float(price.value) == pytest.approx(3.0 / unit)
