"""Targets, losses and mixtures through the running service: from raw signals in plants to an estimate over REST."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from api.backend.actor import Actor
from api.backend.wiring import open_backend
from api.plans import service as plans
from flows.publish import promote_if_gates_hold
from models.features.condition_indicators import INDICATOR_NAMES, condition_indicators
from models.methods.catalogue import METHODS
from models.site_ambiguity.ball import MixtureBall, worst_mixture
from models.worst_case import worst_case_risk
from services.contracts.access.identity import Role
from services.contracts.errors import BallastError
from services.contracts.plans.plan import Plan
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.contracts.wire.codec import decode, encode
from services.contracts.wire.messages import SiteRefusal, SiteUpdate, Task
from services.plant_simulator.assets import builtin_asset_type
from services.plant_simulator.measure import SAMPLING_RATE, simulate_measurement
from services.plant_simulator.writer import simulate_plants
from services.reporting.model_report import model_report
from services.reporting.report_page import report_page
from services.site_agent.door.local_round import LocalRound
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.settings import SimulatorSource
from tests.flows.rest import asked_as_viewer

SEVERITY, AREA = 7e-3, 0.7
"""A leak of .7 % of a valve of 100 mm^2."""
POLICY = SitePolicy(
    methods=tuple(METHODS), asset_types=("triplex-pump",), messages=("join", "round", "evaluate"), exposure_limit=1.0,
    reveal=("each site",),
)
GATES = {"max_gap": None, "max_mae": 0.1, "max_site_mae": 0.1, "min_coverage": 0.9}
HUBER = {"loss": {"name": "huber", "epsilon": 0.05}, "radius": {"rule": "fixed", "value": 1e-3}}
PINBALL = {"loss": {"name": "pinball", "quantile": 0.5}, "radius": {"rule": "fixed", "value": 1e-3}}
SPLINE = HUBER | {"lift": {"kind": "spline", "segments": 3}}
SPECS = {"leak-huber": HUBER, "leak-pinball": PINBALL, "leak-spline": SPLINE}


@pytest.fixture(scope="module")
def works(tmp_path_factory: pytest.TempPathFactory, new_sqlite: Any, opening_works: Any) -> Iterator[Any]:
    base = tmp_path_factory.mktemp("leaks")
    folders = simulate_plants(base / "signals", sites=4, seed=3, n_train=160, n_test=80)
    sources = {folder.name: SimulatorSource(kind="simulator", path=folder) for folder in folders}
    with opening_works(base, new_sqlite(), builtin_asset_type("triplex-pump-severity"), sources) as opened:
        yield opened


@pytest.fixture(scope="module")
def rest(works: Any) -> Iterator[Any]:
    """Asks the API of the works as a viewer."""
    with asked_as_viewer(works.context.settings) as ask:
        yield ask


@functools.cache
def fresh_sample(severity: float = SEVERITY, seed: int = 11) -> dict[str, float]:
    flow = np.asarray(simulate_measurement("leak", severity, seed)["flow"], dtype=np.float64)[None, :]
    values = condition_indicators(flow, SAMPLING_RATE)[0]
    return dict(zip(INDICATOR_NAMES, values.tolist(), strict=True))


def trained(works: Any, name: str, **changes: Any) -> tuple[Any, Any, ModelVersion]:
    run, outcome, version = works.train(works.plan(name, **({"max_rounds": 25, "gap": 5e-2} | changes)))
    assert "champion" in promote_if_gates_hold(works.context, run, version)
    return run, outcome, version


@pytest.fixture(scope="module")
def models(works: Any) -> dict[str, tuple[Any, Any, ModelVersion]]:
    """A model of the leak's area by two losses, each with its run, champion since every gate holds."""
    return {
        name: trained(works, name, spec=spec, gates=GATES, max_rounds=45 if "lift" in spec else 25)
        for name, spec in SPECS.items()
    }


@pytest.mark.parametrize("name", SPECS)
def test_a_leaks_area_is_estimated_in_its_unit_with_an_interval_that_covers(
    works: Any, rest: Any, models: dict[str, Any], name: str
) -> None:
    run, outcome, version = models[name]
    size = 3 * 14 if "lift" in SPECS[name] else 14
    assert outcome.certificate.gap <= 0.1 and version.task == "regression" and version.weights.shape == (1, size + 1)
    assert version.n_test == 80 and version.mae is not None and version.mae < 0.06
    assert version.r2 is not None and version.r2 > 0.9 and version.f1 is None
    assert version.coverage is not None and version.coverage >= 0.9
    assert all(site.mae is not None and site.loss is not None and site.n_test == 20 for site in version.sites)
    status, answer = rest("POST", f"/v1/models/{name}/estimate", {"sample": fresh_sample(), "confidence": 0.95})
    assert status == 200, answer
    assert (answer["target"], answer["unit"], answer["held_out_coverage"]) == ("leak_area", "mm^2", version.coverage)
    (found,) = answer["estimates"]
    assert found["unit"] == "mm^2" and found["value"] == pytest.approx(AREA, abs=0.15)
    interval = found["interval"]
    assert interval["confidence"] == 0.95 and interval["low"] <= AREA <= interval["high"]
    assert found["contributing_sensors"] and "mixture" in answer["guarantee"]
    status, answer = rest("POST", f"/v1/models/{name}/diagnose", {"sample": fresh_sample()})
    assert status == 409 and f"/v1/models/{name}/estimate" in answer["detail"]
    status, detail = rest("GET", f"/v1/models/{name}/versions/champion")
    assert status == 200 and detail["mae"] == version.mae and detail["asset_type"]["target"]["unit"] == "mm^2"
    page = report_page(model_report(version, run, works.context.store.runs.get_rounds(run.run_id)))
    assert "leak_area in mm^2" in page and "mean error (mm^2)" in page and "F-1" not in page
    stored = works.context.registry.get(name, version.version)
    assert stored.to_document() == version.to_document()
    (summary,) = works.context.registry.versions(name)
    assert (summary.task, summary.mae, summary.coverage) == ("regression", version.mae, version.coverage)


def test_the_interval_follows_from_the_worst_case_risk(rest: Any, models: dict[str, Any]) -> None:
    _, outcome, version = models["leak-pinball"]
    risk, sample = version.worst_case_risk, fresh_sample()
    # A risk that a plant told in a round may be a little above its own.
    assert risk * (1 - 1e-9) <= outcome.certificate.upper <= risk * 1.001
    for confidence in (0.5, 0.9, 0.99):
        _, answer = rest("POST", "/v1/models/leak-pinball/estimate", {"sample": sample, "confidence": confidence})
        (found,) = answer["estimates"]
        half = 2.0 * 2.0 * risk / (1.0 - confidence)  # range 2 mm^2, quantile 1/2
        assert found["interval"]["high"] == pytest.approx(min(found["value"] + half, 2.0)), "cut to the target's range"
        assert found["interval"]["low"] == pytest.approx(max(found["value"] - half, 0.0))
        conformal = found["conformal"]
        assert 0.0 <= conformal["low"] <= found["value"] <= conformal["high"] <= 2.0 and conformal["confidence"] == 0.9
        assert conformal["kind"] == "conformal" and answer["calibration"]["kind"] == "spread"
        assert answer["calibration"]["half_width"] is None
        width = answer["calibration"]["widths"][min(int(10 * found["value"] / 2.0), 9)]
        assert conformal["high"] - conformal["low"] <= width + 1e-9 and width < 2.0 * 2.0 * 0.3
    for wrong in (0.0, 1.0, -0.1, "nine"):
        status, answer = rest("POST", "/v1/models/leak-pinball/estimate", {"sample": sample, "confidence": wrong})
        assert status == 422 and "confidence" in answer["detail"]
    status, answer = rest("POST", "/v1/models/leak-pinball/estimate", {"sample": {**sample, "flow_mean": 99.0}})
    assert status == 200 and answer["estimates"][0]["clipped"] == ["flow_mean"]


@pytest.mark.parametrize("method", [name for name in ("level-bundle", "drfl-admm") if name in METHODS])
def test_a_ball_over_the_plants_makes_the_worst_mixture_count(works: Any, method: str) -> None:
    mixture = {"norm": "l2", "radius": 0.3}
    plan = works.plan(f"mixed-{method}", method=method, spec=PINBALL, mixture=mixture, max_rounds=15, gap=1e-2)
    run, outcome, version = works.train(plan, registered=False)
    assert version.mixture.radius == 0.3
    risks = np.array([site.worst_case_risk for site in version.sites])
    worst = worst_mixture(risks, np.full(4, 0.25), MixtureBall("l2", 0.3))
    assert version.worst_case_risk == pytest.approx(worst.value, rel=1e-9) and outcome.certificate.lower <= worst.value
    assert [site.worst_weight for site in version.sites] == pytest.approx(worst.weights.tolist(), abs=1e-9)
    assert worst.value > risks.mean()
    assert "l2, radius 0.3" in report_page(model_report(version, run, []))


def test_a_method_without_a_ball_is_judged_by_the_risk_over_the_balls(works: Any) -> None:
    plan = works.plan("no-ball", method="standard", spec=PINBALL, max_rounds=15, gates={"max_gap": None})
    _, outcome, version = works.train(plan)
    risks = []
    for site in version.sites:
        rows = works.dataset(site.site_id).rows_for("regression").train
        risks.append(
            worst_case_risk(
                version.weights[0, :-1], rows.features, rows.targets, radius=site.radius, label_flip_cost=1.0,
                transport_norm="l2", intercept=version.weights[0, -1], loss="pinball",
            ).value
        )
    assert [site.worst_case_risk for site in version.sites] == pytest.approx(risks, rel=1e-9)
    assert version.worst_case_risk == pytest.approx(np.mean(risks), rel=1e-9)
    assert version.worst_case_risk > version.objective == outcome.certificate.upper
    assert version.error_interval is not None and version.error_interval.risk == version.worst_case_risk
    report = model_report(version, works.context.store.runs.get_run(version.run_id), [])
    assert "minimised is the mean loss with the site weights, without a ball" in report_page(report)
    (summary,) = works.context.registry.versions("no-ball")
    assert summary.worst_case_risk == version.worst_case_risk


def test_classes_are_told_with_another_loss_from_the_same_rows(works: Any, rest: Any) -> None:
    spec = {"loss": "logistic", "radius": {"rule": "fixed", "value": 1e-3}}
    _, _, version = trained(works, "leak-told", spec=spec, max_rounds=12, gates={"max_gap": None, "min_f1": 0.7})
    assert version.task == "classification" and version.f1 is not None and version.mae is None
    status, answer = rest("POST", "/v1/models/leak-told/diagnose", {"sample": fresh_sample(1e-2)})
    assert status == 200 and answer["diagnoses"][0]["fault_class"] == "leak"
    status, answer = rest("POST", "/v1/models/leak-told/estimate", {"sample": fresh_sample()})
    assert status == 409 and "/v1/models/leak-told/diagnose" in answer["detail"]


def test_what_a_site_sends_of_a_target_is_of_model_size(works: Any) -> None:
    door, kind = works.doors["plant-1"], works.asset_type

    def ask(**changes: Any) -> SiteUpdate | SiteRefusal:
        task = {
            "kind": "evaluate", "site_id": "plant-1", "run_id": "c" * 32, "round": 0, "method": "level-bundle",
            "asset_type": kind.name, "contract": kind.fingerprint, "spec": TrainingSpec.model_validate(PINBALL),
            "arrays": {"weights": np.zeros((1, 15)), "interval": np.array([-1.0, 1.0])},
        }
        answer = decode(door.answer(encode(Task(**(task | changes)))), 1 << 20)
        assert isinstance(answer, SiteUpdate | SiteRefusal)
        return answer

    update = ask()
    assert isinstance(update, SiteUpdate)
    assert {array.shape for array in update.arrays.values()} == {(), (1,)}
    test = works.dataset("plant-1").test
    assert update.arrays["n_test"] == len(test) == update.arrays["covered"]
    assert 0.0 <= test.targets.sum() - update.arrays["absolute_error"] <= 2 / 500 + 1e-3 * test.targets.sum()
    no_interval = ask(arrays={"weights": np.zeros((1, 15))})
    assert isinstance(no_interval, SiteRefusal) and no_interval.code == "bad_task"


def test_a_plan_whose_loss_the_machine_has_nothing_for_is_refused_at_both_ends(works: Any) -> None:
    faults = builtin_asset_type("triplex-pump")
    works.context.store.asset_types.add(faults)
    with open_backend(works.context.settings) as backend, pytest.raises(BallastError) as refusal:
        plans.create(
            backend, Actor("test", Role.ADMINISTRATOR),
            Plan.model_validate({"name": "blind", "asset_type": faults.name, "spec": PINBALL, "reveal": "each site"}),
        )
    assert str(refusal.value) == (
        "plan blind: asset type triplex-pump has no target, which a regression loss needs, "
        "and the plan's loss is pinball"
    )
    blind = dataclasses.replace(works, asset_type=faults)
    with pytest.raises(BallastError, match="has no target"):
        blind.train(blind.plan("blind", spec=PINBALL, sites=()))


def test_a_site_refuses_a_target_that_its_machine_does_not_have(works: Any) -> None:
    faults = builtin_asset_type("triplex-pump")
    door = LocalRound("plant-1", works.sources["plant-1"], faults, POLICY, works.egress["plant-1"])
    task = Task(
        kind="join", site_id="plant-1", run_id="d" * 32, round=0, method="level-bundle", asset_type=faults.name,
        contract=faults.fingerprint, spec=TrainingSpec.model_validate(PINBALL),
    )
    answer = decode(door.answer(encode(task)), 1 << 20)
    assert isinstance(answer, SiteRefusal) and answer.code == "no_labels"
