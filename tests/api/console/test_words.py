"""A version's certificate in words: each fact has a sentence, and none says more than is proven."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from api.console.views.words import certificate_words, reveal_words
from services.contracts.history.run import ExcludedSite
from services.contracts.plans.plan import MixtureSpec, Plan
from services.contracts.problems.lift import FourierLiftSpec, SplineLiftSpec
from tests.api.conftest import a_version


def said(**changes: Any) -> str:
    return "\n".join(certificate_words(a_version("pumps", "a" * 32).model_copy(update=changes)))


def test_a_gap_up_to_a_tenth_is_near_the_best() -> None:
    known = {"objective": 0.5, "lower_bound": 0.45}
    assert "within 10 % of the best" in said(certified_gap=0.1, **known)
    assert "the best may have 10.1 % less" in said(certified_gap=0.101, **known)


@pytest.mark.parametrize("changes", [{"certified_gap": inf}, {"lower_bound": -inf}])
def test_what_is_not_proven_is_said_not_to_be(changes: dict[str, float]) -> None:
    text = said(**changes)
    assert "how far it is from the best is not proven" in text and "No model of this kind" not in text


@pytest.mark.parametrize("risk", [None, inf])
def test_a_risk_that_is_not_known_is_not_promised(risk: float | None) -> None:
    text = said(worst_case_risk=risk)
    assert "is not known" in text and "at most." not in text.split("\n")[0]


def test_the_worst_mix_of_plants_is_said_where_the_weights_are_not_trusted_alone() -> None:
    assert "worst mix of plants" not in said()
    text = said(mixture=MixtureSpec(norm="l1", radius=0.25))
    assert "the worst mix of plants within 0.25 (l1) of their weights" in text
    assert "that of the worst mix of plants.\n" in said(mixture=MixtureSpec(norm="l1", radius=2.0)) + "\n"


def test_what_a_radius_is_of_under_a_lift_is_said() -> None:
    spec, stretched = a_version("pumps", "a" * 32).spec, "The ball is one of lifted features"
    lifts = {"none": None, "spline": SplineLiftSpec(kind="spline", segments=3),
             "fourier": FourierLiftSpec(components=4, bandwidth=1.0)}
    assert [stretched in said(spec=spec.model_copy(update={"lift": lift})) for lift in lifts.values()] == [
        False, False, True
    ]


def test_what_did_not_answer_last_is_said() -> None:
    assert "Every plant answered the last round." in said(fresh_weight=1.0, freshness=None)
    assert "In the last round plants with 75 % of the weight answered" in said(fresh_weight=0.75, freshness=None)


def test_whose_answers_were_seen_is_said() -> None:
    assert "masked sums over cohorts of plants" in said(reveal="sums")
    assert "the answer of each plant alone" in said(reveal="each site")
    plan = Plan(name="weekly", asset_type="pump").model_copy(update={"reveal": "sums", "min_cohort": 4})
    assert reveal_words(plan) == "The coordinator sees masked sums over cohorts of 4 plants or more."
    assert reveal_words(plan.model_copy(update={"reveal": "each site"})).endswith("of each plant alone.")
    assert "An auditor may open rounds" in reveal_words(plan.model_copy(update={"auditor": "A"}))
    assert reveal_words(plan.model_copy(update={"noise": 0.1})) == (
        "The coordinator sees masked sums over cohorts of 4 plants or more. The plants put noise on them."
    )


def test_a_plant_that_was_away_is_not_said_to_have_lied() -> None:
    lied, away = (ExcludedSite(site_id="plant-1", round=2, code=code, reason="") for code in ("copied", "absent"))
    untrue = "1 of the plants were left out, because their answers cannot be true"
    too_long = "away for too long or told no more"
    assert untrue in said(excluded=(lied,)) and too_long not in said(excluded=(lied,))
    assert f"1 of the plants were left out, because they were {too_long}" in said(excluded=(away,))
    assert "cannot be true" not in said(excluded=(away,))
    assert untrue in said(excluded=(lied, away)) and too_long in said(excluded=(lied, away))


def test_estimates_and_probabilities_are_said() -> None:
    assert "they are estimates" not in said()
    assert "with probability 95 %" in said(mixture_confidence=0.95)
    assert said(note="A note.").endswith("A note.")


def test_a_risk_that_is_told_in_steps_is_said_to_be() -> None:
    """On sums it stands beside the objective of the rounds, which is a little lower."""
    steps = "at most, told from above, in steps"
    assert steps in said(reveal="sums", worst_case_risk=0.0736)
    assert steps not in said(reveal="each site", worst_case_risk=0.0736)
