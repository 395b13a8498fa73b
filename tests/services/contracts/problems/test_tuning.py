"""Grids of a tuning: what "auto" tries, and that the plan's own terms are what a table leaves out."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from models.basics import FloatArray
from models.losses.catalogue import LossName
from services.contracts.problems.lift import ProductLiftSpec, SplineLiftSpec
from services.contracts.problems.tuning import TuningSpec, settled, tuning_grid
from services.contracts.problems.tuning_curve import TunedCandidate, candidate_words, score_words

SPLINE = SplineLiftSpec(kind="spline", segments=6)
OWN = SplineLiftSpec(kind="spline", segments=3)
SQUARES = ProductLiftSpec(kind="products", features=(0, 1, 2), squares=True)
BESIDE = ProductLiftSpec(kind="products", features=(0, 1, 2), segments=6)


def test_auto_tries_the_plans_own_lift_and_those_of_the_task() -> None:
    assert tuning_grid("auto", None, 1.0, 0.0, 3).lifts == (None, SPLINE, SQUARES)
    assert tuning_grid("auto", OWN, 1.0, 0.0, 3).lifts == (OWN, SPLINE, SQUARES)
    assert tuning_grid("auto", SPLINE, 1.0, 0.0, 3).lifts == (SPLINE, SQUARES), "each once"
    assert tuning_grid("auto", None, 1.0, 0.0, 3, loss="huber").lifts == (None, SPLINE, BESIDE)
    assert tuning_grid("auto", OWN, 1.0, 0.0, 3, with_lifts=False).lifts == (OWN,)


def test_of_a_rare_class_with_rows_enough_the_largest_lift_is_taken_alone() -> None:
    """Six segments of three sensors and three products are 21 numbers."""
    for rare, lifts in ((20.0, (None, SPLINE)), (21.0, (BESIDE,))):
        found = tuning_grid("auto", None, 1.0, 0.0, 3, rows_by_class=np.array([1000.0, rare]))
        assert found.lifts == lifts and {each.radius for each in found.candidates} == {0.1, 0.3, 1.0}
    kept = tuning_grid("auto", OWN, 1.0, 0.0, 3, rows_by_class=np.array([1000.0, 21.0]))
    assert kept.lifts == (OWN, BESIDE), "what the plan writes is tried"
    assert {each.radius for each in tuning_grid("auto", None, 1.0, 0.0, 3).candidates} == {0.3, 1.0, 3.0, 10.0}


@pytest.mark.parametrize("n_features", [1, 2, 8, 9, 21, 22])
@pytest.mark.parametrize("loss", ["hinge", "pinball"])
@pytest.mark.parametrize("rows_by_class", [None, np.array([9000.0, 700.0]), np.array([9000.0, 2.0])])
def test_every_lift_that_auto_tries_can_be_drawn(
    n_features: int, loss: LossName, rows_by_class: FloatArray | None
) -> None:
    """Of one sensor there is no pair whose product could be learnt."""
    grid = tuning_grid("auto", None, 1.0, 0.0, n_features, loss=loss, rows_by_class=rows_by_class)
    assert len(grid.candidates) > 1
    for lift, size in zip(grid.lifts, grid.sizes(n_features), strict=True):
        assert (n_features if lift is None else lift.draw(n_features).n_outputs) == size


def test_auto_keeps_the_plans_cost_and_ball() -> None:
    found = tuning_grid("auto", None, 2.5, 0.75, 3).candidates
    assert {(each.label_flip_cost, each.mixture_radius) for each in found} == {(2.5, 0.75)} and len(found) == 12


def test_a_table_that_leaves_out_terms_has_the_plans_own() -> None:
    found = tuning_grid(TuningSpec(radius=(1.0, 10.0)), OWN, 2.5, 0.75, 3)
    terms = [(each.radius, each.label_flip_cost, each.mixture_radius) for each in found.candidates]
    assert found.lifts == (OWN,) and terms == [(1.0, 2.5, 0.75), (10.0, 2.5, 0.75)]
    spec = TuningSpec(lifts=("none", SPLINE, "none"), label_flip_cost=(1.0,), mixture_radius=(0.0,))
    other = tuning_grid(spec, OWN, 9, 9, 3)
    assert other.lifts == (None, SPLINE) and other.sizes(3) == (3, 18)
    assert {(each.label_flip_cost, each.mixture_radius) for each in other.candidates} == {(1.0, 0.0)}


def test_a_tuning_has_two_folds_to_twenty() -> None:
    assert TuningSpec(folds=20).folds == 20 and TuningSpec(folds=2).folds == 2
    for folds in (1, 21):
        with pytest.raises(ValidationError, match="folds"):
            TuningSpec(folds=folds)
    auto = settled("auto")
    assert auto is not None and (auto.folds, auto.rule, auto.every) == (3, "best", 1) and settled(None) is None


def test_a_candidate_and_its_score_in_words() -> None:
    def words(lift: object, ball: float = 0.0) -> str:
        return candidate_words(TunedCandidate.model_validate(
            {"radius": 3.0, "label_flip_cost": 1.0, "lift": lift, "mixture_radius": ball}
        ))

    assert [words(each) for each in (None, SPLINE, SQUARES, BESIDE, BESIDE.model_copy(update={"segments": 2}))] == [
        f"x3, 1, {lift}" for lift in ("no lift", "spline 6", "products", "products 6", "products 2")
    ]
    assert words(None, 0.5) == "x3, 1, no lift, ball 0.5"
    assert (score_words("hinge"), score_words("pinball")[:22]) == ("macro F-1", "minus the mean pinball")
    assert score_words("huber").startswith("minus the mean absolute error")
