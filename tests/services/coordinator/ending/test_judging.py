"""What is asked at the end of a run, how often, of whom, and whose answers count then."""

from __future__ import annotations

import asyncio
import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from models.methods.catalogue import METHODS
from services.contracts.evaluation.scores import REGRESSION_SUMS
from services.contracts.history.run import Run
from services.contracts.problems.noise import NoiseSpec
from services.contracts.problems.training_spec import TrainingSpec
from services.coordinator.round_loop import summed_rounds
from services.coordinator.run_state.evaluation import interval_ends
from services.coordinator.run_state.training_state import Training
from services.site_agent.answers.local_scores import calibration_counts
from services.site_agent.answers.local_solve import head_risks, site_problems
from tests.services.coordinator.fake_ports import RIG, FakeWorks

LIAR, ROWS = "plant-4", 10.0
HINGE = TrainingSpec.model_validate({"radius": {"rule": "fixed", "value": 0.02}})
HUBER = TrainingSpec.model_validate({"loss": {"name": "huber"}, "radius": {"rule": "fixed", "value": 0.02}})
ON_SUMS = {"reveal": "sums", "method": "cohort-bundle", "parameters": {"questions": 2}}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summed_rounds, "RETRY_SECONDS", 0.0)


def trained_on(works: FakeWorks, **plan: Any) -> tuple[Run, Any]:
    run = works.run(min_sites=3, max_rounds=3, **plan)
    trained = works.train(run)
    return works.store.get_run(run.run_id), trained


def of_a_target(run: Run) -> Run:
    """The run with a loss of a target, so that the plants are asked for an interval's coverage."""
    return run.model_copy(update={"plan": run.plan.model_copy(update={"spec": HUBER})})


class Gauges:
    """Plants that tell sums of a regression, and the risks that their cuts are of; ``factors`` by site and time."""

    def __init__(self, works: FakeWorks, factors: dict[tuple[str, int], float] | None = None) -> None:
        self.works, self.factors = works, factors or {}
        self.asked: dict[str, list[Any]] = {site: [] for site in works.plants}
        for site, plant in works.plants.items():
            plant.falsify = partial(self.answer, site)

    def answer(self, site: str, task: Any, arrays: Any) -> Any:
        plant = self.works.plants[site]
        if "calibration" in task.arrays:
            weights, targets = task.arrays["weights"], plant.classes.astype(float)
            return calibration_counts(weights, plant.features, plant.features, targets, "regression")
        if "interval" not in task.arrays:
            return arrays
        seen = self.asked[site]
        seen.append(task.arrays["interval"])
        heads = site_problems(HINGE, plant.features, plant.classes, RIG)
        risk = head_risks(task.arrays["weights"], heads) * self.factors.get((site, len(seen)), 1.0)
        sums = dict.fromkeys(REGRESSION_SUMS, 1.0) | {
            "n_test": ROWS, "target_squares": 3.0, "target_sum": 5.0, "covered": ROWS if len(seen) == 1 else 9.0,
        }
        return {"risk": risk, "loss": np.array(0.1)} | {name: np.array(value) for name, value in sums.items()}


def evaluated(works: FakeWorks, run: Run, trained: Any, bound: float = math.inf) -> Any:
    return asyncio.run(works.coordinator().evaluate(run, trained.weights, bound))


def test_the_coverage_is_of_the_interval_that_follows_from_the_risk(works: FakeWorks) -> None:
    run, trained = trained_on(works)
    run, gauges = of_a_target(run), Gauges(works)
    found = evaluated(works, run, trained, 7.0)
    assert found.worst_case_risk == pytest.approx(np.mean([*found.risk.values()])) and found.convicted == ()
    wide, narrow = gauges.asked["plant-1"]
    assert wide[1] == np.finfo(np.float64).max, "nothing is known of the risk when it is asked for"
    np.testing.assert_array_equal(narrow, interval_ends(run.plan, found.worst_case_risk))
    assert {each["covered"] for each in found.sums.values()} == {9.0} and found.all_sums["covered"] == 36.0


def test_who_tells_another_risk_the_second_time_counts_no_more(works: FakeWorks) -> None:
    run, trained = trained_on(works)
    Gauges(works, {(LIAR, 2): 1.01})
    found = evaluated(works, of_a_target(run), trained)
    assert found.sums.keys() == {"plant-1", "plant-2", "plant-3"} and found.convicted == ()
    told = next(each for each in found.answers if each.site_id == LIAR)
    assert (told.status, told.code) == ("rejected", "implausible") and "another risk the second time" in told.reason


def test_who_is_convicted_at_first_is_not_heard_the_second_time_and_the_bound_stands_for_the_risk(
    works: FakeWorks,
) -> None:
    run, trained = trained_on(works)
    run, gauges = of_a_target(run), Gauges(works, {(LIAR, 1): 0.5, (LIAR, 2): 0.5})
    found = evaluated(works, run, trained, 0.75)
    assert [each.site_id for each in found.convicted] == [LIAR] and found.worst_case_risk == 0.75
    assert found.sums.keys() == found.risk.keys() == {"plant-1", "plant-2", "plant-3"}
    np.testing.assert_array_equal(gauges.asked["plant-1"][1], interval_ends(run.plan, 0.75))


def test_on_sums_no_exchange_of_the_end_has_the_number_of_another(works: FakeWorks) -> None:
    """By its number a plant tells one exchange from another."""
    run, trained = trained_on(works, **ON_SUMS)
    sites = [site.model_copy(update={"own_scores": False}) for site in run.sites]
    run = of_a_target(run.model_copy(update={"sites": tuple(sites)}))
    Gauges(works)
    found = evaluated(works, run, trained)
    assert found.convicted == () and found.all_sums["n_test"] == 4 * ROWS and found.sums == {}
    asyncio.run(works.coordinator().calibrate(run, trained.weights))
    masked = [task.round for task in works.plants["plant-1"].asked if task.kind == "evaluate"]
    assert masked == [run.rounds + 1, run.rounds + 2, run.rounds + 3]


def test_on_sums_the_counts_of_all_are_of_those_too_that_keep_their_own(works: FakeWorks) -> None:
    run, trained = trained_on(works, **ON_SUMS)
    keeps = run.sites[0].model_copy(update={"own_scores": False})
    run = run.model_copy(update={"sites": (keeps, *run.sites[1:])})
    found = evaluated(works, run, trained)
    assert found.confusion.keys() == {"plant-2", "plant-3", "plant-4"} and found.convicted == ()
    assert found.all_confusion.sum() == 160.0


@pytest.mark.parametrize("keep", [0, 1])
def test_on_sums_a_risk_below_what_the_rounds_prove_is_not_believed(
    works: FakeWorks, caplog: pytest.LogCaptureFixture, keep: int
) -> None:
    """The interval that is asked about follows from it; who lied is not known, whether all tell their own or not."""
    run, trained = trained_on(works, **ON_SUMS)
    sites = [site.model_copy(update={"own_scores": place >= keep}) for place, site in enumerate(run.sites)]
    run = of_a_target(run.model_copy(update={"sites": tuple(sites)}))
    honest = evaluated(works, run, trained, 0.75) if Gauges(works) else None
    assert honest.worst_case_risk < 0.75 and "not believed" not in caplog.text
    gauges = Gauges(works, {(LIAR, time): 0.01 for time in range(1, 9)})
    found = evaluated(works, run, trained, 0.75)
    assert found.worst_case_risk == 0.75 and found.convicted == ()
    assert "the risk of cohort-1 at the end is not believed" in caplog.text
    np.testing.assert_array_equal(gauges.asked["plant-1"][-1], interval_ends(run.plan, 0.75))


def test_noisy_planes_and_cuts_of_another_risk_convict_no_sum_at_the_end(
    works: FakeWorks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A noisy plane may lie above the risk, and a method that is not robust told of another risk in its rounds."""
    run, trained = trained_on(works, **ON_SUMS)
    doubted = dict.fromkeys(["cohort-1"], "a plane above it")
    monkeypatch.setattr(Training, "false_sums", lambda at, weights, risks: doubted)
    assert evaluated(works, run, trained, 0.75).worst_case_risk == 0.75
    plan = run.plan
    for changes in ({"noise": NoiseSpec(epsilon=1.0)}, {"method": "fedavg", "parameters": {}}):
        told = run.model_copy(update={"plan": plan.model_copy(update=changes)})
        found = evaluated(works, told, trained, 0.75)
        assert found.worst_case_risk == pytest.approx(np.mean([*found.risk.values()]))


@pytest.mark.parametrize("method", [name for name, each in METHODS.items() if each.on_sums])
@pytest.mark.parametrize("keeps", [False, True])
def test_on_sums_honest_risks_are_believed(
    works: FakeWorks, caplog: pytest.LogCaptureFixture, method: str, keeps: bool
) -> None:
    smooth = METHODS[method].needs_smooth_loss
    spec = {"radius": {"rule": "fixed", "value": 0.02}, "loss": "logistic" if smooth else "hinge"}
    run, trained = trained_on(works, reveal="sums", method=method, spec=spec)
    sites = [site.model_copy(update={"own_scores": not keeps}) for site in run.sites]
    run = run.model_copy(update={"sites": tuple(sites)})
    for shift in (0.0, 1e-3, 1.0):
        trained.weights[0, 0] += shift
        assert math.isfinite(evaluated(works, run, trained).worst_case_risk)
    assert "not believed" not in caplog.text


def test_where_each_site_is_seen_each_is_asked_whatever_it_keeps_on_sums(works: FakeWorks) -> None:
    run, trained = trained_on(works)
    keeps = run.sites[0].model_copy(update={"own_scores": False})
    found = evaluated(works, run.model_copy(update={"sites": (keeps, *run.sites[1:])}), trained)
    assert len(found.confusion) == 4 and math.isfinite(found.worst_case_risk)


def test_on_sums_a_plant_whose_key_is_gone_leaves_what_the_others_tell_of_themselves(works: FakeWorks) -> None:
    run, trained = trained_on(works, **ON_SUMS)
    coordinator = works.coordinator()
    keys: Any = coordinator._parts.keys
    del keys[LIAR]
    found = asyncio.run(coordinator.evaluate(run, trained.weights, 0.75))
    assert found.confusion.keys() == {"plant-1", "plant-2", "plant-3"} and found.worst_case_risk == 0.75


def test_a_plant_that_refuses_for_its_own_reasons_is_none_of_before(works: FakeWorks) -> None:
    run, trained = trained_on(works)
    Gauges(works)
    refusing = works.plants[LIAR]
    refusing.behave = lambda task: refusing.refusal_of(task, "too_few_samples") if task.kind == "evaluate" else None
    asyncio.run(works.coordinator().calibrate(of_a_target(run), trained.weights))
    grids = [float(task.arrays["calibration"]) for task in works.plants["plant-1"].asked if task.kind == "evaluate"]
    assert grids == [2.0], "asked once, on the grid by the estimate"
