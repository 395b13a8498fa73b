"""What a plan means for each site, and what a site may say of itself when it joins."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from models.lift import fourier_lift
from services.contracts.asset_type import AssetType, FaultClass, Feature
from services.contracts.errors import BallastError, InvalidInputError
from services.contracts.lift import lift_check
from services.contracts.plan import Plan
from services.contracts.run import Run, SiteTermsRecord
from services.coordinator.terms import check_asked, joined_terms, shared_spec, site_spec, site_specs, weights_note

RIG = AssetType(
    name="rig", features=tuple(Feature(name=name, unit="1", low=0, high=1) for name in ("p", "q")),
    fault_classes=(FaultClass(name="ok", severity=0), FaultClass(name="leak", severity=1)),
)
LIFT = {"components": 3, "bandwidth": 1.0, "seed": 4}
CHECK = lift_check(fourier_lift(2, 3, bandwidth=1.0, seed=4))


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


def test_a_method_that_trusts_labels_does_so_at_every_site() -> None:
    wanted = plan(method="fdr-admm-reg", site_settings={"a": {"label_flip_cost": 0.5}})
    assert shared_spec(wanted, RIG).label_flip_cost == site_spec(wanted, RIG, "a").label_flip_cost == math.inf


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


@pytest.mark.parametrize("other", [CHECK + 1, 0.0])
def test_lifts_that_differ_are_never_aggregated(other: float) -> None:
    wanted = plan(spec={"lift": LIFT})
    alike = joined_terms(wanted, RIG, {"a": joined(lift_check=CHECK), "b": joined(lift_check=CHECK)})
    assert [terms.site_id for terms in alike] == ["a", "b"]
    with pytest.raises(BallastError, match="sites a and b lift their features differently") as refusal:
        joined_terms(wanted, RIG, {"a": joined(lift_check=CHECK), "b": joined(lift_check=other)})
    assert refusal.value.code == "lifts_differ"
    with pytest.raises(BallastError, match="otherwise than the plan says"):
        joined_terms(wanted, RIG, {"a": joined(lift_check=other), "b": joined(lift_check=other)})


@pytest.mark.parametrize(
    "change", [{"n_samples": 0}, {"n_samples": 2.5}, {"radius": -1e-9}, {"confidence": 1.0}, {"radius_is_estimate": 2}]
)
def test_scalars_that_cannot_be_end_the_join_with_one_line(change: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError, match=f"site b joined with a {next(iter(change))} that cannot be") as refusal:
        joined_terms(plan(), RIG, {"a": joined(), "b": joined(**change)})
    assert refusal.value.code == "bad_join"
