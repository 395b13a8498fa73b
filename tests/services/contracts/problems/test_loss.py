"""A loss as a plan writes it, the network of one, and how many vectors are trained for all of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from models.basics import ProblemError
from models.methods.catalogue import get_method
from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.all_scores import joint_loss, method_for, objective_of, trained_heads
from services.contracts.problems.loss import LossSpec
from services.contracts.problems.network import NetworkSpec
from services.contracts.problems.training_spec import TrainingSpec

NETWORK: dict[str, Any] = {"loss": {"name": "cross_entropy"}, "network": {"hidden": 5, "dropout": 0.25, "seed": 3}}
SOFTMAX = {"loss": {"name": "cross_entropy"}}
TOGETHER = {"multi_class": "crammer_singer"}


def kind(n_classes: int) -> AssetType:
    """Two features, so many classes, and a target."""
    return AssetType.model_validate({
        "name": "rig", "features": [{"name": name, "unit": "1", "low": 0, "high": 1} for name in "ab"],
        "fault_classes": [{"name": f"c{k}", "severity": 0} for k in range(n_classes)],
        "target": {"name": "wear", "unit": "mm", "low": 0, "high": 1},
    })


def spec(changes: dict[str, Any]) -> TrainingSpec:
    return TrainingSpec.model_validate(changes)


@pytest.mark.parametrize(("given", "words", "task", "of_all"), [
    ("hinge", "hinge", "classification", False), ({"name": "logistic"}, "logistic", "classification", False),
    ({"name": "huber", "epsilon": 0.25}, "huber epsilon 0.25", "regression", False),
    ({"name": "pinball", "quantile": 0.9}, "pinball quantile 0.9", "regression", False),
    ("squared", "squared", "regression", False), ("cross_entropy", "cross_entropy", "classification", True),
])
def test_a_loss_is_said_by_its_name_and_its_own_number(given: Any, words: str, task: str, of_all: bool) -> None:
    found = LossSpec.model_validate(given)
    assert (str(found), found.task, found.of_all_scores) == (words, task, of_all)
    assert type(found.loss) is type(LossSpec.model_validate({"name": found.name}).loss)


@pytest.mark.parametrize(("given", "below", "above"), [
    ({"name": "pinball", "quantile": 0.9}, 0.9, 0.1), ({"name": "pinball", "quantile": 0.25}, 0.25, 0.75),
    ({"name": "epsilon_insensitive", "epsilon": 0.25}, 0.75, 0.75), ({"name": "epsilon_insensitive"}, 0.9, 0.9),
])
def test_a_losss_own_number_is_the_one_that_is_trained_with(given: Any, below: float, above: float) -> None:
    """Of predictions that are 1 below and 1 above the target."""
    found = LossSpec.model_validate(given).loss.value(np.array([-1.0, 1.0]))
    np.testing.assert_allclose(found, [below, above])


@pytest.mark.parametrize("given", [
    "zero_one", {"name": "hinge", "epsilon": 0.1}, {"name": "huber", "quantile": 0.5}, {"name": "huber", "epsilon": 0},
    {"name": "huber", "epsilon": float("inf")}, {"name": "pinball", "quantile": 1.0}, {"name": "pinball", "epsilon": 1},
    {"name": "pinball", "quantile": float("nan")},
], ids=str)
def test_a_number_that_is_none_or_of_another_loss_is_refused(given: Any) -> None:
    with pytest.raises((ValidationError, ProblemError)):
        LossSpec.model_validate(given)


@pytest.mark.parametrize("wrong", [
    {"hidden": 0}, {"hidden": 1025}, {"dropout": 1.0}, {"dropout": -0.1}, {"seed": -1}, {"seed": 2**53 + 1},
    {"activation": "tanh"},
], ids=str)
def test_a_network_beyond_its_limits_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        NetworkSpec.model_validate(wrong)


def test_a_network_in_words() -> None:
    assert NetworkSpec().words == "a network of two layers, 32 hidden units (relu, seed 0)"
    assert NetworkSpec(hidden=5, dropout=0.25, seed=3).words.endswith("5 hidden units (relu, dropout 0.25, seed 3)")


@pytest.mark.parametrize(("stated", "n_classes", "heads"), [
    ({}, 2, 1), ({}, 4, 4), ({"loss": "huber"}, 4, 1), (SOFTMAX, 2, 1), (SOFTMAX, 4, 1), (NETWORK, 4, 1),
    (TOGETHER, 2, 1), (TOGETHER, 4, 1),
], ids=str)
def test_vectors_that_are_trained_side_by_side(stated: dict[str, Any], n_classes: int, heads: int) -> None:
    assert trained_heads(spec(stated), kind(n_classes)) == heads


def test_all_classes_are_one_problem_from_three_on_where_the_plan_says_so() -> None:
    assert joint_loss(spec(TOGETHER), kind(2)) is None is joint_loss(spec({}), kind(3))
    found = joint_loss(spec(TOGETHER), kind(3))
    assert found is not None and found.n_classes == 3


def test_the_objective_is_that_of_the_plan_with_the_rows_that_a_unit_must_see() -> None:
    assert objective_of(spec({}), kind(3)) is None
    network, softmax = objective_of(spec(NETWORK), kind(3), 7), objective_of(spec(SOFTMAX), kind(3))
    assert (network.n_classes, network.hidden, network.dropout, network.least_rows) == (3, 5, 0.25, 7)
    assert objective_of(spec(NETWORK), kind(3), 0).least_rows == 1, "a policy that asks for none"
    assert softmax.n_classes == 3 and type(softmax) is not type(network)


def test_a_method_gets_the_halves_of_the_problem() -> None:
    fedavg = get_method("fedavg")
    assert method_for(fedavg, spec({}), kind(3)) is fedavg

    def halves(stated: dict[str, Any], least_rows: int = 1) -> tuple[Any, Any]:
        found = method_for(fedavg, spec(stated), kind(3), least_rows)
        return found.site, found.server

    (softmax, same), (network, own) = halves(SOFTMAX), halves(NETWORK, 7)
    assert same is fedavg.server and softmax.objective == objective_of(spec(SOFTMAX), kind(3))
    assert network.objective.least_rows == 7 and own is not fedavg.server
    again, other = (halves({**NETWORK, "network": NETWORK["network"] | {"seed": seed}})[1] for seed in (3, 4))
    assert (own.start == again.start).all() and (own.start != other.start).any()
    with pytest.raises(ProblemError, match="does not train with cross_entropy"):
        method_for(get_method("level-bundle"), spec(SOFTMAX), kind(3))
