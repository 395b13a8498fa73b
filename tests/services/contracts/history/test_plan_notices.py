"""What is noted of a plan, and where the plants of its last run have answered the note."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from services.contracts.history.plan_notices import plan_notices
from services.contracts.history.run import ExcludedSite, Run, SiteTermsRecord
from services.contracts.plans.plan import Plan


def plan(**more: Any) -> Plan:
    return Plan.model_validate({"name": "nightly", "asset_type": "pump"} | more)


def run(own_scores: list[bool | None], excluded: tuple[str, ...] = ()) -> Run:
    sites = tuple(
        SiteTermsRecord(
            site_id=f"plant-{number}", weight=1 / len(own_scores), radius=0.1, n_samples=50, own_scores=tells
        )
        for number, tells in enumerate(own_scores, start=1)
    )
    gone = tuple(ExcludedSite(site_id=site, round=1, code="copied", reason="a test") for site in excluded)
    now = datetime.now(UTC)
    return Run(
        run_id="ab" * 16, plan=plan(), status="completed", created_at=now, updated_at=now, sites=sites, excluded=gone
    )


HUBER = {"loss": {"name": "huber", "epsilon": 0.05}}
FAIR = {"fairness": [{"index": "worst_site", "at_most": 0.5}, {"index": "gini", "at_most": 0.5}]}


@pytest.mark.parametrize(("more", "said"), [
    ({"gates": {"min_site_f1": 0.7}}, "on sums min_site_f1 holds only"),
    ({"gates": {"max_site_mae": 0.7}, "spec": HUBER}, "on sums max_site_mae holds only"),
    ({"gates": FAIR | {"min_site_f1": 0.7}}, "on sums min_site_f1, worst_site of loss, gini of loss hold only"),
])
def test_gates_of_single_plants_are_noted_on_sums_alone(more: dict[str, Any], said: str) -> None:
    (notice,) = plan_notices(plan(**more))
    assert notice.startswith(said) and "ballast-site enrol --own-scores" in notice
    assert plan_notices(plan(reveal="each site", **more)) == ()


@pytest.mark.parametrize("gates", [{}, {"min_f1": 0.9, "min_fresh_weight": 0.5}, {"min_site_f1": None}])
def test_gates_over_all_rows_hold_on_sums_too(gates: dict[str, Any]) -> None:
    assert plan_notices(plan(gates=gates)) == ()


def test_plants_that_told_their_own_scores_in_the_last_run_answer_the_note() -> None:
    gated = plan(gates={"min_site_f1": 0.7})
    assert plan_notices(gated, run([True, True, True])) == ()
    assert plan_notices(gated, run([False, True, True], excluded=("plant-1",))) == ()
    for unknown in (run([]), run([True, None, True])):
        (notice,) = plan_notices(gated, unknown)
        assert notice.endswith("every version stays challenger")
    (notice,) = plan_notices(gated, run([True, False, False]))
    assert notice.endswith("challenger: in the last run plant-2, plant-3 kept them")


def test_a_gap_above_its_gate_is_noted_beside_it() -> None:
    first, second = plan_notices(plan(gap=0.02, gates={"min_site_f1": 0.7}))
    assert "no version above 0.001 champion" in first and "min_site_f1" in second
    assert first.endswith("say gap = 0.001, or max_gap = 0.02 under [gates]")
    assert plan_notices(plan(gap=0.02, gates={"max_gap": 0.02})) == ()
