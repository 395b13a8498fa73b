"""The model version that a trained run makes: its certificate, and what each site found on its held-out part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from models.basics import FloatArray
from models.evaluation.scores import f1_score
from models.methods.catalogue import get_method
from services.contracts.asset_type import AssetType
from services.contracts.model_version import Confusion, ConvexPart, ModelVersion, SiteScore
from services.contracts.run import RoundRecord, Run
from services.contracts.scores import COVERAGE_CONFIDENCE, ErrorInterval, RegressionScores, added
from services.coordinator.evaluation import Evaluation
from services.coordinator.terms import shared_spec
from services.coordinator.training_state import TrainedModel


def model_version(
    run: Run, asset_type: AssetType, trained: TrainedModel, evaluation: Evaluation, rounds: Sequence[RoundRecord]
) -> ModelVersion:
    """The version, before the registry gives it a number; ``rounds`` are those of the run, in order."""
    plan, certificate, method = run.plan, trained.certificate, get_method(run.plan.method)
    members = [site.site_id for site in run.members]
    scores = held_out_scores(asset_type, evaluation, members)
    version = ModelVersion(
        name=plan.name, run_id=run.run_id, plan=plan.name, method=plan.method, asset_type=asset_type,
        spec=shared_spec(plan, asset_type), mixture=plan.mixture, weights=trained.weights, rounds=trained.rounds,
        certified_gap=certificate.gap, absolute_gap=trained.absolute_gap, objective=certificate.upper,
        objective_name=method.objective, lower_bound=certificate.lower, fresh_weight=certificate.fresh_weight,
        worst_case_risk=evaluation.worst_case_risk if math.isfinite(evaluation.worst_case_risk) else None,
        f1=pooled_f1(evaluation, members), sites=site_scores(run, asset_type, trained, evaluation, rounds),
        mixture_confidence=run.mixture_confidence,
        radii_are_estimates=any(site.radius_is_estimate for site in run.members), excluded=run.excluded,
        solvers=method.solver_names(loss=plan.spec.loss.loss, support=plan.spec.support_kind),
        convex_part=None if trained.convex_part is None else ConvexPart.of_record(trained.convex_part),
        note=trained.note, created_at=datetime.now(UTC), **dict(scores),
    )
    if version.task == "classification" or asset_type.target is None:
        return version
    if version.worst_case_risk is None:
        return version.model_copy(update={"coverage": None})
    around = ErrorInterval.implied(plan.spec.loss.loss, asset_type.target, version.worst_case_risk, COVERAGE_CONFIDENCE)
    return version.model_copy(update={"error_interval": around})


def site_scores(
    run: Run, asset_type: AssetType, trained: TrainedModel, evaluation: Evaluation, rounds: Sequence[RoundRecord]
) -> tuple[SiteScore, ...]:
    """Record of each site that the model is made of: its ball, its scores, and whether it answered the last round."""
    fresh = {answer.site_id for answer in rounds[-1].answers if answer.status == "accepted"} if rounds else set()
    # What the rounds say of the sites is of what the method minimised; a robust one saw the risks themselves.
    is_robust = get_method(run.plan.method).is_robust
    shares = evaluation.worst_weights or (trained.worst_weights if is_robust else {})
    risks = {**(trained.site_risks if is_robust else {}), **evaluation.risk}
    return tuple(
        SiteScore(
            **site.model_dump(exclude={"n_samples"}), worst_weight=_known(shares.get(site.site_id)),
            f1=pooled_f1(evaluation, [site.site_id]), confusion=_counts(evaluation.confusion.get(site.site_id)),
            loss=evaluation.loss.get(site.site_id), worst_case_risk=_known(risks.get(site.site_id)),
            fresh=site.site_id in fresh, **dict(held_out_scores(asset_type, evaluation, [site.site_id])),
        )
        for site in run.members
    )


def pooled_f1(evaluation: Evaluation, sites: Sequence[str]) -> float | None:
    """F-1 over the held-out parts of these sites together; None where none of them sent counts."""
    counts = [evaluation.confusion[site] for site in sites if site in evaluation.confusion]
    return _known(f1_score(sum(counts[1:], start=counts[0]))) if counts else None


def held_out_scores(asset_type: AssetType, evaluation: Evaluation, sites: Sequence[str]) -> RegressionScores:
    """Scores of a regression over the held-out parts of these sites together; none where none of them sent sums."""
    sums = [evaluation.sums[site] for site in sites if site in evaluation.sums]
    if not sums or asset_type.target is None:
        return RegressionScores()
    return RegressionScores.from_sums(added(sums), asset_type.target)


def _counts(confusion: FloatArray | None) -> Confusion | None:
    """Counts as whole numbers; None where no row was counted."""
    if confusion is None or not confusion.any():
        return None
    return tuple(tuple(int(count) for count in row) for row in confusion)


def _known(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else value
