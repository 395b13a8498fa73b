"""What a version says of its run: what the rounds proved, what each plant told at the end, and what nobody told."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from flows.versions import freshness, model_version, site_scores
from models.problem import Certificate, Status
from services.contracts.evaluation.scores import COVERAGE_CONFIDENCE, REGRESSION_SUMS, ErrorInterval
from services.contracts.history.run import ExcludedSite, RoundRecord, Run, RunStart, SiteTermsRecord, SummedSites
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.machines.target import Target
from services.contracts.plans.plan import Plan
from services.contracts.problems.coupling import Coupling
from services.contracts.versions.model_version import ModelVersion
from services.coordinator.run_state.evaluation import Evaluation
from services.coordinator.run_state.training_state import TrainedModel
from tests.versions import START, a_round, an_answer

SITES = ("plant-1", "plant-2", "plant-3")
RUN_ID, EARLIER = "ab" * 16, "cd" * 16
RIG = AssetType(
    name="rig", features=(Feature(name="flow", unit="1", low=0, high=1),),
    fault_classes=(FaultClass(name="ok", severity=0), FaultClass(name="leak", severity=1)),
)
GAUGE = RIG.model_copy(update={"target": Target(name="wear", unit="mm", low=0.0, high=10.0)})
COUNTS = {site: np.array([[9.0 - number, 1.0 + number], [2.0, 8.0]]) for number, site in enumerate(SITES)}
RISKS = {"plant-1": 0.2, "plant-2": 0.3, "plant-3": 0.4}
SHARES = {"plant-1": 0.5, "plant-2": 0.25, "plant-3": 0.25}


def a_run(start: RunStart | None = None, excluded: tuple[ExcludedSite, ...] = (), **plan: Any) -> Run:
    whole = {"name": "nightly", "asset_type": "rig", "reveal": "each site", **plan}
    sites = tuple(SiteTermsRecord(site_id=site, weight=1 / 3, radius=0.02, n_samples=40) for site in SITES)
    return Run(
        run_id=RUN_ID, plan=Plan.model_validate(whole), status="running", created_at=START, updated_at=START,
        sites=sites, start=start, excluded=excluded,
    )


def a_model(**changes: Any) -> TrainedModel:
    told = TrainedModel(
        weights=np.array([[1.0, -0.5]]), status=Status.CERTIFIED, certificate=Certificate(0.31, 0.3), absolute_gap=1e-6,
        rounds=2, site_risks={"plant-1": 0.21, "plant-2": 0.31, "plant-3": 0.41}, worst_weights={"plant-1": 1.0},
        risk_bound=0.31,
    )
    return replace(told, **changes)


def told(**changes: Any) -> Evaluation:
    whole = Evaluation(
        confusion=COUNTS, sums={}, loss={"plant-1": 0.1, "plant-2": 0.15, "plant-3": 0.2}, risk=RISKS,
        worst_case_risk=0.3, worst_weights=SHARES, answers=(), all_confusion=np.add.reduce([*COUNTS.values()]),
    )
    return replace(whole, **changes)


def the_rounds() -> list[RoundRecord]:
    """Two rounds; the last one without the second plant."""
    late = an_answer("plant-2", status="late", code="late")
    return [
        a_round(RUN_ID, 1, *map(an_answer, SITES)),
        a_round(RUN_ID, 2, an_answer("plant-1"), late, an_answer("plant-3")),
    ]


def a_version(
    run: Run | None = None, trained: TrainedModel | None = None, evaluation: Evaluation | None = None,
    asset_type: AssetType = RIG,
) -> ModelVersion:
    return model_version(run or a_run(), asset_type, trained or a_model(), evaluation or told(), the_rounds())


def of_sites(version: ModelVersion, name: str) -> dict[str, Any]:
    return {site.site_id: getattr(site, name) for site in version.sites}


def test_a_version_has_the_bounds_of_its_run_and_the_figures_of_its_evaluation() -> None:
    out = ExcludedSite(site_id="plant-3", round=2, code="contradiction", reason="it lied")
    version = a_version(a_run(excluded=(out,)), a_model(note="near a kink"))
    assert (version.objective, version.lower_bound, version.worst_case_risk) == (0.31, 0.3, 0.3)
    assert version.certified_gap == pytest.approx(0.01 / 0.31) and (version.rounds, version.absolute_gap) == (2, 1e-6)
    assert version.confusion == ((24, 6), (6, 24)) and version.f1 == pytest.approx(48 / 60)
    assert (version.excluded, version.note, version.reveal, version.cohorts) == ((out,), "near a kink", "each site", ())
    assert [site.site_id for site in version.sites] == ["plant-1", "plant-2"], "the model has nothing of the third"
    assert of_sites(version, "weight") == {"plant-1": 0.5, "plant-2": 0.5}
    assert (version.reused, version.freshness, version.coupling, version.tuning) == (None, None, None, None)


def test_a_plants_own_figures_are_those_that_it_told_at_the_end() -> None:
    version = a_version()
    assert of_sites(version, "worst_case_risk") == RISKS, "not those of the rounds"
    assert of_sites(version, "worst_weight") == SHARES
    assert of_sites(version, "loss") == {"plant-1": 0.1, "plant-2": 0.15, "plant-3": 0.2}
    assert of_sites(version, "confusion")["plant-3"] == ((7, 3), (2, 8))
    assert of_sites(version, "f1")["plant-1"] == pytest.approx(16 / 19)
    assert of_sites(version, "fresh") == {"plant-1": True, "plant-2": False, "plant-3": True}, "by the last round"


def test_who_told_nothing_at_the_end_has_the_risk_of_the_rounds_where_these_are_of_the_model() -> None:
    silent = told(
        risk={"plant-1": 0.2}, worst_case_risk=math.inf, worst_weights={}, all_confusion=np.zeros((2, 2)),
        confusion={"plant-1": np.zeros((2, 2))}, loss={},
    )
    robust = a_version(evaluation=silent)
    assert of_sites(robust, "worst_case_risk") == {"plant-1": 0.2, "plant-2": 0.31, "plant-3": 0.41}
    assert of_sites(robust, "worst_weight") == {"plant-1": 1.0, "plant-2": None, "plant-3": None}
    assert robust.worst_case_risk is None and (robust.f1, robust.confusion) == (None, None), "no row was counted"
    assert {*of_sites(robust, "confusion").values(), *of_sites(robust, "loss").values()} == {None}
    coupling = Coupling(matrix=((1.0,),), offsets=(0.1,), objective=0.2, before=0.3, at_least=0.1, rounds=2)
    coupled = a_version(trained=a_model(coupling=coupling), evaluation=silent)
    assert of_sites(coupled, "worst_case_risk") == {"plant-1": 0.2, "plant-2": None, "plant-3": None}
    assert of_sites(coupled, "worst_weight")["plant-1"] == 1.0 and coupled.coupling == coupling
    other = a_version(a_run(method="fedavg"), evaluation=silent)
    assert of_sites(other, "worst_case_risk") == {"plant-1": 0.2, "plant-2": None, "plant-3": None}
    assert {*of_sites(other, "worst_weight").values()} == {None}, "what it minimised is no worst mixture"


def test_a_risk_that_is_no_number_is_not_known() -> None:
    version = a_version(trained=a_model(site_risks={"plant-2": math.nan}), evaluation=told(risk={"plant-1": 0.2}))
    assert of_sites(version, "worst_case_risk") == {"plant-1": 0.2, "plant-2": None, "plant-3": None}


def test_a_loss_of_all_scores_has_no_worst_case() -> None:
    plan = {"method": "fedavg", "spec": {"loss": "cross_entropy"}}
    version = a_version(a_run(**plan), a_model(weights=np.zeros((2, 2))), told())
    assert version.worst_case_risk is None and {*of_sites(version, "worst_case_risk").values()} == {None}
    assert version.spec.radius.value == 0.0 and of_sites(version, "loss")["plant-1"] == 0.1


def test_one_radius_that_is_an_estimate_makes_the_versions_so() -> None:
    run = a_run()
    assert not a_version(run).radii_are_estimates
    first = run.sites[0].model_copy(update={"radius_is_estimate": True})
    assert a_version(run.model_copy(update={"sites": (first, *run.sites[1:])})).radii_are_estimates


def test_a_plant_that_nobody_waited_for_is_fresh_where_it_told_its_risk_at_the_model() -> None:
    run, trained = a_run(waiting={}), a_model(site_risks={"plant-1": math.nan, "plant-2": 0.3, "plant-3": 0.4})
    found = site_scores(run, RIG, trained, told(), the_rounds())
    assert [site.fresh for site in found] == [False, True, True]
    rounds = [
        a_round(RUN_ID, 1, an_answer("plant-1"), an_answer("plant-2", status="open", code="open")),
        a_round(RUN_ID, 2, an_answer("plant-1"), an_answer("plant-2", question=1)),
        a_round(RUN_ID, 3, an_answer("plant-1", status="rejected"), an_answer("plant-2", status="open", code="open")),
    ]
    for given in (rounds, rounds[::-1]):
        one, two, three = freshness(run, trained, given) or ()
        assert (one.question, one.came, one.at_model, one.at_work) == (2, 2, False, False)
        assert (two.question, two.came, two.at_model, two.at_work) == (1, 2, True, True)
        assert (three.question, three.came, three.at_work) == (None, None, False)


def test_on_sums_the_plants_of_reused_cuts_are_those_of_their_cohorts() -> None:
    cohorts = (SummedSites(name="cohort-1", sites=SITES),)
    start = RunStart(contract=RIG.fingerprint, after=EARLIER, cohorts=cohorts)
    version = a_version(a_run(start, reveal="sums"), a_model(reused=("cohort-1",)))
    assert version.cohorts == cohorts and version.reveal == "sums"
    assert version.reused is not None and (version.reused.run_id, version.reused.sites) == (EARLIER, SITES)
    alone = a_version(a_run(RunStart(contract=RIG.fingerprint, after=EARLIER)), a_model(reused=("plant-3", "plant-1")))
    assert alone.reused is not None and alone.reused.sites == ("plant-1", "plant-3")
    assert a_version(a_run(start)).reused is None


def sums(covered: float) -> dict[str, float]:
    return dict.fromkeys(REGRESSION_SUMS, 1.0) | {"n_test": 20.0, "target_squares": 10.0, "covered": covered}


def test_an_interval_and_its_coverage_stand_where_the_worst_case_risk_is_known() -> None:
    run = a_run(spec={"loss": {"name": "huber", "epsilon": 0.1}})
    of_all = sums(54.0) | {"n_test": 60.0}
    evaluation = told(confusion={}, all_confusion=None, sums={"plant-1": sums(17.0)}, all_sums=of_all)
    version = a_version(run, evaluation=evaluation, asset_type=GAUGE)
    target, loss = GAUGE.target, run.plan.spec.loss.loss
    assert target is not None
    assert version.error_interval == ErrorInterval.implied(loss, target, 0.3, COVERAGE_CONFIDENCE)
    assert (version.n_test, version.coverage, version.f1) == (60, 0.9, None)
    assert of_sites(version, "coverage") == {"plant-1": 0.85, "plant-2": None, "plant-3": None}
    unknown = a_version(run, evaluation=replace(evaluation, worst_case_risk=math.inf), asset_type=GAUGE)
    assert (unknown.error_interval, unknown.coverage, unknown.worst_case_risk) == (None, None, None), (
        "what was counted was of an interval that holds everything"
    )
    assert unknown.n_test == 60
