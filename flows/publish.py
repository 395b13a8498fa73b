"""From a trained model to a version in the registry, and on to champion where the gates hold."""

from __future__ import annotations

import logging
from functools import partial

from flows.certificates import carried
from flows.versions import model_version
from flows.wiring import FlowContext
from services.auditing.standing import audit_gate
from services.contracts.calibration import Calibration
from services.contracts.errors import BallastError, NotFoundError
from services.contracts.model_version import ModelVersion
from services.contracts.records import VersionStatus
from services.contracts.report import GateResult
from services.contracts.run import Run
from services.contracts.tuning import candidate_words, settled
from services.coordinator.evaluation import Evaluation
from services.coordinator.terms import cohorts_of, exclusions_note, weights_note
from services.coordinator.training_state import TrainedModel
from services.registry.gates import check_gates, failed_gates
from services.registry.labels import CHAMPION, PREVIOUS
from services.reporting.model_report import model_report
from services.reporting.report_page import report_attachments
from services.reporting.version_figures import version_figures

LOG = logging.getLogger("ballast.flows")


def announce(context: FlowContext, run: Run) -> None:
    """Show in MLflow that a run has begun. A registry that is away now may be there when the model is."""
    try:
        context.registry.start_run(run, context.asset_type(run.plan.asset_type))
    except BallastError as error:
        LOG.warning("run %s is not in MLflow yet: %s", run.run_id, error)


def withdraw(context: FlowContext, run: Run, *, cancelled: bool) -> None:
    """Show in MLflow that a run ended without a version."""
    try:
        context.registry.end_run(run, cancelled=cancelled)
    except BallastError as error:
        LOG.warning("MLflow does not know that run %s has ended: %s", run.run_id, error)


def register(
    context: FlowContext, run: Run, trained: TrainedModel, evaluation: Evaluation,
    calibrated: Calibration | None = None,
) -> ModelVersion:
    """Put the model into the registry with its certificates, its rounds and its report."""
    rounds = context.store.runs.get_rounds(run.run_id)
    draft = model_version(run, context.asset_type(run.plan.asset_type), trained, evaluation, rounds)
    draft = draft.model_copy(update={"calibration": calibrated})
    draft, files = carried(draft, trained.proofs, context.settings.nats_seed)
    report = model_report(draft, run, rounds, gate_results(context, run, draft))
    attached = {**report_attachments(report), **version_figures(draft, report, evaluation.all_confusion), **files}
    version = context.registry.register(draft, rounds, report, attached)
    mlflow_run_id = context.registry.mlflow_run_id(version.name, version.version)
    metrics = {**version.figures, "fresh_weight": version.fresh_weight}
    context.store.model_versions.add(version.name, version.version, run.run_id, metrics)
    context.store.runs.set_result(run.run_id, mlflow_run_id, version.version)
    return version


def recorded(context: FlowContext, run: Run) -> ModelVersion | None:
    """The version that an earlier process of the run recorded; None: none was, or the registry has it no more."""
    if run.model_version is None:
        return None
    try:
        return context.registry.get(run.plan.name, run.model_version)
    except NotFoundError as error:
        LOG.warning("run %s makes its version anew: %s", run.run_id, error)
        return None


def left_by_rounds(context: FlowContext, run: Run, version: ModelVersion) -> TrainedModel | None:
    """What the run's rounds left, from the store alone; None where that cannot be read any more."""
    try:
        return context.trained(run, version.asset_type)
    except BallastError as error:
        LOG.warning("run %s ends without what its rounds left: %s", run.run_id, error)
        return None


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
            actor=actor, role=None, action="model.promote", target=version.name, reason=reason,
            after={"version": version.version},
        )
        context.registry.promote(version.name, version.version, actor=actor, reason=reason)
        before = context.registry.aliases(version.name).get(PREVIOUS)
        unit.model_versions.follow_alias(version.name, PREVIOUS, before, actor, reason)
    return f"version {version.version} is champion"


def end_of_tuning(context: FlowContext, run: Run) -> dict[str, str]:
    """End a run that was asked for its tuning alone: the choice stands with it, and neither model nor registry knows.

    Its closing note names the choice, and for how many trainings it holds.
    """
    curve, spec = run.plan.tuned, settled(run.plan.tuning)
    assert curve is not None and spec is not None
    of = f"of {len(curve.candidates)} candidates (radius by factor, cost of a flip, lift)"
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


def closing_note(run: Run, trained: TrainedModel | None, outcome: str) -> str:
    """What a run ends with, on one line: why it stopped, what the method says, who was left out, what came of it.

    ``trained`` None: the version was registered by an earlier process, and nobody knows any more why rounds ended.
    """
    stopped = ("its version was registered before its process ended",) if trained is None else (
        trained.status.value, trained.note, _warm_note(run, trained)
    )
    said = (*stopped, weights_note(run), exclusions_note(run), outcome)
    return "; ".join(part for part in said if part)


def _warm_note(run: Run, trained: TrainedModel) -> str:
    """One line where cuts of an earlier run count; else empty."""
    if not trained.reused or run.start is None:
        return ""
    what = "cohorts" if run.plan.reveal == "sums" else "sites"
    return f"with the cuts of {len(trained.reused)} unchanged {what} from run {run.start.after}"
