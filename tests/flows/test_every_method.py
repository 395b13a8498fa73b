"""Every method of the catalogue from a plan to a registered version, its certificate held to CVXPY's optimum."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from models.evaluation.robustness_radius import robustness_radius
from models.geometry.supports import BoxSupport
from models.methods.catalogue import METHODS
from models.problem import RobustSpec, SiteProblem
from models.simulation.federation import train
from models.site_ambiguity.ball import WHOLE_SIMPLEX, MixtureBall, worst_mixture
from services.contracts.errors import BallastError
from services.contracts.history.run import Run
from services.contracts.plans.plan import Plan
from services.contracts.problems.lift import draw_lift
from services.coordinator.run_state.terms import site_spec, weights_note
from services.exporting.c99_header import c99_header
from services.exporting.onnx_model import onnx_model
from services.predictor.predictor import Predictor
from services.registry.model_files import document_text
from services.registry.pyfunc_model import ServedModel
from services.reporting.model_report import model_report
from services.reporting.report_page import report_page
from services.site_agent.answers.local_join import joined
from services.site_agent.door import row_answers
from services.site_agent.vault.records import exposure_gate
from tests.oracles.whole_problem import solve_whole

WORST_SITE = ("drfa-exact", "drfa", "drflm", "safl")
"""Methods that reckon with every mixture of the sites where the plan states no ball."""
OWN_OBJECTIVE = ("wafl", "relative-fairness", "scaff-pd", "scaff-pd-ia", "feddro")
"""Methods that descend on something else than the worst-case risk over the plan's balls; their bounds are of that."""
REGISTERED = ("level-bundle", "cohort-bundle", "drfl-admm", "fedavg", "wafl", "relative-fairness", "scaff-pd")
"""Methods whose version goes to the registry too: objectives, mixtures and solvers of each kind; others stay drafts."""
RHO = {name: {"rho": 1.0} for name in ("fdr-admm", "fdr-admm-sc", "fdr-admm-reg")}


def problems_of(works: Any, plan: Plan, run: Run) -> list[SiteProblem]:
    """What each site of a run holds, from its own rows, and the ball that the method trains with."""
    problems = []
    for terms in run.sites:
        train = works.dataset(terms.site_id).train
        spec = site_spec(plan, works.context.asset_type("rig"), terms.site_id)
        lift = draw_lift(spec.lift, train.features.shape[1])
        rows = train.features if lift is None else lift.apply(train.features)
        box = BoxSupport(np.zeros(rows.shape[1]), np.ones(rows.shape[1])) if spec.support == "sensor_ranges" else None
        flip, norm, method = spec.label_flip_cost, spec.transport_norm, METHODS[plan.method]
        flip, radius = math.inf if method.trusts_labels else flip, 0.0 if method.ignores_radius else terms.radius
        ball = RobustSpec(radius, flip, norm, box, spec.fit_intercept, spec.loss.loss)
        problems.append(SiteProblem(rows, np.where(train.classes == 1, 1.0, -1.0), ball))
    return problems


def check_bracket(works: Any, plan: Plan, run: Run, trained: Any, mixture: MixtureBall | None = None) -> None:
    """The bounds hold CVXPY's optimum between them, against the worst mixture of a ball where one is given."""
    best = solve_whole(problems_of(works, plan, run), [terms.weight for terms in run.sites], mixture).value
    found = trained.certificate
    assert found.lower <= best + 1e-6 and found.upper >= best - 1e-6
    assert 0 <= found.lower and found.gap == pytest.approx((found.upper - found.lower) / found.upper)


@pytest.mark.parametrize("support", ["unbounded", "sensor_ranges"])
@pytest.mark.parametrize("method", METHODS)
def test_a_plan_with_each_method_ends_with_a_certificate_around_the_optimum(
    works: Any, method: str, support: str
) -> None:
    chosen, boxed = METHODS[method], support == "sensor_ranges"
    if boxed and (chosen.needs_smooth_loss or chosen.needs_unbounded):
        pytest.skip("the method is for features without bounds; the checks of a plan say so")
    plan = works.plan(
        f"{method}-{support[:3]}", method=method, parameters=RHO.get(method, {}),
        max_rounds=25 if "bundle" in method else 6,
        spec={
            "transport_norm": "l1", "support": support, "radius": {"rule": "samples", "value": 2.0},
            "loss": "logistic" if chosen.needs_smooth_loss else "hinge",
        },
        site_settings={
            "plant-1": {"weight": 0.5, "label_flip_cost": 1.0 if method == "wafl" else 0.4},
            "plant-2": {"weight": 0.2}, "plant-3": {"weight": 0.3, "radius": {"rule": "fixed", "value": 0.02}},
        },
    )
    registered = method in REGISTERED and (not boxed or method == "level-bundle")
    run, trained, version = works.train(plan, registered=registered)
    assert [(site.site_id, site.weight) for site in run.sites] == [("plant-1", 0.5), ("plant-2", 0.2), ("plant-3", 0.3)]
    if method in OWN_OBJECTIVE:
        assert trained.certificate.lower <= trained.certificate.upper
    else:
        check_bracket(works, plan, run, trained, MixtureBall("l2", 2.0) if method in WORST_SITE else None)
    assert version.mixture.ball == (WHOLE_SIMPLEX if method in WORST_SITE else MixtureBall("l2", 0.0))
    assert sum(site.worst_weight for site in version.sites) == pytest.approx(1.0)
    if method.startswith("level-bundle"):
        assert trained.certificate.gap <= 1e-3 or method == "level-bundle-plain"
    assert version.method == method and version.certified_gap == trained.certificate.gap
    assert version.solvers == chosen.solver_names(loss=plan.spec.loss.loss, support="box" if boxed else "unbounded")
    assert version.spec.label_flip_cost == 1.0
    costs = [1.0 if method == "wafl" else 0.4, 1.0, 1.0]
    assert [site.label_flip_cost for site in version.sites] == costs
    assert run.sites[2].radius == 0.02 and run.sites[0].radius == 1 / (2 * run.sites[0].n_samples)
    risks = np.array([site.worst_case_risk for site in version.sites])
    worst = worst_mixture(risks, np.array([site.weight for site in version.sites]), version.mixture.ball)
    assert version.worst_case_risk == pytest.approx(worst.value, rel=1e-9)
    assert version.objective == trained.certificate.upper and version.objective_name == chosen.objective
    if chosen.is_robust:
        assert version.worst_case_risk == pytest.approx(trained.certificate.upper, rel=1e-9)
    report = model_report(version, run, works.context.store.runs.get_rounds(run.run_id))
    assert all(name in report_page(report) for name in version.solvers)


def test_a_run_of_wafl_goes_on_and_is_evaluated_where_a_plant_tells_no_more_vectors(
    unasked_works: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The method has no second answer: a plant that isolates no row refuses some, and after a few of them all."""
    works = unasked_works
    monkeypatch.setattr(exposure_gate, "ISOLATING", 1)
    door = works.doors["plant-1"]
    monkeypatch.setattr(door._gate, "_policy", door._policy.model_copy(update={"exposure_limit": 0.0}))
    plan = works.plan("no-row-alone", method="wafl", max_rounds=25, spec={"radius": {"rule": "samples", "value": 2.0}})
    run, trained, version = works.train(plan, registered=False)
    answers = [each for record in works.context.store.runs.get_rounds(run.run_id) for each in record.answers]
    codes = [(each.site_id, each.code) for each in answers if each.status == "refused_by_site"]
    assert set(codes) == {("plant-1", "exposure_limit"), ("plant-1", "budget_spent")}
    assert trained.certificate.lower <= trained.certificate.upper < math.inf
    assert all(math.isfinite(site.worst_case_risk) for site in version.sites), "each of them is evaluated"


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_both_step_rules_of_the_subgradient_method_are_parameters_of_a_plan(works: Any, power: float) -> None:
    rule = {"step_size": 0.7, "step_power": power}
    plan = works.plan(f"steps-{power * 2:.0f}", method="fdr-sm", max_rounds=6, parameters=rule)
    run, trained, _ = works.train(plan, registered=False)
    sites = dict(zip(("plant-1", "plant-2", "plant-3"), problems_of(works, plan, run), strict=True))
    alone = train(sites, method="fdr-sm", max_rounds=6, gap=1e-3, parameters=rule)
    other = train(sites, method="fdr-sm", max_rounds=6, gap=1e-3, parameters=rule | {"step_power": 1.5 - power})
    # A plant's guard moves some answers a little: steps by the other rule end ten times as far away.
    off = np.abs(trained.weights[0] - alone.weights).max()
    assert np.abs(trained.weights[0] - other.weights).max() > max(10.0 * off, 1e-3)


def test_a_plan_with_splines_trains_on_sums_a_model_that_is_used_and_drawn(works: Any) -> None:
    plan = works.plan(
        "bent", reveal="sums", method="cohort-bundle", max_rounds=60,
        spec={"lift": {"kind": "spline", "segments": 4}, "radius": {"rule": "samples", "value": 5.0}},
    )
    run, trained, version = works.train(plan)
    check_bracket(works, plan, run, trained)
    assert trained.certificate.gap <= 1e-3 and version.weights.shape == (1, 9)
    test = works.dataset("plant-1").test
    features = version.asset_type.features
    samples = [
        {f.name: f.low + (f.high - f.low) * value for f, value in zip(features, row, strict=True)}
        for row in test.features.tolist()
    ]
    diagnosed = Predictor(version).diagnose(samples)
    assert np.mean([found.fault_class == "leak" for found in diagnosed] == (test.classes == 1)) > 0.8
    radii = robustness_radius(version.weights, test.features, version.spec.transport_norm, version.lift)
    assert [found.robustness_radius for found in diagnosed] == pytest.approx(radii.tolist())
    report = model_report(version, run, works.context.store.runs.get_rounds(run.run_id))
    assert [curve.sensor for curve in report.curves] == ["flow", "pressure"]
    assert "4 segments over its range" in report_page(report)


def test_a_plan_with_products_beside_splines_trains_serves_and_exports(works: Any, tmp_path: Path) -> None:
    lift = {"kind": "products", "features": ["flow", "pressure"], "squares": True, "segments": 6}
    plan = works.plan("together", spec={"lift": lift, "radius": {"rule": "samples", "value": 5.0}}, max_rounds=60)
    run, trained, version = works.train(plan, registered=False)
    check_bracket(works, plan, run, trained)
    assert trained.certificate.gap <= 1e-3 and version.weights.shape == (1, 16)
    assert "with a spline of 6 segments for each sensor" in report_page(model_report(version, run, []))
    test = works.dataset("plant-1").test
    samples = [dict(zip(("flow", "pressure"), (10 * row - 5).tolist(), strict=True)) for row in test.features]
    diagnosed = Predictor(version).diagnose(samples)
    assert np.mean([found.fault_class == "leak" for found in diagnosed] == (test.classes == 1)) > 0.8
    (tmp_path / "model.json").write_text(document_text(version))
    served = ServedModel()
    served.load_context(SimpleNamespace(artifacts={"model": str(tmp_path / "model.json")}))
    for answer, found in zip(served.predict(None, pd.DataFrame(samples)), diagnosed, strict=True):
        assert answer["scores"] == pytest.approx(found.scores) and answer["fault_class"] == found.fault_class
        assert 0 < answer["robustness_radius"] <= found.robustness_radius, "the served file has the simpler bound"
    assert "_knots[" in c99_header(version) and onnx_model(version)


def test_a_lifted_plan_trains_a_model_that_is_used_on_the_sensors(works: Any) -> None:
    lift = {"components": 12, "bandwidth": 0.4, "seed": 5}
    plan = works.plan("lifted", spec={"lift": lift, "radius": {"rule": "samples", "value": 5.0}}, max_rounds=60)
    run, trained, version = works.train(plan, registered=False)
    check_bracket(works, plan, run, trained)
    assert version.weights.shape == (1, 15) and version.spec.lift is not None
    assert version.spec.lift.fingerprint == version.lift.fingerprint
    assert "12 random Fourier features" in report_page(model_report(version, run, []))
    test = works.dataset("plant-1").test
    samples = [dict(zip(("flow", "pressure"), (10 * row - 5).tolist(), strict=True)) for row in test.features]
    diagnosed = Predictor(version).diagnose(samples)
    radii = robustness_radius(version.weights, test.features, "l2", version.lift)
    assert [found.robustness_radius for found in diagnosed] == pytest.approx(radii.tolist())
    assert np.mean([found.fault_class == "leak" for found in diagnosed] == (test.classes == 1)) > 0.8


def test_a_site_that_draws_another_lift_does_not_join(
    works: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = works.plan("odd-lift", spec={"lift": {"components": 4, "bandwidth": 1.0, "seed": 1}})

    def other_seed(task: Any, dataset: Any) -> Any:
        lift = task.spec.lift.model_copy(update={"seed": 2, "fingerprint": None})
        other = task.model_copy(update={"spec": task.spec.model_copy(update={"lift": lift})})
        return joined(other if task.site_id == "plant-2" else task, dataset)

    monkeypatch.setattr(row_answers, "joined", other_seed)
    run, _, version = works.train(plan, registered=False)
    assert [site.site_id for site in version.sites] == ["plant-1", "plant-3"]
    (absentee,) = run.absentees
    assert (absentee.site_id, absentee.status, absentee.code) == ("plant-2", "rejected", "implausible")
    assert "lifts its features otherwise than the plan says" in absentee.reason


def test_the_confidence_of_the_mixture_is_on_the_run_the_version_and_the_report(works: Any) -> None:
    tail = {"exponent": 2.0, "c1": 2.0, "c2": 400.0, "c3": 1.0}
    given = {"rule": "confidence", "confidence": 0.9, "tail": tail}
    plan = works.plan("sure", spec={"radius": given}, max_rounds=5)
    run, _, version = works.train(plan, registered=False)
    assert version.mixture_confidence == run.mixture_confidence == pytest.approx(0.9**3)
    assert version.radii_are_estimates is False
    estimated = {"plant-2": {"radius": {"rule": "confidence", "confidence": 0.5}}}
    plan = works.plan("guessed", spec={"radius": given}, site_settings=estimated, max_rounds=5)
    run, trained, version = works.train(plan, registered=False)
    check_bracket(works, plan, run, trained)
    assert version.mixture_confidence == pytest.approx(0.9**2 * 0.5) and version.radii_are_estimates
    assert [site.radius_is_estimate for site in run.sites] == [False, True, False]
    page = report_page(model_report(version, run, []))
    assert "0.405, an estimate" in page and "(estimate)" in page
    unsure = {"plant-2": {"radius": {"rule": "fixed", "value": 0.01}}}
    plan = works.plan("unsure", spec={"radius": given}, site_settings=unsure, max_rounds=2)
    run, _, version = works.train(plan, registered=False)
    assert version.mixture_confidence is None


def test_weights_are_scaled_up_over_the_sites_that_join(works: Any) -> None:
    weights = {"plant-1": 0.5, "plant-2": 0.3, "plant-3": 0.2}
    own = {site: {"weight": weight} for site, weight in weights.items()}
    plan = works.plan("away", site_settings=own, max_rounds=3)
    run, trained, _ = works.train(plan, absent=("plant-3",), registered=False)
    assert [site.weight for site in run.sites] == pytest.approx([0.5 / 0.8, 0.3 / 0.8])
    assert weights_note(run) == "weights scaled up to sum to 1 without plant-3"
    assert [answer.site_id for answer in run.absentees] == ["plant-3"]
    check_bracket(works, plan, run, trained)


@pytest.mark.parametrize(
    ("weights", "said"),
    [({"plant-1": 0.5, "plant-2": 0.5}, "none for plant-3"),
     ({"plant-1": 0.5, "plant-2": 0.5, "plant-3": 0.5}, "must sum to 1, they sum to 1.5")],
)
def test_weights_of_a_plan_that_names_no_sites_are_held_to_the_sites_at_join(
    works: Any, weights: dict[str, float], said: str
) -> None:
    own = {site: {"weight": weight} for site, weight in weights.items()}
    plan = works.plan(f"wrong-weights-{len(weights)}", sites=(), site_settings=own)
    with pytest.raises(BallastError, match=said) as refusal:
        works.train(plan)
    assert refusal.value.code == "bad_weights" and "\n" not in str(refusal.value)


def test_an_infinite_cost_survives_store_task_and_registry(works: Any) -> None:
    plan = works.plan("trusting", spec={"label_flip_cost": "Infinity"}, max_rounds=4, site_settings={
        "plant-3": {"label_flip_cost": 2.0},
    })
    run, trained, version = works.train(plan)
    stored = works.context.store.plans.get("trusting").plan
    assert run.plan.spec.label_flip_cost == stored.spec.label_flip_cost == math.inf
    assert [site.label_flip_cost for site in run.sites] == [math.inf, math.inf, 2.0]
    again = works.context.registry.get("trusting", version.version)
    assert [site.label_flip_cost for site in again.sites] == [math.inf, math.inf, 2.0]
    assert again.spec.label_flip_cost == math.inf
    check_bracket(works, plan, run, trained)
