"""Targets, losses, supports and mixtures in the contracts: what they mean, and what is refused in one line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from models.basics import ProblemError
from models.evaluation.intervals import residual_interval
from models.geometry.supports import BoxSupport, PolytopeSupport
from models.losses.catalogue import get_loss
from models.methods.catalogue import METHODS
from services.contracts.errors import InvalidInputError
from services.contracts.evaluation.scores import ErrorInterval, RegressionScores, added
from services.contracts.machines.asset_type import AssetType
from services.contracts.machines.target import Target
from services.contracts.machines.value_range import Ranges
from services.contracts.plans.plan import Plan
from services.contracts.plans.plan_problem import check_problem
from services.contracts.problems.support import PolytopeSpec, scaled_support
from services.contracts.reading import explain
from services.plant_simulator.assets import builtin_asset_type

FEATURES = [{"name": "flow", "unit": "L/min", "low": 20.0, "high": 60.0}, {"name": "speed", "unit": "rpm", "low": 0.0,
            "high": 1000.0}]
TARGET = {"name": "gap", "unit": "mm", "low": 1.0, "high": 5.0}
CLASSES = [{"name": "ok", "severity": 0}, {"name": "leak", "severity": 2}]


def kind(**changes: Any) -> AssetType:
    return AssetType.model_validate({"name": "rig", "features": FEATURES, "target": TARGET} | changes)


def plan(**changes: Any) -> Plan:
    return Plan.model_validate({"name": "nightly", "asset_type": "rig", "reveal": "each site"} | changes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"target": None}, "needs fault_classes (two or more), a target, or both"),
        ({"fault_classes": CLASSES[:1]}, "fault_classes must be two or more"),
        ({"target": {**TARGET, "unit": ""}}, "target.unit"),
        ({"target": {**TARGET, "unit": "   "}}, "target.unit"),
        ({"target": {key: TARGET[key] for key in ("name", "low", "high")}}, "target.unit: Field required"),
        ({"target": {**TARGET, "high": 1.0}}, "target: gap: its range needs finite low < high"),
        ({"target": {**TARGET, "low": -math.inf}}, "its range needs finite low < high"),
        ({"target": {**TARGET, "low": -1e308, "high": 1e308}}, "its range is too wide for a float64"),
        ({"target": {**TARGET, "low": 1e308, "high": 1.5e308}}, "its range is too wide for a float64"),
        ({"target": {**TARGET, "name": "flow"}}, "the target and a feature are both called flow"),
    ],
)
def test_an_asset_type_needs_something_to_learn_and_a_target_its_unit(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        kind(**changes)
    assert said in explain(refusal.value) and "\n" not in explain(refusal.value)


def test_the_fingerprint_of_a_type_without_a_target_is_what_it_was_and_the_target_is_in_it() -> None:
    assert builtin_asset_type("triplex-pump").fingerprint.startswith("69548c25ed41206ff5a75dce5cc2237c255d3740b55d5e68")
    marks = {
        kind(**changes).fingerprint
        for changes in ({}, {"target": {**TARGET, "unit": "cm"}}, {"target": {**TARGET, "high": 6.0}},
                        {"target": {**TARGET, "out_of_range": "refuse"}}, {"target": None, "fault_classes": CLASSES})
    }
    assert len(marks) == 5
    assert kind(target={**TARGET, "description": "why"}).fingerprint == kind().fingerprint


def test_one_head_for_a_target_and_what_is_missing_is_said() -> None:
    both, bare = kind(fault_classes=CLASSES), kind()
    assert (both.heads("regression"), both.heads("classification")) == (1, 1)
    assert both.missing_for_task("classification") == both.missing_for_task("regression") == ""
    assert bare.missing_for_task("regression") == ""
    assert "has no fault classes" in bare.missing_for_task("classification")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"spec": {"loss": "absolute"}}, "spec.loss.name"),
        ({"spec": {"loss": {"name": "pinball", "quantile": 1.0}}}, "spec.loss: quantile of the pinball loss must lie"),
        ({"spec": {"loss": {"name": "pinball", "epsilon": 0.1}}}, "spec.loss: epsilon belongs to the losses"),
        ({"spec": {"loss": {"name": "huber", "epsilon": 0.0}}}, "spec.loss: epsilon of the huber loss must be"),
        ({"spec": {"loss": "logistic", "support": "sensor_ranges"}}, "spec: the logistic loss has a robust risk for"),
        ({"spec": {"loss": "squared", "support": "sensor_ranges"}}, "the squared loss is for training without a ball"),
        ({"spec": {"support": "walls"}}, "spec.support.name: Input should be 'unbounded' or 'sensor_ranges'"),
        ({"spec": {"support": {"matrix": [[1, 2]], "limits": [1, 2]}}}, "the polytope's limits need 1 numbers"),
        ({"mixture": {"norm": "l3"}}, "mixture.norm: Input should be 'l1', 'l2' or 'linf'"),
        ({"mixture": {"radius": -0.1}}, "mixture.radius: Input should be greater than or equal to 0"),
        ({"mixture": {"radius": math.inf}}, "mixture.radius"),
        ({"gates": {"max_mae": 1.0}}, "the gate max_mae says nothing of a classification (loss hinge)"),
        ({"spec": {"loss": "huber"}, "gates": {"min_f1": 0.5}}, "the gate min_f1 says nothing of a regression"),
    ],
)
def test_a_plan_without_meaning_is_refused_in_one_line(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        plan(**changes)
    assert said in explain(refusal.value) and "\n" not in explain(refusal.value)


SQUARE = {"matrix": [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], "limits": [60.0, 1000.0, -20.0, 0.0]}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "asset type rig has no fault classes, which a classification loss needs, and the plan's loss is hinge"),
        ({"spec": {"loss": "pinball", "support": SQUARE}}, "a polytope for regression needs a target_column"),
        ({"spec": {"loss": "pinball", "support": {"matrix": [[1.0]], "limits": [1.0], "target_column": [0.0]}}},
         "the polytope's matrix has 1 columns, asset type rig has 2 features"),
        ({"spec": {"loss": "pinball", "support": SQUARE | {"target_column": [0.0, 0.0, 0.0, 0.0]}}},
         "the support polytope is unbounded"),
        ({"spec": {"loss": "pinball"}, "method": "fdr-admm", "mixture": {"radius": 0.1}}, "fixed site weights"),
        ({"reveal": "sums", "spec": {"loss": "pinball"}, "mixture": {"radius": 0.1}}, "needs the answer of each plant"),
    ],
)
def test_a_problem_that_does_not_fit_type_or_method_is_refused_in_one_line(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        check_problem(plan(**changes), kind())
    assert said in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize("method", METHODS)
def test_the_squared_loss_is_for_methods_without_a_ball(method: str) -> None:
    squared = plan(method=method, spec={"loss": "squared"})
    if METHODS[method].ignores_radius:
        check_problem(squared, kind())
        return
    with pytest.raises(InvalidInputError, match="the squared loss has no worst case over a ball; take a method") as no:
        check_problem(squared, kind())
    assert "\n" not in str(no.value)


def test_supports_are_scaled_as_the_rows_are() -> None:
    box = scaled_support("sensor_ranges", kind(), "regression")
    assert isinstance(box, BoxSupport) and (box.target_low, box.target_high) == (0.0, 1.0)
    spec = PolytopeSpec.model_validate(
        {
            "matrix": [[2.0, 0.01], [-1.0, 0.0], [0.0, 0.01], [0.0, -0.01], [0.0, 0.0], [0.0, 0.0]],
            "limits": [100.0, -20.0, 9.0, -0.5, 4.5, -1.5], "target_column": [-3.0, 0.5, 0.0, 0.0, 1.0, -1.0],
        }
    )
    polytope = scaled_support(spec, kind(), "regression")
    assert isinstance(polytope, PolytopeSupport) and polytope.target_column is not None
    draw = np.random.default_rng(4)
    x, y = np.column_stack([draw.uniform(20, 60, 300), draw.uniform(0, 1000, 300)]), draw.uniform(1, 5, 300)
    target = kind().target
    assert target is not None
    physical = (x @ np.array(spec.matrix).T + np.outer(y, spec.target_column or ())) <= np.array(spec.limits)
    rows, goals = Ranges(kind().features).scale(x), (y - target.low) / target.width
    scaled = rows @ polytope.matrix.T + np.outer(goals, polytope.target_column) <= polytope.limits
    np.testing.assert_array_equal(physical, scaled)
    assert 0 < physical.mean() < 1
    with pytest.raises(ProblemError, match="has no target, leave target_column out"):
        scaled_support(spec, kind(fault_classes=CLASSES), "classification")


def test_scores_of_sums_are_those_of_the_rows_together() -> None:
    draw, target = np.random.default_rng(0), Target(name="gap", unit="mm", low=1.0, high=5.0)
    truth, guess = draw.uniform(size=(2, 40)), draw.uniform(size=(2, 40))

    def sums(y: Any, p: Any) -> dict[str, float]:
        error = p - y
        return {
            "n_test": len(y), "absolute_error": abs(error).sum(), "squared_error": (error**2).sum(),
            "target_sum": y.sum(), "target_squares": (y**2).sum(), "pinball_loss": abs(error).sum() / 2,
            "covered": 30.0,
        }

    scores = RegressionScores.from_sums(added([sums(truth[0], guess[0]), sums(truth[1], guess[1])]), target)
    y, p = target.unscale(truth.ravel()), target.unscale(guess.ravel())
    assert scores.mae == pytest.approx(abs(p - y).mean()) and scores.rmse == pytest.approx(((p - y) ** 2).mean() ** 0.5)
    assert scores.r2 == pytest.approx(1 - ((p - y) ** 2).sum() / ((y - y.mean()) ** 2).sum())
    assert (scores.n_test, scores.coverage) == (80, 0.75)
    alike = sums(np.full(5, 0.3), np.full(5, 0.4))
    assert RegressionScores.from_sums(alike, target).r2 is None
    assert RegressionScores.from_sums(dict.fromkeys(alike, 0.0), target) == RegressionScores()


@pytest.mark.parametrize(("name", "number"), [("huber", {"epsilon": 0.1}), ("epsilon_insensitive", {"epsilon": 0.05}),
                                              ("pinball", {"quantile": 0.8})])
def test_the_interval_holds_at_least_the_confidence_where_the_mean_loss_is_the_risk(
    name: str, number: dict[str, float]
) -> None:
    loss, draw = get_loss(name, **number), np.random.default_rng(1)
    target = Target(name="gap", unit="mm", low=1.0, high=5.0)
    for confidence in (0.3, 0.9):
        residuals = draw.standard_t(2, 4000) * 0.2
        risk = float(loss.value(residuals).mean())
        low, high = residual_interval(loss, risk, confidence)
        assert ((residuals >= low) & (residuals <= high)).mean() >= confidence
        np.testing.assert_allclose(loss.value(np.array([low, high])), risk / (1 - confidence))
        around = ErrorInterval.implied(loss, target, risk, confidence)
        assert (around.below, around.above) == pytest.approx((4 * high, -4 * low))


def test_the_severity_type_of_the_simulator_has_classes_and_a_target_in_square_millimetres() -> None:
    found = builtin_asset_type("triplex-pump-severity")
    assert found.features == builtin_asset_type("triplex-pump").features and found.class_names == ("healthy", "leak")
    assert found.target is not None and (found.target.name, found.target.unit) == ("leak_area", "mm^2")
