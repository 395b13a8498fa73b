"""Whether the auditor has spoken on all that a run opened: the gate of a version whose plan has every round audited."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from services.auditing.auditor import CONVICTING
from services.auditing.verdict import Verdict, is_case, read_case, read_verdict
from services.contracts.errors import InvalidInputError
from services.contracts.plans.plan import Plan
from services.contracts.versions.report import GateResult
from services.verification.proof import NotProvenError

GATE = "audit"


def verdict_name(cohort: str) -> str:
    """Under which name the verdict on a cohort is kept beside its case."""
    return f"verdict-{cohort}"


def audit_gate(plan: Plan, cohorts: Callable[[], Collection[str]], kept: Mapping[str, bytes]) -> GateResult | None:
    """What the auditor found of the cohorts of a run; None where the plan has not every round audited.

    ``cohorts`` names them, which a run of single answers has none of. ``kept``: cases by cohort, verdicts by
    :func:`verdict_name`. It holds where each cohort has a verdict of its case that convicts nobody.
    """
    if plan.audit != "every round" or plan.auditor is None:
        return None
    names = sorted(cohorts())
    reasons = [reason for cohort in names if (reason := _due(plan.auditor, cohort, kept))]
    found = float(len(names) - len(reasons))
    return GateResult(name=GATE, wanted=float(len(names)), found=found, holds=not reasons, reason="; ".join(reasons))


def _due(auditor: str, cohort: str, kept: Mapping[str, bytes]) -> str:
    case, data = kept.get(cohort), kept.get(verdict_name(cohort))
    if case is None or not is_case(case):
        return f"{cohort} opened no rounds to the auditor"
    if data is None:
        return f"the auditor's verdict on {cohort} is due: `ballast evidence save` writes its case"
    try:
        opened = read_case(case)
        found = read_verdict(data, auditor, opened.cohort)
    except (NotProvenError, InvalidInputError) as error:
        return f"{cohort}: {error}"
    if found.rounds != tuple(each.asked.round for each in opened.request.rounds):
        return f"{cohort}: the verdict is not on all rounds that were opened"
    return _said(found, cohort)


def _said(verdict: Verdict, cohort: str) -> str:
    lied = [each for each in verdict.findings if each.kind in CONVICTING or each.kind == "sum"]
    return "; ".join(f"{cohort}: {each.text}" for each in lied)
