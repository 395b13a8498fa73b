"""Networks and softmax regressions from a plan to a diagnosis, trained by local steps; a network has no certificate."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from api.cli.main import main
from api.console.views.words import certificate_words
from flows.publish import promote_if_gates_hold
from models.methods.local_sgd.objectives.network import NetworkObjective
from models.methods.local_sgd.objectives.softmax import SoftmaxObjective
from services.contracts.errors import InvalidInputError
from services.contracts.keys.signed_documents import check_signature
from services.contracts.keys.signing import public_key
from services.contracts.plans.plan import Plan
from services.contracts.plans.plan_problem import check_problem
from services.contracts.versions.model_version import ModelVersion
from services.predictor.predictor import Predictor
from services.registry.gates import check_gates, failed_gates
from services.registry.pyfunc_model import ServedModel
from services.reporting.model_report import model_report
from services.reporting.report_page import report_page
from services.verification.version import NoCertificateError, verify_version
from tests.flows.rest import asked_as_viewer

NETWORK = {"loss": "cross_entropy", "network": {"hidden": 6, "seed": 3}}
STEPS: dict[str, dict[str, float]] = {
    "fedavg": {"step_size": 0.5}, "scaffold": {"step_size": 0.3, "global_step": 1.5},
    "scaff-pd-ia": {"step_size": 0.3, "global_step": 1.5}, "drflm": {"step_size": 0.5},
}


def samples_of(version: ModelVersion, rows: Any) -> list[dict[str, float]]:
    features = version.asset_type.features
    return [{f.name: f.low + (f.high - f.low) * x for f, x in zip(features, row, strict=True)} for row in rows.tolist()]


@pytest.mark.parametrize("method", STEPS)
def test_a_network_is_trained_from_a_plan_and_says_that_it_has_no_certificate(works: Any, method: str) -> None:
    reveal = "sums" if method in ("fedavg", "scaffold") else "each site"
    plan = works.plan(
        f"net-{method}", method=method, spec=NETWORK, reveal=reveal, max_rounds=24, parameters=STEPS[method],
        gates={"min_f1": 0.5}, coverage=0.9,
    )
    assert plan.gates.max_gap is None
    run, trained, version = works.train(plan, registered=False)
    objective = NetworkObjective(2, 6, 0.0)
    assert version.weights.shape == (1, objective.size(2)) and trained.rounds == 24
    assert version.certified_gap == math.inf and version.lower_bound == -math.inf and not version.is_certified
    assert version.worst_case_risk is None and all(site.worst_case_risk is None for site in version.sites)
    if reveal == "sums":
        losses = [
            objective.loss(version.weights[0], train.features, train.classes.astype(float))
            for train in (works.dataset(site.site_id).train for site in run.sites)
        ]
        weights = [site.weight for site in run.sites]
        assert 0.0 < version.objective - np.dot(losses, weights) < 3e-3, "on sums a network's loss is told from above"
        begun = works.context.store.runs.get_rounds(run.run_id)[0].upper
        assert version.objective < 0.95 * begun
    assert "no certificate" in version.note
    assert version.calibration is not None and version.calibration.coverage == 0.9
    assert not failed_gates(check_gates(plan.gates, version))
    again = ModelVersion.from_document(json.loads(json.dumps(version.to_document())))
    assert np.array_equal(again.weights, version.weights) and again.spec == version.spec
    said = [report_page(model_report(version, run, works.context.store.runs.get_rounds(run.run_id))),
            " ".join(certificate_words(version))]
    assert "has no certificate" in said[0] and "No certificate" in said[1]
    assert not any("has one below" in each or "certified relative gap" in each for each in said)
    with pytest.raises(NoCertificateError):
        verify_version(version.to_document(), None, None)


def test_a_network_diagnoses_alike_in_the_service_and_in_mlflow(
    works: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pd = pytest.importorskip("pandas")
    plan = works.plan("net-served", method="fedavg", spec=NETWORK, reveal="sums", max_rounds=40,
                      parameters={"step_size": 0.5}, gates={"min_f1": 0.5})
    run, _, version = works.train(plan)
    assert "champion" in promote_if_gates_hold(works.context, run, version)
    version = works.context.registry.get("net-served", version.version)
    test = works.dataset("plant-1").test
    samples = samples_of(version, test.features)
    diagnosed = Predictor(version).diagnose(samples)
    assert np.mean([found.fault_class == "leak" for found in diagnosed] == (test.classes == 1)) > 0.8
    assert all(found.class_set is not None and found.probabilities for found in diagnosed)
    monkeypatch.setenv("BALLAST_HOME", str(works.context.settings.home))
    monkeypatch.setenv("BALLAST_DATABASE_URL", works.context.settings.database_url)
    assert main(["verify", "net-served", "--save", str(tmp_path / "given")]) == 2, "its files, without a certificate"
    given = json.loads((tmp_path / "given" / "model.json").read_text())
    check_signature(given, public_key(works.context.settings.nats_seed))
    with asked_as_viewer(works.context.settings) as ask:
        code, told = ask("POST", "/v1/models/net-served/diagnose", {"samples": samples[:3]})
        assert code == 200, told
        assert [each["scores"] for each in told["diagnoses"]] == [each.scores for each in diagnosed[:3]]
        code, shown = ask("GET", f"/v1/models/net-served/versions/{version.version}")
        assert code == 200 and shown["certified_gap"] == "Infinity" and shown["lower_bound"] == "-Infinity"
        assert "no certificate" in shown["note"] and shown["worst_case_risk"] is None
    (tmp_path / "model.json").write_text(json.dumps(version.to_document()))
    served = ServedModel()
    served.load_context(type("Context", (), {"artifacts": {"model": str(tmp_path / "model.json")}}))
    for one, other in zip(diagnosed, served.predict(None, pd.DataFrame(samples)), strict=True):
        assert one.fault_class == other["fault_class"]
        assert one.scores == pytest.approx(other["scores"]) 
        assert one.robustness_radius == pytest.approx(other["robustness_radius"])


def test_a_softmax_regression_has_planes_and_bounds_that_hold(works: Any) -> None:
    plan = works.plan("soft", method="fedavg", spec={"loss": "cross_entropy"}, reveal="sums", max_rounds=30,
                      parameters={"step_size": 1.0})
    run, trained, version = works.train(plan, registered=False)
    assert version.weights.shape == (2, 3) and version.is_certified
    weights, parts = [site.weight for site in run.sites], [works.dataset(site.site_id).train for site in run.sites]
    flat = np.concatenate([version.weights[:, :-1].ravel(), version.weights[:, -1]])
    losses = [SoftmaxObjective(2).loss(flat, part.features, part.classes.astype(float)) for part in parts]
    assert version.objective == pytest.approx(np.dot(losses, weights), abs=1e-9)
    assert 0.0 <= version.lower_bound < version.objective == trained.certificate.upper
    import cvxpy as cp

    planes = cp.Variable((2, 3))
    total = 0.0
    for part, weight in zip(parts, weights, strict=True):
        scores = np.hstack([part.features, np.ones((len(part), 1))]) @ planes.T
        own = cp.sum(cp.multiply(scores, np.eye(2)[part.classes]), axis=1)
        total = total + weight * cp.sum(cp.log_sum_exp(scores, axis=1) - own) / len(part)
    best = cp.Problem(cp.Minimize(total)).solve(solver="CLARABEL")
    assert version.lower_bound <= best + 1e-6 and version.objective >= best - 1e-6
    test = works.dataset("plant-1").test
    diagnosed = Predictor(version).diagnose(samples_of(version, test.features))
    assert np.mean([found.fault_class == "leak" for found in diagnosed] == (test.classes == 1)) > 0.8
    assert "no worst-case risk is stated" in " ".join(certificate_words(version))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"gates": {"max_gap": 1e-3}}, "leave the gate max_gap out"),
        ({"spec": {**NETWORK, "loss": "hinge"}}, "trained with the loss cross_entropy"),
        ({"spec": {**NETWORK, "lift": {"kind": "spline", "segments": 3}}}, "leave out the lift"),
        ({"spec": {**NETWORK, "support": "sensor_ranges"}}, "set support to unbounded"),
        ({"spec": {**NETWORK, "fit_intercept": False}}, "keep the intercept"),
    ],
)
def test_what_does_not_go_with_a_network_is_refused_on_one_line(change: dict[str, Any], said: str) -> None:
    given = {"name": "net", "asset_type": "rig", "method": "fedavg", "spec": NETWORK} | change
    with pytest.raises(ValidationError, match=said):
        Plan.model_validate(given)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"method": "cohort-bundle"}, "no worst case over a ball"), ({"method": "standard"}, "methods of local steps"),
        ({"method": "feddro", "reveal": "each site"}, "methods of local steps"),
        ({"tuning": "auto", "method": "fedavg"}, "tuning is for methods that minimise the worst-case risk"),
    ],
)
def test_a_method_that_does_not_train_networks_is_refused_where_the_plan_is_made(
    works: Any, change: dict[str, Any], said: str
) -> None:
    plan = Plan.model_validate({"name": "net", "asset_type": "rig", "spec": NETWORK} | change)
    with pytest.raises(InvalidInputError, match=said) as refused:
        check_problem(plan, works.context.asset_type("rig"))
    assert "\n" not in str(refused.value)


def test_a_stored_plan_of_a_network_loads_again() -> None:
    plan = Plan.model_validate({"name": "net", "asset_type": "rig", "method": "fedavg", "spec": NETWORK})
    assert Plan.model_validate_json(plan.model_dump_json()) == plan
