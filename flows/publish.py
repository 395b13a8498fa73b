"""From a trained model to a version in the registry, and on to champion where the gates hold."""

from __future__ import annotations

import logging
from functools import partial

from flows.certificates import carried
from flows.versions import model_version
from flows.wiring import FlowContext
from models.cuts.held_open import LEAST_SHARE
from services.auditing.standing import audit_gate
from services.contracts.errors import BallastError
from services.contracts.evaluation.calibration import Calibration
from services.contracts.history.records import VersionStatus
from services.contracts.history.run import Run
from services.contracts.keys.signed_documents import signed_digest
from services.contracts.plain_words import counted, joined, listed
from services.contracts.problems.tuning import settled
from services.contracts.problems.tuning_curve import candidate_words, cost_words
from services.contracts.versions.draft import VersionDraft
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.report import GateResult
from services.coordinator.run_state.evaluation import Evaluation
from services.coordinator.run_state.terms import cohorts_of, exclusions_note, weights_note
from services.coordinator.run_state.training_state import TrainedModel
from services.registry.gates import check_gates, failed_gates
from services.registry.labels import CHAMPION, PREVIOUS
from services.reporting.model_report import model_report
from services.reporting.report_page import report_attachments
from services.reporting.version_figures import version_figures
from services.verification.version import CERTIFICATE

LOG = logging.getLogger("ballast.flows")


def announce(context: FlowContext, run: Run) -> None:
    """Show in MLflow that a run has begun. A registry that is away now may be there when the model is."""
    try:
        context.registry.start_run(run, context.contract_of(run))
    except BallastError as error:
        LOG.warning("run %s is not in MLflow yet: %s", run.run_id, error)


def withdraw(context: FlowContext, run: Run, status: str) -> None:
    """Show in MLflow that a run ended without a version; where it is away, the flows' watch tells it later."""
    try:
        context.registry.end_run(run, status)
    except BallastError as error:
        LOG.warning("MLflow does not know that run %s has ended: %s", run.run_id, error)


def keep_draft(
    context: FlowContext, run: Run, trained: TrainedModel, evaluation: Evaluation,
    calibrated: Calibration | None = None,
) -> VersionDraft:
    """Make the version of a trained and evaluated run, sign it, and commit it before the registry is asked.

    From here to the run's end no plant is needed: every step goes by the draft and the store, and may be done again.
    """
    rounds = context.store.runs.get_rounds(run.run_id)
    version = model_version(run, context.contract_of(run), trained, evaluation, rounds)
    version = version.model_copy(update={"calibration": calibrated})
    version, certificate = carried(version, trained.proofs, context.settings.nats_seed)
    draft = VersionDraft(version, why_stopped(run, trained), certificate, evaluation.all_confusion)
    return context.store.runs.keep_draft(run.run_id, draft)


def register(context: FlowContext, run: Run, draft: VersionDraft) -> ModelVersion:
    """Put a run's version into the registry with its certificates, its rounds and its report, and record it.

    Done once more, by whatever process, it finds the version that the registry has of the run.
    """
    rounds, made = context.store.runs.get_rounds(run.run_id), draft.version
    report = model_report(made, run, rounds, gate_results(context, run, made))
    files = {} if draft.certificate is None else {CERTIFICATE: draft.certificate}
    attached = {**report_attachments(report), **version_figures(made, report, draft.counts), **files}
    version = context.registry.register(made, rounds, report, attached)
    mlflow_run_id = context.registry.mlflow_run_id(version.name, version.version)
    metrics = {**version.figures, "fresh_weight": version.fresh_weight}
    with context.store.atomic() as unit:
        unit.model_versions.add(version.name, version.version, run.run_id, metrics, signed_digest(made.to_document()))
        unit.runs.set_result(run.run_id, mlflow_run_id, version.version)
    return version


def gate_results(context: FlowContext, run: Run, version: ModelVersion) -> tuple[GateResult, ...]:
    """The plan's gates on a version's figures, and the audit of its run where the plan has every round audited."""
    results = check_gates(run.plan.gates, version)
    if run.plan.audit != "every round":
        return results
    found = audit_gate(run.plan, partial(cohorts_of, run), context.store.runs.get_cases(run.run_id))
    return results if found is None else (*results, found)


def promote_if_gates_hold(context: FlowContext, run: Run, version: ModelVersion) -> str:
    """Make the version champion if its plan says so and every gate holds; return what was done, on one line.

    What an earlier process of the run did stands: gates are judged once, and a version is made champion once, so that
    one that an operator took back meanwhile is not promoted again.
    """
    failed = _failed_gates(context, run, version)
    if failed:
        return f"version {version.version} stays challenger: {failed}"
    if not run.plan.auto_promote:
        return f"version {version.version} stays challenger: the plan leaves promotion to an operator"
    if context.store.model_versions.had_alias(version.name, CHAMPION, version.version):
        last = context.store.model_versions.alias(version.name, CHAMPION)
        is_still = last is not None and last.version == version.version
        return f"version {version.version} {'is champion' if is_still else 'was champion, and is no more'}"
    actor, reason = f"plan:{run.plan.name}", f"every gate of run {run.run_id} holds"
    with context.store.atomic() as unit:
        unit.model_versions.record_alias(version.name, CHAMPION, version.version, actor, reason)
        unit.audit.append(
            actor=actor, role=None, action="model.promote", target=f"model:{version.name}", reason=reason,
            after={"version": version.version},
        )
        gone = unit.model_versions.forgotten_numbers(version.name)
        context.registry.promote(version.name, version.version, actor=actor, reason=reason, without=gone)
        before = context.registry.aliases(version.name).get(PREVIOUS)
        unit.model_versions.follow_alias(version.name, PREVIOUS, before, actor, reason)
    return f"version {version.version} is champion"


def end_of_tuning(context: FlowContext, run: Run) -> dict[str, str]:
    """End a run that was asked for its tuning alone: the choice stands with it, and neither model nor registry knows.

    Its closing note names the choice, and for how many trainings it holds.
    """
    curve, spec = run.plan.tuned, settled(run.plan.tuning)
    assert curve is not None and spec is not None
    of = f"of {len(curve.candidates)} candidates (radius by factor, {cost_words(run.plan.spec.loss.name)}, lift)"
    said = f"chosen {of}: {candidate_words(curve.terms)}; {curve.why}"
    takers = "next training takes it" if spec.every == 1 else f"next {spec.every} trainings take it"
    context.store.runs.finish_run(run.run_id, "completed", f"tuned, nothing was trained; {said}; the plan's {takers}")
    return {"run_id": run.run_id, "outcome": said}


def _failed_gates(context: FlowContext, run: Run, version: ModelVersion) -> str:
    """Which gates do not hold, on one line, empty where all do: as they were judged, or else now."""
    versions = context.store.model_versions
    judged = versions.get(version.name, version.version)
    if judged.status == "registered":
        failed = failed_gates(gate_results(context, run, version))
        status: VersionStatus = "gates_failed" if failed else "gates_passed"
        judged = versions.set_status(version.name, version.version, status, failed)
    return judged.reason if judged.status == "gates_failed" else ""


def closing_note(run: Run, stopped: str, outcome: str) -> str:
    """What a run ends with, on one line: why training ``stopped``, who was left out, what came of it."""
    return joined(stopped, weights_note(run), exclusions_note(run), outcome)


def why_stopped(run: Run, trained: TrainedModel) -> str:
    """Why training ended and what the method says of its result, on one line."""
    return joined(trained.status.value, _held_open(run, trained), trained.note, _warm_note(run, trained))


def _held_open(run: Run, trained: TrainedModel) -> str:
    """One line of the sites, or cohorts with their sites, that keep the gap open, each by itself or all together."""
    members = cohorts_of(run) if run.plan.reveal == "sums" else {}
    names = {site: f"{site} ({', '.join(members[site])})" if site in members else site for site in trained.held_open}
    apart = trained.certificate.upper - trained.certificate.lower
    if len(names) > 1 and max(trained.held_open.values()) < LEAST_SHARE * apart:
        return (
            f"{listed(list(names.values()))} keep the gap open together: of {apart:.3g} between the bounds their own "
            f"cuts leave {sum(trained.held_open.values()):.3g}, as where guards hide single rows of few, and no "
            "further round closes that"
        )
    return "; ".join(
        f"{names[site]} keeps the gap open: of {apart:.3g} between the bounds its own cuts leave {left:.3g}, so far "
        "below its own risk they lie at the model, and no further round closes that; it need not be a lie"
        for site, left in trained.held_open.items()
    )


def _warm_note(run: Run, trained: TrainedModel) -> str:
    """One line where cuts of an earlier run count; else empty."""
    if not trained.reused or run.start is None:
        return ""
    what = "unchanged cohort" if run.plan.reveal == "sums" else "unchanged site"
    return f"with the cuts of {counted(len(trained.reused), what)} from run {run.start.after}"
