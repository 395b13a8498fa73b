"""What follows from an auditor's verdict: the plants that it convicts are suspended, and the trail says why.

It is kept beside its case: where the plan has every round audited, the run's version waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from api.backend.actor import Actor
from api.backend.wiring import Backend
from api.sites.service import suspend
from services.auditing.standing import audit_gate, verdict_name
from services.auditing.verdict import Verdict, is_case, read_case, read_verdict, run_of_verdict
from services.contracts.errors import ConflictError, InvalidInputError, NotFoundError
from services.contracts.history.run import Run
from services.coordinator.run_state.terms import cohorts_of
from services.verification.proof import NotProvenError


def file_verdict(backend: Backend, actor: Actor, data: bytes) -> list[str]:
    """Suspend the plants that a verdict convicts; a line for each, or one that there is none.

    A key that was changed since the run does not save a plant: its id stands in the enrolment that the run used.

    Raises
    ------
    InvalidInputError
        The file holds no verdict, or its run's plan names no auditor.
    NotFoundError
        There is no such run.
    NotProvenError
        The verdict is not the auditor's that the run's plan names, or of no opened cohort that the run keeps.
    """
    run_id = run_of_verdict(data)
    run, kept = backend.store.runs.get_run(run_id), backend.store.runs.get_cases(run_id)
    auditor = run.plan.auditor
    if auditor is None:
        raise InvalidInputError(f"the plan of run {run_id} names no auditor: nobody may judge its plants")
    refused = NotProvenError(
        f"run {run_id} keeps no cohort that was opened to the auditor: none was, or a plant of it was unlearned since, "
        "and its case deleted; the auditor's file on a plant proves the lie by itself (`ballast evidence verify`)"
    )
    for cohort, case in ((name, read_case(each)) for name, each in kept.items() if is_case(each)):
        try:
            verdict = read_verdict(data, auditor, case.cohort)
        except NotProvenError as error:
            refused = error
            continue
        if kept.get(verdict_name(cohort)) != data:  # filed once more it tells nothing new
            with backend.store.atomic() as unit:
                unit.runs.keep_case(run_id, verdict_name(cohort), data)
                unit.events.convicted(run.plan.name, run_id, verdict.convicted)
                unit.runs.add_verdict(run_id, _found(cohort, verdict))
        return [
            _suspended(backend, actor, run_id, site, text) for site, text in verdict.convicted.items()
        ] + _version_lines(run, backend.store.runs.get_cases(run_id)) or [
            "the verdict convicts no plant: a new run goes on with all of them"
        ]
    raise refused


def _found(cohort: str, verdict: Verdict) -> str:
    """What the run's page, and all that tells its reason, says of the verdict from then on."""
    told = [each.text if each.text.startswith(each.site) else f"{each.site}: {each.text}" for each in verdict.findings]
    return f"the auditor of {cohort} finds: {'; '.join(told) or 'no plant lied'}"


def _suspended(backend: Backend, actor: Actor, run_id: str, site: str, text: str) -> str:
    """Suspend a plant; one that has left meanwhile keeps nobody else from it."""
    try:
        suspend(backend, actor, site, f"the auditor's verdict on run {run_id}: {text}")
    except (ConflictError, NotFoundError):
        return f"site {site} is enrolled no more: {text}"
    return f"site {site} is suspended, until `ballast site activate {site}`: {text}"


def _version_lines(run: Run, kept: Mapping[str, bytes]) -> list[str]:
    """What becomes of the version of a run of which every round is audited."""
    found = audit_gate(run.plan, partial(cohorts_of, run), kept)
    if found is None or run.model_version is None:
        return []
    name = f"version {run.model_version} of model {run.plan.name}"
    if not found.holds:
        return [f"{name} stays challenger: {found.reason}"]
    return [f"the audit of {name} is done: `ballast model promote {run.plan.name} {run.model_version}` may follow"]
