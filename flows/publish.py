"""From a trained model to a version in the registry, and on to champion where the gates hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from flows.wiring import FlowContext
from models.basics import FloatArray
from models.evaluation.scores import f1_score
from models.methods.catalogue import get_method
from services.contracts.asset_type import AssetType
from services.contracts.model_version import Confusion, ConvexPart, ModelVersion, SiteScore
from services.contracts.plan_problem import mixture_of
from services.contracts.report import ModelReport
from services.contracts.run import Run
from services.contracts.scores import COVERAGE_CONFIDENCE, SCORE_NAMES, ErrorInterval, RegressionScores, added
from services.coordinator.evaluation import Evaluation
from services.coordinator.terms import exclusions_note, shared_spec, weights_note
from services.coordinator.training_state import TrainedModel
from services.registry.gates import check_gates, failed_gates
from services.registry.labels import CHAMPION, PREVIOUS
from services.reporting.model_report import model_report
from services.reporting.report_page import report_attachments


def register(context: FlowContext, run: Run, trained: TrainedModel, evaluation: Evaluation) -> ModelVersion:
    """Put the model into the registry with its certificates, its rounds and its report."""
    rounds = context.store.runs.get_rounds(run.run_id)
    draft = _version(context, run, trained, evaluation)
    report = _report(context, draft, run)
    version = context.registry.register(draft, rounds, report, report_attachments(report))
    mlflow_run_id = context.registry.mlflow_run_id(version.name, version.version)
    context.store.model_versions.add(version.name, version.version, run.run_id, metrics(version))
    context.store.runs.set_result(run.run_id, mlflow_run_id, version.version)
    return version


def _report(context: FlowContext, version: ModelVersion, run: Run) -> ModelReport:
    gates = check_gates(run.plan.gates, version)
    return model_report(version, run, context.store.runs.get_rounds(run.run_id), gates)


def promote_if_gates_hold(context: FlowContext, run: Run, version: ModelVersion) -> str:
    """Make the version champion if its plan says so and every gate holds; return what was done, on one line."""
    results = check_gates(run.plan.gates, version)
    failed = failed_gates(results)
    context.store.model_versions.set_status(
        version.name, version.version, "gates_failed" if failed else "gates_passed", failed
    )
    if failed:
        return f"version {version.version} stays challenger: {failed}"
    if not run.plan.auto_promote:
        return f"version {version.version} stays challenger: the plan leaves promotion to an operator"
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


def closing_note(run: Run, trained: TrainedModel, outcome: str) -> str:
    """What a run ends with, on one line: why it stopped, what the method says, who was left out, what came of it."""
    said = (trained.status.value, trained.note, weights_note(run), exclusions_note(run), outcome)
    return "; ".join(part for part in said if part)


def _version(context: FlowContext, run: Run, trained: TrainedModel, evaluation: Evaluation) -> ModelVersion:
    plan, asset_type = run.plan, context.asset_type(run.plan.asset_type)
    last = context.store.runs.get_rounds(run.run_id, after=trained.rounds - 1)
    fresh = {answer.site_id for record in last for answer in record.answers if answer.status == "accepted"}
    method = get_method(plan.method)
    # What the rounds say of the sites is of what the method minimised; a robust one saw the risks themselves.
    shares = evaluation.worst_weights or (trained.worst_weights if method.is_robust else {})
    risks = {**(trained.site_risks if method.is_robust else {}), **evaluation.risk}
    scores = tuple(
        SiteScore(
            site_id=site.site_id, weight=site.weight, worst_weight=_known(shares.get(site.site_id)),
            radius=site.radius, label_flip_cost=site.label_flip_cost,
            radius_is_estimate=site.radius_is_estimate, confidence=site.confidence,
            f1=_f1(evaluation, [site.site_id]), confusion=_counts(evaluation.confusion.get(site.site_id)),
            loss=evaluation.loss.get(site.site_id),
            worst_case_risk=_known(risks.get(site.site_id)), fresh=site.site_id in fresh,
            **_target_scores(asset_type, evaluation, [site.site_id]),
        )
        for site in run.members
    )
    answered = [site.site_id for site in run.members]
    version = ModelVersion(
        name=plan.name, run_id=run.run_id, plan=plan.name, method=plan.method,
        asset_type=asset_type, spec=shared_spec(plan, asset_type), mixture=mixture_of(plan),
        weights=trained.weights, rounds=trained.rounds,
        certified_gap=trained.gap, absolute_gap=trained.absolute_gap, objective=trained.upper,
        objective_name=method.objective, lower_bound=trained.lower,
        worst_case_risk=evaluation.worst_case_risk if math.isfinite(evaluation.worst_case_risk) else None,
        fresh_weight=trained.fresh_weight, f1=_f1(evaluation, answered), sites=scores,
        mixture_confidence=run.mixture_confidence,
        radii_are_estimates=any(site.radius_is_estimate for site in run.members), excluded=run.excluded,
        solvers=method.solver_names(loss=plan.spec.loss.loss, support=plan.spec.support_kind),
        convex_part=_convex_part(trained), note=trained.note,
        created_at=datetime.now(UTC), **_target_scores(asset_type, evaluation, answered),
    )
    if version.task == "classification" or asset_type.target is None:
        return version
    if version.worst_case_risk is None:
        return version.model_copy(update={"coverage": None})
    around = ErrorInterval.implied(plan.spec.loss.loss, asset_type.target, version.worst_case_risk, COVERAGE_CONFIDENCE)
    return version.model_copy(update={"error_interval": around})


def _convex_part(trained: TrainedModel) -> ConvexPart | None:
    part = trained.convex_part
    return None if part is None else ConvexPart(upper=part.upper, lower=part.lower, gap=part.gap)


def _f1(evaluation: Evaluation, sites: Sequence[str]) -> float | None:
    """F-1 over the held-out parts of these sites together; None where none of them sent counts."""
    counts = [evaluation.confusion[site] for site in sites if site in evaluation.confusion]
    return _known(f1_score(sum(counts[1:], start=counts[0]))) if counts else None


def _counts(confusion: FloatArray | None) -> Confusion | None:
    """Counts as whole numbers; None where no row was counted."""
    if confusion is None or not confusion.any():
        return None
    return tuple(tuple(int(count) for count in row) for row in confusion)


def _target_scores(asset_type: AssetType, evaluation: Evaluation, sites: Sequence[str]) -> dict[str, Any]:
    """Scores of a regression over the held-out parts of these sites together; empty where none of them sent sums."""
    sums = [evaluation.sums[site] for site in sites if site in evaluation.sums]
    if not sums or asset_type.target is None:
        return {}
    return RegressionScores.from_sums(added(sums), asset_type.target).model_dump()


def metrics(version: ModelVersion) -> dict[str, float | None]:
    """Return the figures of a version that the store keeps beside its number."""
    return {
        "certified_gap": version.certified_gap, "worst_case_risk": version.worst_case_risk,
        "objective": version.objective, "lower_bound": version.lower_bound, "fresh_weight": version.fresh_weight,
        "f1": version.f1, "rounds": float(version.rounds), **{name: getattr(version, name) for name in SCORE_NAMES},
    }


def _known(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else value
