"""What a plan means for each site, and what a site may say of itself when it joins."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from services.contracts.errors import InvalidInputError
from services.contracts.history.run import ExcludedSite, Run, SiteTermsRecord
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.plans.plan import Plan
from services.coordinator.round_loop.run_parts import RunParts
from services.coordinator.run_state.terms import (
    check_asked,
    cohorts_of,
    exclusions_note,
    joined_terms,
    shared_spec,
    site_spec,
    site_specs,
    weights_note,
)
from tests.services.coordinator.fake_ports import FakeWorks

RIG = AssetType(
    name="rig", features=tuple(Feature(name=name, unit="1", low=0, high=1) for name in ("p", "q")),
    fault_classes=(FaultClass(name="ok", severity=0), FaultClass(name="leak", severity=1)),
)


def plan(**changes: Any) -> Plan:
    return Plan.model_validate({"name": "nightly", "asset_type": "rig"} | changes)


def joined(**changes: float) -> dict[str, Any]:
    said = {"n_samples": 30, "radius": 0.1, "radius_is_estimate": 0, "confidence": 0, "lift_check": 0} | changes
    return {name: np.array(float(value)) for name, value in said.items()}


def test_a_site_gets_its_own_ball_and_the_others_that_of_the_plan() -> None:
    own = {"a": {"radius": {"rule": "fixed", "value": 0.5}, "label_flip_cost": 3.0}}
    wanted = plan(site_settings=own, spec={"label_flip_cost": 2.0, "transport_norm": "linf"})
    first, second = (site_spec(wanted, RIG, site) for site in "ab")
    assert (first.radius.value, first.label_flip_cost, first.transport_norm) == (0.5, 3.0, "linf")
    assert second == wanted.spec


def test_after_the_join_the_radius_is_the_one_that_the_site_joined_with() -> None:
    wanted = plan(site_settings={"a": {"radius": {"rule": "confidence", "confidence": 0.9}}})
    run = Run(
        run_id="0" * 32, plan=wanted, status="running", created_at=datetime.now(UTC), updated_at=datetime.now(UTC),
        sites=(SiteTermsRecord(site_id="a", weight=1.0, radius=0.123, n_samples=9),),
    )
    specs = site_specs(run, RIG, ["a", "b"])
    assert (specs["a"].radius.rule, specs["a"].radius.value) == ("fixed", 0.123)
    assert specs["b"].radius == wanted.spec.radius


def test_what_a_plan_makes_of_each_site_is_made_anew_where_the_sites_or_the_keys_change() -> None:
    works = FakeWorks({})
    keys = {"a": "U", "b": "U"}
    parts = RunParts(works.store, works.transport, keys, RIG)
    run = Run(
        run_id="0" * 32, plan=plan(), status="running", created_at=datetime.now(UTC), updated_at=datetime.now(UTC)
    )

    def radius(of: Run) -> dict[str, float]:
        return {site: spec.radius.value for site, spec in parts.question(of, "round", 1, {}, {}).specs.items()}

    told = run.plan.spec.radius.value
    assert radius(run) == {"a": told, "b": told}
    after = run.model_copy(update={"sites": (SiteTermsRecord(site_id="a", weight=1.0, radius=0.123, n_samples=9),)})
    assert radius(after) == radius(after) == {"a": 0.123, "b": told}
    keys["c"] = keys.pop("b")
    assert radius(after) == {"a": 0.123, "c": told}
    other = after.model_copy(update={"plan": plan(spec={"radius": {"rule": "fixed", "value": 0.5}})})
    assert radius(other) == {"a": 0.123, "c": 0.5}


@pytest.mark.parametrize("method", ["fdr-admm-reg", "standard", "drfa"])
def test_the_problem_stays_as_stated_whatever_the_method_leaves_out_of_it(method: str) -> None:
    wanted = plan(method=method, site_settings={"a": {"label_flip_cost": 0.5}})
    assert shared_spec(wanted, RIG).radius == site_spec(wanted, RIG, "a").radius == wanted.spec.radius
    assert (shared_spec(wanted, RIG).label_flip_cost, site_spec(wanted, RIG, "a").label_flip_cost) == (1.0, 0.5)


def test_weights_are_equal_by_samples_or_given() -> None:
    sites = {"a": joined(n_samples=10), "b": joined(n_samples=30)}

    def weights(**changes: Any) -> list[float]:
        return [terms.weight for terms in joined_terms(plan(**changes), RIG, sites)]

    assert weights() == [0.5, 0.5]
    assert weights(site_weights="samples") == [0.25, 0.75]
    given = {"a": {"weight": 0.6}, "b": {"weight": 0.1}, "c": {"weight": 0.3}}
    assert weights(site_settings=given, site_weights="samples") == pytest.approx([6 / 7, 1 / 7])


def test_weights_must_be_there_for_all_that_are_asked() -> None:
    given = plan(site_settings={"a": {"weight": 0.6}, "b": {"weight": 0.4}})
    check_asked(given, ["a", "b"])
    check_asked(given, ["a"])
    check_asked(plan(), ["a", "b"])
    with pytest.raises(InvalidInputError, match="plan nightly: give a weight for every site .* none for c"):
        check_asked(given, ["a", "b", "c"])


def test_the_note_names_weighted_sites_that_did_not_join() -> None:
    terms = joined_terms(plan(), RIG, {"a": joined()})
    fields = {"run_id": "0" * 32, "status": "running", "created_at": datetime.now(UTC), "updated_at": datetime.now(UTC)}
    weighted = plan(site_settings={"a": {"weight": 0.6}, "b": {"weight": 0.4}})
    assert weights_note(Run(plan=weighted, sites=tuple(terms), **fields)).endswith("without b")
    assert weights_note(Run(plan=plan(), sites=tuple(terms), **fields)) == ""


def test_the_confidence_of_the_mixture_is_the_product_and_nothing_where_a_site_claims_none() -> None:
    def run(*confidences: float) -> Run:
        sites = {f"s{k}": joined(confidence=value) for k, value in enumerate(confidences)}
        moment = datetime.now(UTC)
        return Run(
            run_id="0" * 32, plan=plan(), status="running", created_at=moment, updated_at=moment,
            sites=tuple(joined_terms(plan(), RIG, sites)),
        )

    assert run(0.9, 0.8).mixture_confidence == pytest.approx(0.72)
    assert run(0.9, 0.0).mixture_confidence is None


def test_who_is_excluded_leaves_its_weight_to_the_others() -> None:
    terms = joined_terms(plan(site_weights="samples"), RIG, {"a": joined(), "b": joined(n_samples=10), "c": joined()})
    moment = datetime.now(UTC)
    gone = ExcludedSite(site_id="c", round=4, code="implausible", reason="its risk is -1")
    run = Run(
        run_id="0" * 32, plan=plan(site_settings={name: {"weight": 1 / 3} for name in "abc"}), status="running",
        created_at=moment, updated_at=moment, sites=tuple(terms), excluded=(gone,),
    )
    assert [(site.site_id, site.weight) for site in run.members] == [("a", pytest.approx(0.75)), ("b", 0.25)]
    assert weights_note(run) == "weights scaled up to sum to 1 without c"
    assert exclusions_note(run) == "c left out in round 4: its risk is -1"


def test_who_is_in_a_cohort_with_whom_is_dealt_anew_with_each_run_and_the_same_after_a_resume() -> None:
    """With the same plants in every run, plants in league need wait for nobody else to be dealt to them."""
    terms = [SiteTermsRecord(site_id=f"plant-{k}", weight=1 / 12, radius=0.1, n_samples=9) for k in range(12)]
    moment = datetime.now(UTC)

    def dealt(run_id: str) -> dict[str, tuple[str, ...]]:
        return cohorts_of(Run(
            run_id=run_id, plan=plan(), status="running", created_at=moment, updated_at=moment, sites=tuple(terms),
        ))

    first, second = (dealt(digits * 16) for digits in ("a1", "b2"))
    assert first == dealt("a1" * 16) and set(map(frozenset, first.values())) != set(map(frozenset, second.values()))
    assert sorted(site for members in first.values() for site in members) == sorted(each.site_id for each in terms)
