from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from models.fairness.indices import INDICES
from services.contracts.documents import to_plain
from services.contracts.evaluation.fairness import WORST_SITE, FairnessGate
from services.contracts.plans.gates import Gates
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.version_facts import SiteScore
from services.registry.gates import check_gates, failed_gates

MakeVersion = Callable[..., ModelVersion]
NONE = Gates(max_gap=None)


def site(site_id: str, f1: float | None) -> SiteScore:
    return SiteScore(site_id=site_id, weight=0.5, radius=0.001, f1=f1)


def test_no_gate_asked_for_gives_nothing(make_version: MakeVersion) -> None:
    assert check_gates(NONE, make_version()) == ()


def test_a_version_that_says_one_class_of_everything_does_not_pass_whatever_the_plan_asks(
    make_version: MakeVersion,
) -> None:
    constant = np.zeros((1, make_version().weights.shape[1]))
    constant[0, :2], constant[0, -1] = (0.4, -0.9), -0.41
    (result,) = check_gates(NONE, make_version(weights=constant, f1=1.0))
    assert (result.name, result.holds, result.found) == ("classes_told", False, 1.0)
    assert result.reason == "it says healthy of every measurement within the sensor ranges"
    (result,) = check_gates(NONE, make_version(weights=-constant, f1=1.0))
    assert result.reason.startswith("it says leak of every")
    constant[0, -1] = -0.39
    assert check_gates(NONE, make_version(weights=constant)) == ()
    three = make_version(n_classes=3)
    planes = np.zeros_like(three.weights)
    planes[1, -1] = 1.0
    (result,) = check_gates(NONE, make_version(n_classes=3, weights=planes))
    assert f"it says {three.asset_type.class_names[1]} of" in result.reason
    planes[2, 0] = 1.1
    assert check_gates(NONE, make_version(n_classes=3, weights=planes)) == ()


def test_parameters_of_a_network_are_no_planes(make_version: MakeVersion) -> None:
    """Its last number is a class's own, below that of the other: taken for a plane it would say one class of all."""
    spec = TrainingSpec.model_validate({"loss": "cross_entropy", "network": {"hidden": 3}})
    plain = make_version()
    n_features = len(plain.asset_type.features)
    weights = np.zeros((1, 3 * (n_features + 1) + 2 * 4))
    weights[0, -1] = -5.0
    assert check_gates(NONE, make_version(spec=spec, weights=weights)) == ()


@pytest.mark.parametrize(("found", "holds"), [(9e-4, True), (1e-3, True), (1.0000001e-3, False), (math.nan, False)])
def test_gap_at_the_limit_holds_and_above_it_does_not(make_version: MakeVersion, found: float, holds: bool) -> None:
    (result,) = check_gates(Gates(max_gap=1e-3), make_version(certified_gap=found))
    assert (result.name, result.wanted, result.holds) == ("max_gap", 1e-3, holds)
    assert bool(result.reason) is not holds


def test_infinite_gap_does_not_hold(make_version: MakeVersion) -> None:
    (result,) = check_gates(Gates(max_gap=1.0), make_version(certified_gap=math.inf, lower_bound=-math.inf))
    assert not result.holds and result.found == math.inf


def test_worst_site_decides(make_version: MakeVersion) -> None:
    version = make_version(sites=(site("plant-a", 0.95), site("plant-b", 0.78)))
    (result,) = check_gates(NONE.model_copy(update={"min_site_f1": 0.78}), version)
    assert result.holds and result.found == 0.78
    (result,) = check_gates(NONE.model_copy(update={"min_site_f1": 0.79}), version)
    assert not result.holds


@pytest.mark.parametrize("missing", [None, math.nan])
def test_a_site_without_a_score_fails_the_worst_site_gate_and_is_named(
    make_version: MakeVersion, missing: float | None
) -> None:
    version = make_version(sites=(site("plant-a", 0.95), site("plant-b", missing)))
    (result,) = check_gates(NONE.model_copy(update={"min_site_f1": 0.5}), version)
    assert not result.holds and result.found is None and "plant-b" in result.reason


def test_missing_f1_fails_and_failures_are_told_on_one_line(make_version: MakeVersion) -> None:
    gates = Gates(max_gap=1e-3, min_f1=0.8, min_fresh_weight=0.9)
    results = check_gates(gates, make_version(f1=None, fresh_weight=0.75))
    assert [result.holds for result in results] == [True, False, False]
    told = failed_gates(results)
    assert told.startswith("min_f1: ") and "min_fresh_weight: 0.75 is not at or above 0.9" in told and "\n" not in told


def with_losses(make_version: MakeVersion, *losses: float | None) -> ModelVersion:
    sites = (SiteScore(site_id=f"plant-{i}", weight=0.1, radius=0.1, loss=loss) for i, loss in enumerate(losses))
    return make_version(sites=tuple(sites))


def test_a_gate_of_fairness_holds_at_its_limit_and_not_above(make_version: MakeVersion) -> None:
    version = with_losses(make_version, 1.0, 2.0, 3.0, 4.0, 6.0)
    for index, found in (("relative_unfairness", 6.0), ("worst_site", 6.0), ("gini", 0.3), ("palma", 4.0)):
        for limit, holds in ((found, True), (found * 0.99, False)):
            gates = NONE.model_copy(update={"fairness": (FairnessGate(index=index, at_most=limit + 1e-12),)})
            (result,) = check_gates(gates, version)
            assert (result.holds, result.found) == (holds, pytest.approx(found))


def test_a_gate_of_fairness_does_not_hold_where_a_site_is_not_known(make_version: MakeVersion) -> None:
    gates = NONE.model_copy(update={"fairness": (FairnessGate(index="gini", at_most=1.0),)})
    (result,) = check_gates(gates, with_losses(make_version, 1.0, None))
    assert not result.holds and "no held-out loss from plant-1" in result.reason


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"index": "goodness", "at_most": 1}, "there is no fairness index 'goodness'; indices are"),
        ({"index": "gini", "at_most": -1}, "at_most"),
        ({"index": "gini", "at_most": 1, "alpha": 0.1}, "alpha and beta belong to relative_unfairness"),
        ({"index": "relative_unfairness", "at_most": 1, "alpha": 1.5}, "alpha"),
    ],
)
def test_a_gate_of_fairness_that_is_none_is_refused(fields: dict[str, object], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Gates.model_validate({"fairness": [fields]})


@pytest.mark.parametrize("index", [*INDICES, WORST_SITE])
def test_a_gate_of_fairness_comes_back_from_its_document(index: str) -> None:
    gates = Gates.model_validate({"fairness": [{"index": index, "at_most": 2.0, "basis": "worst_case_risk"}]})
    assert Gates.model_validate(to_plain(gates)) == gates


def measured(site_id: str, mae: float | None) -> SiteScore:
    return SiteScore(site_id=site_id, weight=0.5, radius=0.001, mae=mae)


@pytest.mark.parametrize(
    ("gates", "found", "holds", "said"),
    [
        ({"max_mae": 0.3}, 0.2, True, ""),
        ({"max_mae": 0.1}, 0.2, False, "0.2 is not at or below 0.1"),
        ({"max_site_mae": 0.4}, 0.4, True, ""),
        ({"max_site_mae": 0.3}, 0.4, False, "0.4 is not at or below 0.3"),
        ({"min_coverage": 0.9}, 0.95, True, ""),
        ({"min_coverage": 0.99}, 0.95, False, "0.95 is not at or above 0.99"),
    ],
)
def test_gates_of_a_target(
    make_version: MakeVersion, gates: dict[str, float], found: float, holds: bool, said: str
) -> None:
    version = make_version(mae=0.2, coverage=0.95, sites=(measured("plant-a", 0.1), measured("plant-b", 0.4)))
    (result,) = check_gates(NONE.model_copy(update=gates), version)
    assert (result.name, result.found, result.holds, result.reason) == (next(iter(gates)), found, holds, said)


def test_gates_of_a_target_do_not_hold_where_it_is_not_known(make_version: MakeVersion) -> None:
    version = make_version(sites=(measured("plant-a", 0.1), measured("plant-b", None)))
    gates = NONE.model_copy(update={"max_mae": 1.0, "max_site_mae": 1.0, "min_coverage": 0.1})
    results = check_gates(gates, version)
    assert [result.holds for result in results] == [False, False, False]
    assert "plant-b" in failed_gates(results)


def test_the_gap_of_a_run_whose_cuts_no_rows_have_holds_nowhere(make_version: MakeVersion) -> None:
    version = make_version(certified_gap=1e-4, absolute_gap=1.0, refuted="a cut of cohort-1 is too steep")
    (result,) = check_gates(Gates(max_gap=1e-3), version)
    assert (result.name, result.found, result.holds) == ("max_gap", 1e-4, False)
    assert result.reason == "no rows have what plants told in its run: a cut of cohort-1 is too steep"
    assert check_gates(NONE, version) == ()


def test_bounds_within_the_plans_absolute_gap_hold(make_version: MakeVersion) -> None:
    """Where the optimum is 0 no relative gap closes."""
    near = make_version(certified_gap=1.0, worst_case_risk=2e-7, objective=2e-7, lower_bound=0.0, absolute_gap=1e-6)
    (result,) = check_gates(Gates(max_gap=1e-3), near)
    assert result.holds and result.found == 1.0 and not result.reason
    (result,) = check_gates(Gates(max_gap=1e-3), near.model_copy(update={"absolute_gap": 2e-7}))
    assert result.holds, "as near as the plan asks"
    (result,) = check_gates(Gates(max_gap=1e-3), near.model_copy(update={"absolute_gap": 1e-8}))
    assert not result.holds
