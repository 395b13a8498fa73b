"""What a report says of how a model's terms were chosen."""

from __future__ import annotations

import pytest

from models.losses.catalogue import LossName
from services.contracts.problems.lift import FourierLiftSpec, LiftSpec, ProductLiftSpec, SplineLiftSpec
from services.contracts.problems.tuning_curve import TunedCandidate, candidate_words
from services.reporting.tuning_section import tuning_section
from tests.api.conftest import a_curve


@pytest.mark.parametrize(("loss", "said"), [
    ("hinge", "scores: macro F-1<"), ("logistic", "scores: macro F-1<"),
    ("huber", "scores: minus the mean absolute error, in shares of the target&#x27;s range"),
    ("pinball", "scores: minus the mean pinball loss, in shares of the target&#x27;s range"),
])
def test_a_curve_says_what_its_scores_are(loss: LossName, said: str) -> None:
    assert said in tuning_section(a_curve(), loss)


@pytest.mark.parametrize(("loss", "cost"), [
    ("hinge", "radius by factor, cost of a flip, lift"), ("pinball", "radius by factor, cost of moving a target, lift"),
])
def test_a_target_is_moved_and_not_flipped(loss: LossName, cost: str) -> None:
    assert cost in tuning_section(a_curve(), loss)


@pytest.mark.parametrize(("lift", "said"), [
    (None, "no lift"), (SplineLiftSpec(kind="spline", segments=1), "spline 1"),
    (ProductLiftSpec(kind="products", features=(0, 1)), "products"),
    (ProductLiftSpec(kind="products", features=(0, 1), segments=6), "products 6"),
    (FourierLiftSpec(components=4, bandwidth=0.5), "fourier"),
])
def test_a_candidate_says_its_lift_and_the_segments_of_splines(lift: LiftSpec | None, said: str) -> None:
    assert candidate_words(TunedCandidate(radius=3.0, label_flip_cost=1.0, lift=lift, folds=3)) == f"x3, 1, {said}"


def test_terms_that_were_not_tuned_have_no_section() -> None:
    assert tuning_section(None, "hinge") == ""


def test_a_bar_is_one_standard_error_to_either_side_and_the_chosen_one_is_filled() -> None:
    first, second = a_curve().candidates
    sure = second.model_copy(update={"standard_error": 0.01})
    drawn = tuning_section(a_curve().model_copy(update={"candidates": (first, sure)}), "hinge")
    assert '<line x1="251.0" y1="18" x2="251.0" y2="18"' in drawn, "nothing is known of its error"
    assert '<line x1="546.2" y1="36" x2="611.8" y2="36"' in drawn
    assert 'cx="251.0" cy="18" r="4" fill="white"' in drawn and 'cx="579.0" cy="36" r="4" fill="black"' in drawn
