"""What one run of a plan may have of its own, and what it may not."""

from __future__ import annotations

from typing import Any

import pytest

from services.contracts.errors import InvalidInputError
from services.contracts.plans.overrides import FOR_ONE_RUN, tuning_alone, with_overrides
from services.contracts.plans.plan import Plan

PLAN = Plan(name="nightly", asset_type="rig", gap=1e-3, max_rounds=100)


def test_a_run_has_its_own_fields_and_says_which() -> None:
    made = with_overrides(PLAN, {"max_rounds": 7, "gap": 1e-4, "round_deadline_seconds": 5})
    assert (made.max_rounds, made.gap, made.round_deadline_seconds, made.auto_promote) == (7, 1e-4, 5.0, True)
    assert made.overrides == {"gap": 1e-4, "max_rounds": 7, "round_deadline_seconds": 5.0}
    same = made.model_copy(update={name: getattr(PLAN, name) for name in (*FOR_ONE_RUN, "overrides")})
    assert same == PLAN, "nothing else is touched"
    assert Plan.model_validate(made.model_dump(mode="json")) == made
    assert with_overrides(PLAN, {}) is PLAN and PLAN.overrides is None


MAY = {"gap", "max_rounds", "round_deadline_seconds", "absence_patience_seconds", "auto_promote"}


@pytest.mark.parametrize("name", [*sorted(set(Plan.model_fields) - MAY), "colour"])
def test_every_other_field_is_the_plans(name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{name} cannot be set for one run, change the plan"):
        with_overrides(PLAN, {name: getattr(PLAN, name, 1)})


@pytest.mark.parametrize(("name", "value", "said"), [
    ("gap", 0.0, "gap"), ("gap", 1.0, "gap"), ("max_rounds", 0, "max_rounds"), ("max_rounds", "many", "max_rounds"),
    ("round_deadline_seconds", float("nan"), "round_deadline_seconds"), ("auto_promote", True, "only be false"),
    ("auto_promote", "true", "only be false"), ("auto_promote", 1, "only be false"),
])
def test_values_are_checked_as_those_of_a_plan(name: str, value: Any, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        with_overrides(PLAN, {name: value})


@pytest.mark.parametrize(("overrides", "promotes"), [
    ({"gap": 1e-2}, False), ({"gap": 1e-3}, True), ({"gap": 1e-5}, True), ({"auto_promote": False}, False),
    ({"max_rounds": 5}, True),
])
def test_a_run_that_is_less_near_or_is_told_so_is_not_promoted_by_itself(
    overrides: dict[str, Any], promotes: bool
) -> None:
    assert with_overrides(PLAN, overrides).auto_promote is promotes
    never = PLAN.model_copy(update={"auto_promote": False})
    assert with_overrides(never, overrides).auto_promote is False


def test_a_run_that_tunes_alone_has_its_plan_as_it_is_and_a_plan_without_tuning_is_told_what_to_add() -> None:
    tuning = PLAN.model_copy(update={"tuning": "auto"})
    made = tuning_alone(tuning)
    assert made.tunes_only and not tuning.tunes_only and made.model_copy(update={"overrides": None}) == tuning
    with pytest.raises(InvalidInputError, match=r'has no tuning: write tuning = "auto" into it, or a table') as refused:
        tuning_alone(PLAN)
    assert refused.value.code == "no_tuning"
    with pytest.raises(InvalidInputError, match="tune_only cannot be set for one run"):
        with_overrides(tuning, {"tune_only": True})
