"""Gates as a plan writes them: their limits, of which task they are, and which need a figure of every site."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from services.contracts.evaluation.fairness import FairnessGate
from services.contracts.history.plan_notices import plan_notices
from services.contracts.plans.gates import CLASS_GATES, SITE_GATES, TARGET_GATES, Gates
from services.contracts.plans.plan import Plan

OF_CLASSES = ("min_f1", "min_site_f1")
OF_TARGETS = ("max_mae", "max_site_mae", "min_coverage")
EVERY = Gates(min_f1=0.0, min_site_f1=0.0, max_mae=1.0, max_site_mae=1.0, min_coverage=0.0)


def test_a_gate_that_a_model_can_never_answer_is_of_the_other_task() -> None:
    """Also one that is 0, at which it would always hold: it would be missing, and then it never does."""
    assert EVERY.of_other_task("regression") == OF_CLASSES == CLASS_GATES
    assert EVERY.of_other_task("classification") == OF_TARGETS == TARGET_GATES
    assert Gates().of_other_task("regression") == Gates().of_other_task("classification") == ()


def test_every_gate_is_of_one_task_or_of_both() -> None:
    both = {"max_gap", "min_fresh_weight", "fairness"}
    assert set(Gates.model_fields) == both | set(OF_CLASSES) | set(OF_TARGETS)


@pytest.mark.parametrize(("name", "loss"), [("min_site_f1", "hinge"), ("max_site_mae", "huber")])
def test_gates_at_the_worst_site_are_noted_on_sums(name: str, loss: str) -> None:
    plan = Plan.model_validate({"name": "nightly", "asset_type": "rig", "gates": {name: 0.5}, "spec": {"loss": loss}})
    assert name in SITE_GATES and len(SITE_GATES) == 2 and name in "".join(plan_notices(plan))


@pytest.mark.parametrize("wrong", [
    {"max_gap": 0.0}, {"min_f1": 1.01}, {"min_f1": -0.01}, {"min_site_f1": 1.01}, {"min_fresh_weight": 1.01},
    {"max_mae": 0.0}, {"max_mae": float("inf")}, {"max_site_mae": float("inf")}, {"max_site_mae": float("nan")},
    {"min_coverage": 1.01},
], ids=str)
def test_what_no_version_could_hold_or_fail_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        Gates(**wrong)


def test_a_plan_that_names_no_gate_asks_for_the_gap_alone() -> None:
    asked = {name for name, value in Gates() if value not in (None, ())}
    assert asked == {"max_gap"} and Gates().max_gap == 1e-3
    assert Gates(fairness=(FairnessGate(index="gini", at_most=0.3),)).fairness[0].at_most == 0.3
