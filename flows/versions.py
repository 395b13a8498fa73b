"""The model version that a trained run makes: its certificate, and what each site found on its held-out part."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from models.basics import FloatArray
from models.evaluation.scores import f1_score
from models.methods.catalogue import get_method
from services.contracts.evaluation.scores import COVERAGE_CONFIDENCE, ErrorInterval, RegressionScores
from services.contracts.history.run import RoundRecord, Run, SiteBall, SummedSites
from services.contracts.machines.asset_type import AssetType
from services.contracts.plain_words import joined
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.version_facts import Confusion, ConvexPart, PlantFreshness, ReusedCuts, SiteScore
from services.coordinator.run_state.evaluation import Evaluation
from services.coordinator.run_state.noisy_sums import promise
from services.coordinator.run_state.terms import cohorts_of, mixture_of, shared_spec
from services.coordinator.run_state.training_state import TrainedModel


def model_version(
    run: Run, asset_type: AssetType, trained: TrainedModel, evaluation: Evaluation, rounds: Sequence[RoundRecord]
) -> ModelVersion:
    """The version, before the registry gives it a number; ``rounds`` are those of the run, in order."""
    plan, certificate, method = run.plan, trained.certificate, get_method(run.plan.method)
    scores = scores_of(evaluation.all_sums, asset_type)
    # A loss of all scores has no ball: what the sites told of it is their mean loss, and no worst case is known.
    evaluation = evaluation if plan.spec.loss.has_ball else without_risks(evaluation)
    version = ModelVersion(
        name=plan.name, run_id=run.run_id, plan=plan.name, method=plan.method, asset_type=asset_type,
        spec=shared_spec(plan, asset_type), mixture=mixture_of(plan), weights=trained.weights, rounds=trained.rounds,
        certified_gap=certificate.gap, absolute_gap=trained.absolute_gap, objective=certificate.upper,
        objective_name=method.objective, lower_bound=certificate.lower, fresh_weight=certificate.fresh_weight,
        worst_case_risk=evaluation.worst_case_risk if math.isfinite(evaluation.worst_case_risk) else None,
        f1=f1_of(evaluation.all_confusion), confusion=_counts(evaluation.all_confusion),
        sites=site_scores(run, asset_type, trained, evaluation, rounds),
        mixture_confidence=run.mixture_confidence,
        radii_are_estimates=any(site.radius_is_estimate for site in run.members), excluded=run.excluded,
        solvers=method.solver_names(loss=plan.spec.loss.loss, support=plan.spec.support_kind),
        convex_part=None if trained.convex_part is None else ConvexPart.of_record(trained.convex_part),
        reveal=plan.reveal, cohorts=summed_sites(run), noise=promise(run, asset_type, trained.rounds),
        reused=_reused(run, trained), coupling=trained.coupling, freshness=freshness(run, trained, rounds),
        tuning=plan.tuned, note=joined(trained.note, evaluation.note), created_at=datetime.now(UTC), **dict(scores),
    )
    if version.task == "classification" or asset_type.target is None:
        return version
    if version.worst_case_risk is None:
        return version.model_copy(update={"coverage": None})
    around = ErrorInterval.implied(plan.spec.loss.loss, asset_type.target, version.worst_case_risk, COVERAGE_CONFIDENCE)
    return version.model_copy(update={"error_interval": around})


def _reused(run: Run, trained: TrainedModel) -> ReusedCuts | None:
    """Plants of which cuts of an earlier run count; None where there are none."""
    if not trained.reused or run.start is None or run.start.after is None:
        return None
    cohorts = cohorts_of(run) if run.plan.reveal == "sums" else {}
    plants = [site for name in trained.reused for site in cohorts.get(name, (name,))]
    return ReusedCuts(run_id=run.start.after, sites=tuple(sorted(plants)))


def freshness(
    run: Run, trained: TrainedModel, rounds: Sequence[RoundRecord]
) -> tuple[PlantFreshness, ...] | None:
    """How fresh each plant of a run is that waited for nobody; None where rounds waited for all."""
    if run.plan.waiting is None:
        return None
    newest = {
        answer.site_id: (answer.question or record.round, record.round)
        for record in sorted(rounds, key=lambda record: record.round)
        for answer in record.answers if answer.status == "accepted"
    }
    last = max(rounds, key=lambda record: record.round).answers if rounds else ()
    at_work = {answer.site_id for answer in last if answer.status == "open"}
    return tuple(
        PlantFreshness(
            site_id=site.site_id, question=newest.get(site.site_id, (None, None))[0],
            came=newest.get(site.site_id, (None, None))[1],
            at_model=not math.isnan(trained.site_risks.get(site.site_id, math.nan)),
            at_work=site.site_id in at_work,
        )
        for site in run.members
    )


def without_risks(evaluation: Evaluation) -> Evaluation:
    """The evaluation without worst-case risks."""
    return replace(evaluation, risk=dict.fromkeys(evaluation.risk, math.nan), worst_case_risk=math.inf)


def summed_sites(run: Run) -> tuple[SummedSites, ...]:
    """Cohorts of a run on sums; none where each site was seen."""
    found = cohorts_of(run) if run.plan.reveal == "sums" else {}
    return tuple(SummedSites(name=name, sites=sites) for name, sites in found.items())


def site_scores(
    run: Run, asset_type: AssetType, trained: TrainedModel, evaluation: Evaluation, rounds: Sequence[RoundRecord]
) -> tuple[SiteScore, ...]:
    """Record of each site that the model is made of: its ball, its scores, and whether it answered the last round."""
    fresh = {answer.site_id for answer in rounds[-1].answers if answer.status == "accepted"} if rounds else set()
    if run.plan.waiting is not None:  # who told its risk at the model, whenever that was
        fresh = {site for site, risk in trained.site_risks.items() if not math.isnan(risk)}
    # What the rounds say of the sites is of what the method minimised; a robust one saw the risks themselves.
    is_robust = get_method(run.plan.method).is_robust
    shares = evaluation.worst_weights or (trained.worst_weights if is_robust else {})
    at_model = is_robust and trained.coupling is None  # risks of the rounds are of planes that were not coupled yet
    risks = {**(trained.site_risks if at_model else {}), **evaluation.risk}
    return tuple(
        SiteScore(
            **site.model_dump(include=set(SiteBall.model_fields)), worst_weight=_known(shares.get(site.site_id)),
            f1=f1_of(evaluation.confusion.get(site.site_id)), confusion=_counts(evaluation.confusion.get(site.site_id)),
            loss=evaluation.loss.get(site.site_id), worst_case_risk=_known(risks.get(site.site_id)),
            fresh=site.site_id in fresh, **dict(scores_of(evaluation.sums.get(site.site_id), asset_type)),
        )
        for site in run.members
    )


def f1_of(confusion: FloatArray | None) -> float | None:
    """F-1 of counts (C, C); None where there are none."""
    return None if confusion is None else _known(f1_score(confusion))


def scores_of(sums: Mapping[str, float] | None, asset_type: AssetType) -> RegressionScores:
    """Scores of a regression from its sums over held-out rows; none where there are none."""
    if sums is None or asset_type.target is None:
        return RegressionScores()
    return RegressionScores.from_sums(sums, asset_type.target)


def _counts(confusion: FloatArray | None) -> Confusion | None:
    """Counts as whole numbers; None where no row was counted."""
    if confusion is None or not confusion.any():
        return None
    return tuple(tuple(round(float(count)) for count in row) for row in confusion)


def _known(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else value
