"""Limits of a plan at the limit itself, and what it says where nothing is written."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from services.contracts.plans.gates import Gates
from services.contracts.plans.plan import Plan, check_weights
from services.contracts.problems.network import NetworkSpec
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.reading import explain

PLAN: dict[str, Any] = {"name": "nightly", "asset_type": "pump"}
NETWORK = {"loss": {"name": "cross_entropy"}, "network": {}}
EACH_SITE = {"reveal": "each site", "sites": ["a", "b"]}
AUDITOR = "UA2SQUDM6TI52YSNKI3Z7FQUZMOMZ2SQTFPNWDMPEBHVTNYSBJJXXHQ5"


def plan(**changes: Any) -> Plan:
    return Plan.model_validate(PLAN | changes)


def refusal(**changes: Any) -> str:
    with pytest.raises(ValidationError) as refused:
        plan(**changes)
    return explain(refused.value)


@pytest.mark.parametrize(("weights", "total"), [((0.25, 0.5), "0.75"), ((0.75, 0.5), "1.25")])
def test_weights_below_one_are_refused_as_those_above_are(weights: tuple[float, float], total: str) -> None:
    with pytest.raises(ValueError, match=f"they sum to {total}$"):
        check_weights(dict(zip("ab", weights, strict=True)), "ab")


def test_weights_may_miss_one_by_rounding_alone() -> None:
    check_weights({"a": 0.5, "b": 0.5 - 9e-10}, "ab")
    check_weights({"a": 0.1, "b": 0.2, "c": 0.7}, "abc")
    with pytest.raises(ValueError, match="must sum to 1"):
        check_weights({"a": 0.5, "b": 0.5 - 1e-8}, "ab")


def test_a_round_waits_for_no_plant_that_the_plan_does_not_name() -> None:
    said = refusal(**EACH_SITE, waiting={"sites": {"a": 1, "c": 2, "b": 0}})
    assert said == "waiting names sites that are not in sites: c"
    assert plan(**EACH_SITE, waiting={"sites": {"a": 1}}).waiting is not None
    assert plan(**EACH_SITE | {"sites": []}, waiting={"sites": {"c": 2}}).waiting is not None, "every active site"
    assert "cohort's sum" in refusal(waiting={})


def test_a_gap_that_is_asked_of_a_network_is_refused_however_it_is_written() -> None:
    """Left out it is not asked; one that is written down must not be dropped in silence."""
    assert plan(spec=NETWORK).gates.max_gap is None is plan(spec=NETWORK, gates={"min_f1": 0.5}).gates.max_gap
    assert plan(spec=NETWORK, gates=Gates(min_f1=0.5)).gates == Gates(max_gap=None, min_f1=0.5)
    spec = TrainingSpec(loss={"name": "cross_entropy"}, network=NetworkSpec())
    assert plan(spec=spec).gates.max_gap is None and plan().gates.max_gap == 1e-3
    for gates in ({"max_gap": 0.01}, Gates(max_gap=0.01)):
        assert "a network has no certificate" in refusal(spec=NETWORK, gates=gates)


def test_an_auditor_goes_with_the_sums_that_are_compared() -> None:
    assert 'audit = "every round" needs an auditor' in refusal(audit="every round")
    assert "an auditor goes with reveal" in refusal(auditor=AUDITOR, reveal="each site", method="cohort-bundle")
    assert "an auditor goes with reveal" in refusal(auditor=AUDITOR, method="fedavg")
    assert refusal(auditor="nobody").startswith("auditor: ")


def test_what_a_plan_says_where_nothing_is_written() -> None:
    """These are promises of the guide: who sees what, how much one plant weighs, when training stops."""
    found = plan()
    assert (found.reveal, found.method, found.min_cohort, found.sum_threshold) == ("sums", "cohort-bundle", 3, 2 / 3)
    assert plan(reveal="each site").method == "level-bundle"
    assert plan(reveal="each site", method="fedavg").method == "fedavg"
    assert (found.largest_share, found.sample_factor, found.min_sites) == (0.5, 100.0, 1)
    assert (found.gap, found.max_rounds, found.gates.max_gap) == (1e-3, 100, 1e-3)
    assert (found.audit, found.auditor, found.noise, found.warm_start, found.auto_promote) == (
        "contradictions", None, None, True, True,
    )


@pytest.mark.parametrize("changes", [
    {"min_cohort": 2}, {"sum_threshold": 0.66}, {"largest_share": 0}, {"sample_factor": 1}, {"gap": 1}, {"gap": 0},
    {"max_rounds": 0}, {"coverage_shift": 1}, {"mixture": {"radius": -0.1}}, {"min_sites": 0},
    {"site_settings": {"a": {"weight": 1.5}}}, {"absolute_gap": -1e-9},
])
def test_what_is_just_beyond_a_limit_is_refused(changes: dict[str, Any]) -> None:
    assert next(iter(changes)) in refusal(**changes)


def test_a_run_tunes_only_where_that_was_set_for_it() -> None:
    assert plan(overrides={"tune_only": True}).tunes_only
    assert not any(plan(overrides=each).tunes_only for each in (None, {}, {"tune_only": False}, {"max_rounds": 1}))


def test_coverage_under_a_shift_is_below_1_also_where_the_plan_leaves_it_to_its_default() -> None:
    assert plan(coverage_shift=0.05).coverage is None and plan(coverage=0.7, coverage_shift=0.2).coverage == 0.7
    for changes in ({"coverage_shift": 0.1}, {"coverage": 0.7, "coverage_shift": 0.3}):
        assert "which must be below 1" in refusal(**changes)
