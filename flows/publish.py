"""From a trained model to a version in the registry, and on to champion where the gates hold."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from flows.wiring import Workshop
from models.methods.catalogue import get_method
from models.scores import f1_score
from services.contracts.model_version import ModelVersion, SiteScore
from services.contracts.report import ModelReport
from services.contracts.run import Run
from services.coordinator.terms import shared_spec
from services.coordinator.training import Evaluation, TrainedModel, full_weights
from services.registry.gates import check_gates, failed_gates
from services.reporting.model_report import model_report
from services.reporting.report_page import report_attachments


def register(shop: Workshop, run: Run, trained: TrainedModel, evaluation: Evaluation) -> ModelVersion:
    """Put the model into the registry with its certificates, its rounds and its report."""
    rounds = shop.store.runs.get_rounds(run.run_id)
    draft = _version(shop, run, trained, evaluation)
    report = _report(shop, draft, run)
    version = shop.registry.register(draft, rounds, report, report_attachments(report))
    mlflow_run_id = shop.registry.mlflow_run_id(version.name, version.version)
    shop.store.model_versions.add(version.name, version.version, run.run_id, metrics(version))
    shop.store.runs.set_result(run.run_id, mlflow_run_id, version.version)
    return version


def _report(shop: Workshop, version: ModelVersion, run: Run) -> ModelReport:
    gates = check_gates(run.plan.gates, version)
    return model_report(version, run, shop.store.runs.get_rounds(run.run_id), gates)


def promote_if_gates_hold(shop: Workshop, run: Run, version: ModelVersion) -> str:
    """Make the version champion if its plan says so and every gate holds; return what was done, on one line."""
    results = check_gates(run.plan.gates, version)
    failed = failed_gates(results)
    shop.store.model_versions.set_status(
        version.name, version.version, "gates_failed" if failed else "gates_passed", failed
    )
    if failed:
        return f"version {version.version} stays challenger: {failed}"
    if not run.plan.auto_promote:
        return f"version {version.version} stays challenger: the plan leaves promotion to an operator"
    actor, reason = f"plan:{run.plan.name}", f"every gate of run {run.run_id} holds"
    with shop.store.atomic() as unit:
        unit.model_versions.record_alias(version.name, "champion", version.version, actor, reason)
        unit.audit.append(
            actor=actor, role=None, action="model.promote", target=version.name, reason=reason,
            after={"version": version.version},
        )
        shop.registry.promote(version.name, version.version, actor=actor, reason=reason)
    return f"version {version.version} is champion"


def _version(shop: Workshop, run: Run, trained: TrainedModel, evaluation: Evaluation) -> ModelVersion:
    plan, asset_type = run.plan, shop.asset_type(run.plan.asset_type)
    last = shop.store.runs.get_rounds(run.run_id, after=trained.rounds - 1)
    fresh = {answer.site_id for record in last for answer in record.answers if answer.status == "accepted"}
    scores = tuple(
        SiteScore(
            site_id=site.site_id, weight=site.weight, radius=site.radius, label_flip_cost=site.label_flip_cost,
            radius_is_estimate=site.radius_is_estimate, confidence=site.confidence,
            f1=f1_score(evaluation.confusion[site.site_id]) if site.site_id in evaluation.confusion else None,
            worst_case_risk=_known(trained.site_risks.get(site.site_id)), fresh=site.site_id in fresh,
        )
        for site in run.sites
    )
    pooled = sum(evaluation.confusion.values(), start=np.zeros((1, 1))) if evaluation.confusion else None
    return ModelVersion(
        name=plan.name, run_id=run.run_id, plan=plan.name, method=plan.method,
        asset_type=asset_type, spec=shared_spec(plan, asset_type),
        weights=full_weights(trained.weights, fit_intercept=plan.spec.fit_intercept), rounds=trained.rounds,
        certified_gap=trained.gap, worst_case_risk=trained.upper, lower_bound=trained.lower,
        fresh_weight=trained.fresh_weight, f1=None if pooled is None else f1_score(pooled), sites=scores,
        mixture_confidence=run.mixture_confidence,
        radii_are_estimates=any(site.radius_is_estimate for site in run.sites),
        solvers=get_method(plan.method).solver_names(boxed=plan.spec.support == "sensor_ranges"),
        created_at=datetime.now(UTC),
    )


def metrics(version: ModelVersion) -> dict[str, float | None]:
    """Return the figures of a version that the store keeps beside its number."""
    return {
        "certified_gap": version.certified_gap, "worst_case_risk": version.worst_case_risk,
        "lower_bound": version.lower_bound, "fresh_weight": version.fresh_weight, "f1": version.f1,
        "rounds": float(version.rounds),
    }


def _known(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else value
