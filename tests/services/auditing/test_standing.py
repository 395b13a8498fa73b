"""Whether a version may be promoted by what its run's auditor found."""

from __future__ import annotations

import pytest

from services.auditing.auditor import AuditCase, Finding, Kind
from services.auditing.standing import audit_gate, verdict_name
from services.auditing.verdict import judged
from services.contracts.keys.signing import signer
from services.contracts.plans.plan import Plan
from tests.attacks.cohort import Cohort


@pytest.mark.parametrize(("kind", "site", "holds"), [
    ("nobody", "", True), ("sum", "", False), ("silent", "plant-1", False), ("misfit", "plant-1", False),
    ("copied", "plant-1", False), ("unreadable", "plant-1", False), ("contradiction", "plant-1", False),
])
def test_the_gate_holds_where_the_auditor_found_nobody_and_no_other_sum(
    found: tuple[Cohort, AuditCase], kind: Kind, site: str, holds: bool
) -> None:
    """Nor where a sum is not what the plants sent: nobody is left out for it, and the bounds rest on it."""
    cohort, case = found
    plan = Plan.model_validate({
        "name": "nightly", "asset_type": "rig", "reveal": "sums", "method": "cohort-bundle", "auditor": cohort.auditor,
        "audit": "every round",
    })
    verdict, _ = judged(case, [Finding(site, kind, "what was found")], cohort.auditor, signer(cohort.files["auditor"]))
    kept = {"cohort-1": case.model_dump_json().encode(), verdict_name("cohort-1"): verdict.text()}
    gate = audit_gate(plan, lambda: ["cohort-1"], kept)
    assert gate is not None and gate.holds is holds
    assert gate.reason == ("" if holds else "cohort-1: what was found")
