"""Answers that no rows give are told from those that some do, number by number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.methods.catalogue import METHODS
from services.contracts.problems.lift import draw_lift, lift_check
from services.contracts.problems.training_spec import TrainingSpec
from services.coordinator.asking.plausibility import counted_doubt, doubt

RADIUS, FEATURES = 0.25, 3
POINT = np.array([[1.0, -2.0, 0.5, 0.25]])


def spec(**changes: Any) -> TrainingSpec:
    return TrainingSpec.model_validate({"radius": {"rule": "fixed", "value": RADIUS}} | changes)


def arrays(said: dict[str, Any]) -> dict[str, np.ndarray]:
    return {name: np.asarray(value, dtype=np.float64) for name, value in said.items()}


def joined(said: dict[str, Any], **changes: Any) -> str:
    stated = spec(**changes)
    honest = {
        "n_samples": 40.0, "radius": RADIUS, "confidence": 0.0, "radius_is_estimate": 0.0,
        "lift_check": lift_check(draw_lift(stated.lift, FEATURES)),
    }
    return doubt("join", stated, {}, arrays(honest | said), FEATURES)


@pytest.mark.parametrize(("name", "possible", "impossible"), [
    ("n_samples", (1.0, 1e6), (0.0, -3.0, 40.5)),
    ("radius", (RADIUS, RADIUS * (1 + 1e-8)), (RADIUS * 1.01, 0.0, -RADIUS)),
    ("confidence", (0.0, 0.99), (1.0, -0.01, np.nan)),
    ("radius_is_estimate", (0.0, 1.0), (0.5, 2.0, -1.0)),
])
def test_what_a_site_joins_with(name: str, possible: tuple[float, ...], impossible: tuple[float, ...]) -> None:
    assert [joined({name: value}) for value in possible] == [""] * len(possible)
    assert all(f"joined with {name} = {value:g}, which cannot be" in joined({name: value}) for value in impossible)


def test_a_radius_of_the_sites_own_may_be_any_but_one_below_zero() -> None:
    rule = {"radius": {"rule": "confidence", "value": 0.0, "confidence": 0.9}}
    assert [joined({"radius": radius, "confidence": 0.9}, **rule) for radius in (0.0, 0.3, 2.0)] == [""] * 3
    assert "with radius = -0.1, which cannot be" in joined({"radius": -0.1, "confidence": 0.9}, **rule)


def test_a_radius_by_rows_is_that_of_the_rows() -> None:
    rule = {"radius": {"rule": "samples", "value": 10.0}}
    assert joined({"radius": 1 / 400}, **rule) == ""
    assert "which cannot be" in joined({"radius": 1 / 390}, **rule)
    assert "which cannot be" in joined({"radius": 1 / 400, "n_samples": 39.0}, **rule)


def round_of(said: dict[str, Any], asked: dict[str, Any] | None = None) -> str:
    honest = {"risk": [1.0], "slope": [[0.1] * 4], "norm_weight": [RADIUS], "swing": [[RADIUS] * 3]}
    return doubt("round", spec(), arrays({"point": POINT} | (asked or {})), arrays(honest | said), FEATURES)


@pytest.mark.parametrize(("name", "limit"), [
    ("slope", 1 + RADIUS), ("minorant_slope", 1 + RADIUS), ("norm_weight", RADIUS), ("swing", RADIUS),
    ("minorant_norm_weight", RADIUS), ("minorant_swing", RADIUS), ("floor", RADIUS),
])
def test_no_cut_is_steeper_than_a_loss_over_features_in_the_box_can_be(name: str, limit: float) -> None:
    assert round_of({}) == "" == round_of({name: [[limit]]})
    assert f"its {name.replace('_', ' ')} is" in round_of({name: [[limit * 1.01]]})
    assert (round_of({name: [[-0.01]]}) == "") == name.endswith("slope"), "norms, moves and losses are not below 0"


def test_no_rows_have_a_risk_above_that_of_the_rows_that_fare_worst() -> None:
    # Of these weights the scores lie in [-1.75, 1.75], so hinge losses in [0, 2.75].
    most = 2.75 + RADIUS * float(np.linalg.norm(POINT[0, :3]))
    assert round_of({"risk": [most]}) == "" and "no rows have one outside" in round_of({"risk": [most + 0.01]})
    priced = {"price": [4.0]}
    assert round_of({"risk": [2.75 + RADIUS * 4.0]}, priced) == "", "a price above the norm of the weights counts"
    assert "no rows have one outside" in round_of({"risk": [2.76 + RADIUS * 4.0]}, priced)


def test_no_rows_have_a_mean_loss_above_that_of_the_rows_that_fare_worst() -> None:
    """At the weights of before, hinge losses lie in [0, 2.75]; of two planes both are summed."""
    for planes in (1, 2):
        asked, risk = {"weights": np.repeat(POINT, planes, axis=0)}, [1.0] * planes

        def told(loss: float, asked: Any = asked, risk: Any = risk) -> str:
            said = {"risk": risk, "loss": loss, "confusion": np.eye(2)}
            return doubt("evaluate", spec(), arrays(asked), arrays(said), FEATURES)

        assert told(2.75 * planes) == ""
        assert f"and no rows have one above {2.75 * planes:g} there" in told(2.76 * planes)


@pytest.mark.parametrize("plane", [0, 1, 2])
def test_the_steps_of_each_plane_are_held_to_their_reach(plane: int) -> None:
    asked = arrays({"point": np.repeat(POINT, 3, axis=0), "step_size": [0.1] * 3, "correction": np.zeros((3, 4))})
    parameters, method = {"epochs": 2.0, "batch": 1.0}, METHODS["fedavg"]
    ends = asked["point"].copy()

    def told() -> str:
        said = arrays({"local_point": ends})
        return doubt("round", spec(), asked, said, FEATURES, method, parameters)

    assert told() == ""
    ends[plane, 1] += 1e3
    assert "its local point is 1000 away, and no rows lead farther" in told()


def test_sums_over_held_out_rows_are_no_larger_than_so_many_rows_give() -> None:
    target = spec(loss={"name": "huber"})
    honest = {"risk": 0.1, "loss": 0.1, "n_test": 12, "covered": 12, "target_sum": 5.5, "target_squares": 3.0}

    def told(**changes: Any) -> str:
        return doubt("evaluate", target, arrays({"weights": POINT * 0}), arrays(honest | changes), FEATURES)

    assert told() == ""
    for name in ("covered", "target_sum", "target_squares"):
        assert told(**{name: 12}) == "" == told(**{name: 0})
        for value in (12.1, -0.1):
            assert f"its {name.replace('_', ' ')} is" in told(**{name: value}), value
    for count in (12.5, -1):
        assert "no whole number" in told(n_test=count)


def test_counts_on_a_grid_are_of_all_rows_and_never_fall() -> None:
    honest: dict[str, Any] = {
        "n_test": 5, "n_train": 7, "counts": [[0, 2, 5]], "by_estimate": [[0, 1, 2], [1, 2, 3]],
        "training": [[0, 3, 3], [0, 0, 4]],
    }

    def told(**changes: Any) -> str:
        return counted_doubt(arrays(honest | changes))

    assert told() == ""
    assert "not 5 held-out rows" in told(by_estimate=[[0, 1, 2], [1, 2, 2]])
    assert "not 7 training rows" in told(training=[[0, 3, 3], [0, 0, 5]])
    falling = {"counts": [[0, 3, 2]], "by_estimate": [[0, 3, 2], [1, 2, 3]], "training": [[0, 4, 3], [0, 0, 4]]}
    for name, counts in falling.items():
        assert "fall from one threshold" in told(**{name: counts}), name
        for wrong in ([[0, 0.5, 5]], [[0, 1, 8]], [[-1, 0, 5]]):
            assert "no whole numbers" in told(**{name: wrong}), name
