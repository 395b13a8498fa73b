"""What arguments mean: the ball over the clients, the loss, weights by a word, and every form of a support."""

from __future__ import annotations

import ast
import math
import re
from typing import Any

import numpy as np
import pytest

from models.basics import ProblemError
from models.estimators import DRSVC, FederatedDRClassifier
from models.estimators.choices import check_client_weights, chosen_loss, mixture_ball, stated_support
from models.geometry.supports import BoxSupport, PolytopeSupport
from models.losses.catalogue import get_loss
from models.site_ambiguity.ball import MixtureBall

MATRIX = np.vstack([np.eye(2), -np.eye(2)])
LIMITS = np.array([1.0, 2.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("norm", "found"), [(1, "l1"), (2, "l2"), (np.inf, "linf"), (2.0, "l2"), ("l1", "l1"), ("linf", "linf")]
)
def test_the_norm_over_the_clients_is_a_number_or_a_word(norm: Any, found: Any) -> None:
    assert mixture_ball(norm, 0.3) == MixtureBall(found, 0.3)


@pytest.mark.parametrize("norm", [True, 3, "2", None, [1], math.nan])
def test_a_norm_that_is_none_is_refused(norm: Any) -> None:
    with pytest.raises(ProblemError, match="client_norm must be 1, 2 or inf"):
        mixture_ball(norm, 0.3)


def test_a_radius_over_the_clients_is_a_number_at_or_above_0() -> None:
    with pytest.raises(ProblemError, match="client_radius must be a number, got 'wide'"):
        mixture_ball(1, "wide")
    with pytest.raises(ProblemError, match="radius over the sites must be a finite number"):
        mixture_ball(1, -0.1)


def test_a_loss_is_one_of_its_task_with_its_own_number() -> None:
    assert chosen_loss("huber", "regression", epsilon=0.25) == get_loss("huber", epsilon=0.25)
    assert chosen_loss("pinball", "regression", quantile=0.9) == get_loss("pinball", quantile=0.9)
    assert chosen_loss("hinge", "classification") == get_loss("hinge")
    with pytest.raises(ProblemError, match="loss of a classifier must be one of hinge"):
        chosen_loss("huber", "classification")
    with pytest.raises(ProblemError, match="loss of a regressor must be one of huber"):
        chosen_loss("hinge", "regression")


def test_weights_of_clients_are_a_word_or_a_mapping() -> None:
    stated: tuple[Any, ...] = (None, "uniform", "samples", {"a": 1.0})
    for weights in stated:
        assert check_client_weights(weights) is weights
    with pytest.raises(ProblemError, match='^weights must be "uniform", "samples" or a mapping'):
        check_client_weights("equal", "weights")


def box(support: Any, **more: Any) -> BoxSupport:
    found = stated_support(support, 2, **more)
    assert isinstance(found, BoxSupport)
    return found


def test_a_pair_is_a_box_and_four_are_a_box_with_a_range_of_the_target() -> None:
    """Numbers for all features, or vectors; without a range of the target it has no ends."""
    for regression in (False, True):
        found = box((-1.0, np.array([1.0, 2.0])), regression=regression)
        assert found.low.tolist() == [-1.0, -1.0] and found.high.tolist() == [1.0, 2.0]
        assert (found.target_low, found.target_high) == (-math.inf, math.inf)
    found = box((0.0, 1.0, -3.0, 5.0), regression=True)
    assert (found.target_low, found.target_high) == (-3.0, 5.0) and found.high.tolist() == [1.0, 1.0]


def test_a_matrix_with_limits_is_a_polytope() -> None:
    """Of a regression the column of the target stands between the two."""
    found = stated_support((MATRIX.tolist(), LIMITS.tolist()), 2, regression=False)
    assert isinstance(found, PolytopeSupport) and found.target_column is None
    assert found.matrix.tolist() == MATRIX.tolist() and found.limits.tolist() == LIMITS.tolist()
    whole, column = np.vstack([MATRIX, np.zeros((2, 2))]), np.array([0, 0, 0, 0, 1.0, -1.0])
    found = stated_support((whole, column, np.append(LIMITS, [2.0, 3.0])), 2, regression=True)
    assert isinstance(found, PolytopeSupport) and found.target_column is not None
    assert found.target_column.tolist() == column.tolist() and found.limits[-1] == 3.0


def test_supports_that_are_objects_and_none_come_back_as_they_are() -> None:
    for support in (None, BoxSupport(np.zeros(2), np.ones(2)), PolytopeSupport(MATRIX, LIMITS)):
        assert stated_support(support, 2, regression=False) is support


@pytest.mark.parametrize(
    ("support", "regression", "words"),
    [
        ("box", False, "a pair \\(low, high\\), or a polytope \\(C, d\\), got str"),
        ((0.0,), False, "got tuple"), ((0.0,) * 5, True, "got tuple"),
        ((0.0, 1.0, 2.0), True, "is \\(low, high, target_low, target_high\\), for regression only"),
        ((0.0, 1.0, -3.0, 5.0), False, "for regression only"),
        ((MATRIX, LIMITS), True, "is \\(C, c, d\\) for regression, got 2 parts"),
        ((MATRIX, LIMITS, LIMITS), False, "is \\(C, d\\) for classification, got 3 parts"),
        ((MATRIX[:, :1], LIMITS), False, "matrix has 1 columns, the data have 2 features"),
        ((MATRIX, ["a", "b", "c", "d"]), False, "needs arrays of numbers"),
        ((0.0, 1.0, "low", 5.0), True, "target_low must be a number, got 'low'"),
        ((np.zeros(3), 1.0), False, "vectors of length 2"),
    ],
)
def test_a_support_that_is_none_is_refused_in_one_line(support: Any, regression: bool, words: str) -> None:
    with pytest.raises(ProblemError, match=words) as refusal:
        stated_support(support, 2, regression=regression)
    assert "\n" not in str(refusal.value)


def test_the_classifier_starts_from_what_its_documentation_says() -> None:
    """Every ``default`` of its own parameters; what it shares with ``DRSVC`` begins as there."""
    ours, plain = FederatedDRClassifier().get_params(), DRSVC().get_params()
    said = dict(re.findall(r"^    (\w+) : .*, default (\S+)$", FederatedDRClassifier.__doc__ or "", re.MULTILINE))
    assert set(said) >= {"radius", "label_flip_cost", "client_radius", "client_norm", "transport_norm", "support"}
    assert {name: ast.literal_eval(word) for name, word in said.items()} == {name: ours[name] for name in said}
    for name in ("gap", "absolute_gap", "max_rounds", "fit_intercept", "calibration_folds", "lift_size"):
        assert ours[name] == plain[name], name


def test_the_classifier_refuses_weights_of_clients_that_are_none() -> None:
    model = FederatedDRClassifier(client_weights="equal")
    with pytest.raises(ProblemError, match='client_weights must be "uniform", "samples" or a mapping'):
        model.fit(np.array([[0.0], [1.0], [0.2], [0.9]]), [0, 1, 0, 1], groups=[0, 0, 1, 1])
