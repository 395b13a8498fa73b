"""What runs are called and labelled with in Prefect's pages."""

from __future__ import annotations

from typing import Any

import pytest

from flows.labels import plan_tags, run_name, run_tag, run_tags
from services.contracts.history.run import Run
from services.contracts.plans.plan import Plan

ID = "0123456789abcdef" * 2
TAGS = ["ballast", "plan:nightly", "asset-type:pump", "method:level-bundle", "reveal:each site"]


def a_run(overrides: dict[str, Any] | None = None) -> Run:
    plan = Plan.model_validate({
        "name": "nightly", "asset_type": "pump", "reveal": "each site", "overrides": overrides,
    })
    return Run.model_validate({
        "run_id": ID, "plan": plan, "created_at": "2031-01-01T00:00:00Z", "updated_at": "2031-01-01T00:00:00Z",
        "status": "pending",
    })


def test_a_run_bears_its_plans_tags_its_own_and_what_was_set_for_it_alone() -> None:
    run = a_run({"max_rounds": 50, "auto_promote": False})
    assert plan_tags(run.plan) == TAGS
    assert run_tags(run) == [*TAGS, f"run:{ID}", "set:max_rounds=50", "set:auto_promote=false"]
    assert run_tags(a_run()) == [*TAGS, f"run:{ID}"] and run_tag(run) == f"run:{ID}"


@pytest.mark.parametrize(("overrides", "attempt", "name"), [
    (None, None, "nightly-01234567"), (None, 0, "nightly-01234567-0"), (None, 2, "nightly-01234567-2"),
    ({"tune_only": True}, 1, "nightly-01234567-tuning-1"),
])
def test_a_flow_run_is_called_after_plan_run_and_start(
    overrides: dict[str, Any] | None, attempt: int | None, name: str
) -> None:
    assert run_name(a_run(overrides), attempt) == name
