"""What nobody said of a version, a plan or an event is not taken for good news."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from services.contracts.history.events import DRIFTED, KINDS, Event, Webhook
from services.contracts.history.records import PlanRecord, VersionRecord
from services.contracts.plans.plan import Plan
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.report import GateResult, ModelReport, SiteReport
from services.contracts.versions.version_facts import PlantFreshness, SiteScore, VersionCertificate
from tests.services.contracts.versions.test_model_version import version

NOW = datetime(2031, 1, 2, tzinfo=UTC)
CERTIFICATE: dict[str, Any] = {
    "worst_case_risk": 1.0, "objective": 0.8, "objective_name": "it", "lower_bound": 0.4, "fresh_weight": 1.0,
    "rounds": 4, "spec": TrainingSpec(),
}


@pytest.mark.parametrize(("spec", "certified"), [
    (TrainingSpec(), True), (TrainingSpec(loss={"name": "cross_entropy"}), True),
    (TrainingSpec(loss={"name": "cross_entropy"}, network={}), False),
])
def test_a_network_is_certified_by_no_method(spec: TrainingSpec, certified: bool) -> None:
    assert version().model_copy(update={"spec": spec}).is_certified is certified


@pytest.mark.parametrize(("kind", "name"), [
    (GateResult, "holds"), (GateResult, "found"), (ModelReport, "promotable"), (ModelReport, "certificate"),
    (VersionCertificate, "lower_bound"), (VersionCertificate, "worst_case_risk"), (VersionCertificate, "fresh_weight"),
    (PlantFreshness, "at_model"), (SiteScore, "weight"), (SiteReport, "radius"),
])
def test_what_a_version_is_judged_by_must_be_said(kind: Any, name: str) -> None:
    assert kind.model_fields[name].is_required()


def test_a_certificate_claims_nothing_that_was_not_said() -> None:
    found = VersionCertificate.model_validate(CERTIFICATE)
    assert (found.reveal, found.cohorts, found.mixture.radius, found.solvers) == ("each site", (), 0.0, ())
    assert (found.mixture_confidence, found.noise, found.reused, found.freshness, found.convex_part) == (None,) * 5
    assert (found.coupling, found.tuning, found.note, found.radii_are_estimates) == (None, None, "", False)
    with pytest.raises(ValidationError, match="reveal"):
        VersionCertificate.model_validate(CERTIFICATE | {"reveal": "nothing"})


def test_a_version_is_registered_before_its_gates_are_judged_and_a_plan_runs_unless_it_is_paused() -> None:
    record = VersionRecord(name="pumps", version="3", run_id="a" * 32, created_at=NOW)
    assert (record.status, record.reason, record.metrics) == ("registered", "", {})
    plan = PlanRecord(plan=Plan(name="weekly", asset_type="rig"), created_at=NOW, updated_at=NOW)
    assert (plan.paused, plan.archived, plan.version, plan.notices) == (False, False, 1, ())


def test_an_event_has_a_number_and_one_of_the_kinds_and_a_webhook_an_id() -> None:
    assert len(set(KINDS)) == len(KINDS) == 13
    assert Event(number=1, at=NOW, kind="site.drifted", drift=DRIFTED).drift == 0.2
    hook = {"url": "https://x", "created_by": "me", "created_at": NOW, "due_at": NOW, "last_number": 0}
    made = Webhook.model_validate(hook | {"webhook_id": "0" * 12})
    assert (made.kinds, made.failures, made.disabled_at, made.delivered_at) == ((), 0, None, None)
    for kind, wrong in (
        (Event, {"number": 0, "at": NOW, "kind": "run.begun"}), (Event, {"number": 1, "at": NOW, "kind": "run.ended"}),
        (Event, {"number": 1, "at": NOW.replace(tzinfo=None), "kind": "run.begun"}),
        (Webhook, hook | {"webhook_id": "0" * 11}), (Webhook, hook | {"webhook_id": "../" + "0" * 9}),
    ):
        with pytest.raises(ValidationError):
            kind.model_validate(wrong)
