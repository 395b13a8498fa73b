"""Random Fourier features in "auto" of several classes: how many, who is asked for them, and a plant that refuses."""

from __future__ import annotations

import asyncio
import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from models.tuning.automatic import WAVES, automatic_lifts, automatic_waves, wave_bandwidth
from services.contracts.plans.plan import Plan
from services.contracts.plans.plan_problem import grid_of, with_automatic_loss
from services.contracts.problems.lift import FourierLiftSpec
from services.contracts.wire.messages import Task
from services.coordinator.run_state.run_errors import LiftsRefusedError
from services.site_agent.rules.policy import SitePolicy
from tests.services.coordinator import fake_ports
from tests.services.coordinator.automatic import GRADES, plan, tune_tasks, tuned
from tests.services.coordinator.fake_ports import RIG, FakePlant, FakeWorks


def _logistic(**changes: Any) -> Plan:
    return with_automatic_loss(plan(**changes), GRADES)


SIXTY_FOUR = FourierLiftSpec(components=64, bandwidth=0.2 * math.sqrt(2))


def test_there_are_no_more_waves_than_rows_and_all_steps_are_within_what_a_plant_tells() -> None:
    expected = {0: 0, 63: 0, 64: 64, 127: 64, 128: 128, 255: 128, 256: 256, 10**6: 256}
    assert {rows: automatic_waves(rows) for rows in expected} == expected
    for each in WAVES:  # a federation that grew to so many rows has asked for all before
        assert sum(step for step in WAVES if step <= each) <= SitePolicy().lift_limit * each
    assert wave_bandwidth(16) == pytest.approx(0.8)


def test_they_stand_beside_the_other_lifts_of_several_classes_alone() -> None:
    assert automatic_lifts(3, waves=True) == ("none", "spline", "products", "waves")
    assert automatic_lifts(22, waves=True) == ("none", "spline", "waves")
    assert automatic_lifts(6, np.array([1000.0, 1000.0, 20.0]), waves=True) == ("none", "spline", "waves")
    assert automatic_lifts(6, np.array([1000.0, 1000.0, 60.0]), waves=True) == ("products beside splines",)
    tried = grid_of(_logistic(), GRADES, None, 100).lifts
    assert tried[3:] == (SIXTY_FOUR,) and grid_of(_logistic(), GRADES, None, 63).lifts == tried[:3]
    assert grid_of(_logistic(), RIG, None, 1000).lifts == grid_of(_logistic(), RIG).lifts == tried[:3], "two classes"
    in_l1 = _logistic(spec={"transport_norm": "l1"})
    assert grid_of(in_l1, GRADES, None, 1000).lifts == grid_of(in_l1, GRADES).lifts, "no race by squares"
    with_own = _logistic(spec={"lift": SIXTY_FOUR})
    assert grid_of(with_own, GRADES, None, 100).lifts == (SIXTY_FOUR, *tried[1:3]), "each once"


def checkered(works: FakeWorks, monkeypatch: pytest.MonkeyPatch, **counts: int) -> None:
    """Three classes on a board of fields, which no curve of a sensor and no product tells apart."""
    monkeypatch.setattr(fake_ports, "RIG", GRADES)
    for plant in works.plants.values():
        plant.count = counts.get(plant.site_id.replace("-", "_"), 130)
        plant.features = np.random.default_rng([7, plant.number]).random((plant.count, 2))
        column, row = np.floor(plant.features.T * 3.0).astype(int)
        plant.classes = (column + 2 * row) % 3


def waves_asked(task: Task) -> bool:
    """Whether a task names a drawn lift."""
    return any(isinstance(task.tuning.lifts[part.lift], FourierLiftSpec) for part in task.tuning.parts)


@pytest.mark.parametrize(("reveal", "least", "waves"), [("sums", 130, 128), ("each site", 70, 64)])
def test_classes_in_clouds_are_told_apart_by_as_many_waves_as_the_smallest_plant_has_rows_for(
    works: FakeWorks, monkeypatch: pytest.MonkeyPatch, reveal: str, least: int, waves: int
) -> None:
    checkered(works, monkeypatch, plant_2=least)
    run = tuned(works, works.run(tuning="auto", reveal=reveal))
    lift, curve = run.plan.spec.lift, run.plan.tuned
    assert isinstance(lift, FourierLiftSpec) and lift.components == waves and lift.fingerprint
    assert curve is not None and any(map(waves_asked, tune_tasks(works, run)))
    best = dict[str, float]()
    for each in curve.candidates:
        kind = each.lift.kind if each.lift else "none"
        best[kind] = max(best.get(kind, 0.0), each.score or 0.0)
    assert set(best) == {"none", "spline", "products", "fourier"}
    assert best["fourier"] > 0.15 + max(best["none"], best["spline"], best["products"])


@pytest.mark.parametrize("reveal", ["sums", "each site"])
def test_a_plant_that_answers_under_no_more_waves_is_tuned_without_them(
    works: FakeWorks, monkeypatch: pytest.MonkeyPatch, reveal: str
) -> None:
    def refuses(plant: FakePlant, task: Task) -> bytes | None:
        refused = task.kind == "tune" and hasattr(task.tuning, "parts") and waves_asked(task)
        return plant.refusal_of(task, "exposure_limit") if refused else None

    checkered(works, monkeypatch)
    strict = works.plants["plant-2"]
    strict.behave = partial(refuses, strict)
    run = tuned(works, works.run(tuning="auto", reveal=reveal))
    asked, curve = tune_tasks(works, run), run.plan.tuned
    assert "; without random Fourier features, for a plant may answer under no more of them" in curve.why
    assert "plant-" not in curve.why, "a report is shown to who sees pseudonyms"
    assert sum(map(waves_asked, asked)) == 1, "asked once, and refused"
    assert {each.lift and each.lift.kind for each in curve.candidates} == {None, "spline", "products"}
    assert any(each.score for each in curve.candidates), "it was tuned"
    assert curve.rounds == len(asked) <= 3 * curve.reference_rounds, "what was refused is of the budget"
    assert [task.round for task in asked] == sorted({task.round for task in asked}), "no number is asked twice"
    trained = asyncio.run(works.coordinator().train(run))
    assert trained.certificate.gap <= 1e-3


def test_a_plant_that_answers_under_no_lift_at_all_ends_the_run(
    works: FakeWorks, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkered(works, monkeypatch)
    strict = works.plants["plant-1"]
    strict.behave = lambda task: strict.refusal_of(task, "exposure_limit") if task.kind == "tune" else None
    with pytest.raises(LiftsRefusedError, match="plant-1"):
        tuned(works, works.run(tuning="auto"))
    assert len(tune_tasks(works, next(iter(works.store.runs.values())))) <= 3, "asked with waves, and once without"
