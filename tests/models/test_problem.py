"""What a problem is refused for, and where its tolerances end."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models.basics import ProblemError
from models.geometry.supports import BoxSupport, PolytopeSupport
from models.losses.catalogue import get_loss
from models.losses.joint import Softmax
from models.problem import Certificate, RobustSpec, ServerProblem, SiteProblem, SiteTerms
from models.validation import check_rows, check_site_problem


def stated(*weights: float) -> ServerProblem:
    return ServerProblem(2, tuple(SiteTerms(f"s{k}", each, 0.1, 1.0) for k, each in enumerate(weights)), "l2", True)


def test_site_weights_are_a_mixture_but_for_rounding() -> None:
    assert stated(0.5, 0.5 + 9e-10).weights.sum() > 1.0
    for wrong in ((0.5, 0.5 + 2e-9), (0.5, 0.5 - 2e-9), (1.5, -0.5), (math.nan, 0.5)):
        with pytest.raises(ProblemError, match="site weights must be at or above 0 and sum to 1"):
            stated(*wrong)
    with pytest.raises(ProblemError, match="at least one site"):
        stated()
    with pytest.raises(ProblemError, match="two sites have the same id"):
        ServerProblem(2, (SiteTerms("a", 0.5, 0.1, 1.0), SiteTerms("a", 0.5, 0.1, 1.0)), "l2", True)
    assert stated(1.0).n_swings == 0 and replace(stated(1.0), box=True).n_swings == 2


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"radius": -1e-9}, "radius must be a finite number at or above 0"), ({"radius": math.inf}, "radius must be"),
        ({"radius": math.nan}, "radius must be"), ({"label_flip_cost": 0.0}, "label_flip_cost must be above 0"),
        ({"label_flip_cost": math.nan}, "label_flip_cost must be above 0"),
        ({"transport_norm": "l3"}, "transport_norm must be one of"),
        ({"loss": get_loss("squared"), "radius": 1e-9}, "squared loss has no worst case .*; huber is a loss"),
        ({"loss": get_loss("cross_entropy"), "radius": 0.1}, "has no worst case .*; logistic is a loss"),
    ],
)
def test_a_ball_that_is_none_is_refused(terms: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"radius": 0.1, "label_flip_cost": 1.0}
    RobustSpec(**given | {"radius": 0.0, "label_flip_cost": math.inf, "loss": get_loss("squared")})
    with pytest.raises(ProblemError, match=words):
        RobustSpec(**given | terms)


def test_problems_of_other_risks_have_other_digests() -> None:
    """Rows, labels, row weights, their shapes, every term and every wall; the same numbers have the same one."""
    rows, labels = np.arange(8.0).reshape(4, 2) / 8, np.array([1.0, -1.0, 1.0, -1.0])
    low, high = np.zeros(2), np.ones(2)
    spec = RobustSpec(0.1, 1.0, "l2", BoxSupport(low, high))
    first = SiteProblem(rows, labels, spec)
    walls = PolytopeSupport(np.vstack([np.eye(2), -np.eye(2)]), np.concatenate([high, low]))
    others = [
        SiteProblem(rows + 1e-9, labels, spec), SiteProblem(rows, -labels, spec),
        SiteProblem(rows, labels, spec, np.ones(4)), SiteProblem(rows, labels, spec, np.array([0.5, 1.5, 1.0, 1.0])),
        SiteProblem(rows.reshape(2, 4), labels, spec),
        *(SiteProblem(rows, labels, replace(spec, **terms)) for terms in (
            {"radius": 0.2}, {"label_flip_cost": 2.0}, {"transport_norm": "l1"}, {"fit_intercept": False},
            {"support": None}, {"support": BoxSupport(low, high + 1e-9)}, {"support": BoxSupport(low - 1.0, high)},
            {"support": walls}, {"support": PolytopeSupport(walls.matrix, walls.limits + 1e-9)},
            {"support": None, "loss": get_loss("logistic")},
        )),
    ]
    digests = [each.digest for each in (first, *others)]
    assert len(set(digests)) == len(digests)
    assert SiteProblem(rows.copy(), labels.copy(), replace(spec)).digest == first.digest


def test_a_model_has_a_plane_or_as_many_as_its_loss() -> None:
    for loss, intercept, dimension in (
        (get_loss("hinge"), True, 4), (get_loss("hinge"), False, 3), (Softmax(4), True, 12), (Softmax(4), False, 9)
    ):
        spec = RobustSpec(0.0, 1.0, fit_intercept=intercept, loss=loss)
        assert SiteProblem(np.zeros((2, 3)), np.ones(2), spec).dimension == dimension


def test_values_of_rows_are_weighed_and_counts_are_ones_without_weights() -> None:
    plain, values = SiteProblem(np.zeros((2, 1)), np.ones(2), RobustSpec(0.1, 1.0)), np.array([2.0, 3.0])
    weighed = replace(plain, row_weights=np.array([0.5, 1.5]))
    assert plain.weigh(values) is values and plain.counts.tolist() == [1.0, 1.0]
    assert weighed.weigh(values).tolist() == [1.0, 4.5] and weighed.counts.tolist() == [0.5, 1.5]


def test_the_gap_is_over_the_upper_bound_and_is_met_at_its_limit() -> None:
    """Where a bound is not known no gap is met; of two zeros it is 0."""
    assert Certificate(2.0, 1.5).gap == 0.25 and Certificate(0.0, 0.0).gap == 0.0 and Certificate(2.0, 0.0).gap == 1.0
    for upper, lower in ((math.inf, 1.0), (1.0, -math.inf), (math.inf, -math.inf)):
        found = Certificate(upper, lower)
        assert found.gap == math.inf and not found.meets(1e9) and not found.meets(1e-3, 1.0)
    found = Certificate(2.0, 1.5, scale=4.0)
    assert found.meets(0.25) and not found.meets(0.2499)
    assert found.meets(0.1, 0.5) and not found.meets(0.1, 0.4999)
    assert found.distance_allowed(0.1, None) == pytest.approx(4e-4) and found.distance_allowed(0.1, 0.0) == 0.0


def test_a_feature_may_stick_out_of_its_box_by_rounding_in_its_own_units() -> None:
    box = BoxSupport(np.array([0.0, 0.0]), np.array([1.0, 1e6]))
    check_rows(np.array([[1.0 + 9e-10, 1e6 + 9e-4], [-9e-10, -9e-4]]), np.ones(2), box)
    for outside in ([1.0 + 2e-9, 1.0], [1.0, 1e6 + 2e-3], [-2e-9, 1.0], [1.0, -2e-3]):
        with pytest.raises(ProblemError, match="1 of 1 rows lie outside the support box"):
            check_rows(np.array([outside]), np.ones(1), box)


def test_row_weights_have_the_mean_1_but_for_rounding() -> None:
    spec, features, labels = RobustSpec(0.1, 1.0), np.zeros((2, 1)), np.array([1.0, -1.0])
    check_site_problem(SiteProblem(features, labels, spec, np.array([0.5, 1.5 + 1e-9])))
    for wrong in ([0.5, 1.5 + 4e-9], [0.5, 1.4], [0.0, 2.0], [-0.5, 2.5]):
        with pytest.raises(ProblemError, match="row weights must be above 0 and have the mean 1"):
            check_site_problem(SiteProblem(features, labels, spec, np.array(wrong)))


def test_a_target_beyond_a_range_with_one_end_is_outside() -> None:
    """What rounding may add is a share of the range: of one without an end it must not be without end."""
    features, low, high = np.zeros((2, 1)), np.zeros(1), np.ones(1)
    for place, inside, outside in (
        (BoxSupport(low, high, target_low=0.0), -9e-10, -2e-9), (BoxSupport(low, high, target_high=1.0), 1 + 9e-10, 1.1)
    ):
        check_rows(features, np.array([0.5, inside]), place, "regression")
        with pytest.raises(ProblemError, match="1 of 2 targets lie outside the support"):
            check_rows(features, np.array([0.5, outside]), place, "regression")


def test_labels_of_a_loss_of_all_classes_are_indices_of_them() -> None:
    spec, features = RobustSpec(0.1, 1.0, loss=Softmax(3)), np.zeros((3, 1))
    check_site_problem(SiteProblem(features, np.array([0.0, 1.0, 2.0]), spec))
    for wrong in (3.0, -1.0, 0.5):
        with pytest.raises(ProblemError, match="labels must be class indices from 0 to 2"):
            check_site_problem(SiteProblem(features, np.array([0.0, 1.0, wrong]), spec))
