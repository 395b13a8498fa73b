"""A plant whose policy lets it answer under no lift: a tuning that tried some by itself begins again without them."""

from __future__ import annotations

import asyncio
from functools import partial

import numpy as np
import pytest

from services.contracts.plans.plan_problem import grid_of
from services.contracts.problems.lift import SplineLiftSpec
from services.contracts.wire.messages import Task
from services.coordinator.run_state.run_errors import LiftsRefusedError, TooFewRowsToTuneError
from tests.services.coordinator import fake_ports
from tests.services.coordinator.automatic import GRADES, plan, tune_tasks, tuned, with_faults
from tests.services.coordinator.fake_ports import RIG, FakePlant, FakeWorks

OWN = SplineLiftSpec(kind="spline", segments=2)


def lifts_of(task: Task) -> set[str]:
    """Kinds of the lifts under which a task asks."""
    named = [] if task.spec.lift is None else [task.spec.lift]
    if task.kind == "tune" and hasattr(task.tuning, "parts"):
        named += [lift for part in task.tuning.parts if (lift := task.tuning.lifts[part.lift]) is not None]
    return {lift.kind for lift in named}


def strict(works: FakeWorks) -> None:
    """One plant answers under no lift, as with ``allow_unaccounted = false``."""
    def refuses(plant: FakePlant, task: Task) -> bytes | None:
        return plant.refusal_of(task, "exposure_limit") if lifts_of(task) else None

    plant = works.plants["plant-2"]
    plant.behave = partial(refuses, plant)


@pytest.mark.parametrize("reveal", ["sums", "each site"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_run_is_tuned_and_trained_in_planes_where_a_plant_answers_under_no_lift(
    works: FakeWorks, monkeypatch: pytest.MonkeyPatch, reveal: str, classes: int
) -> None:
    strict(works)
    if classes == 3:
        monkeypatch.setattr(fake_ports, "RIG", GRADES)
        for plant in works.plants.values():
            plant.classes = np.arange(plant.count) % 3
    run = tuned(works, works.run(tuning="auto", reveal=reveal))
    asked, curve = tune_tasks(works, run), run.plan.tuned
    assert curve is not None
    assert curve.why.endswith(
        "; without lifts other than the plan's own, for a plant's policy lets it answer under none of them"
    )
    assert "plant-" not in curve.why, "a report is shown to who sees pseudonyms"
    assert sum(bool(lifts_of(task)) for task in asked) == 1, "asked once, and refused"
    assert {each.lift for each in curve.candidates} == {None} and len(curve.candidates) == (2 if classes == 3 else 4)
    assert any(each.score for each in curve.candidates), "radii are tuned all the same"
    assert curve.rounds == len(asked) <= 3 * curve.reference_rounds, "what was refused is of the budget"
    assert [task.round for task in asked] == sorted({task.round for task in asked}), "no number is asked twice"
    trained = asyncio.run(works.coordinator().train(run))
    assert trained.certificate.gap <= 1e-3 and run.plan.spec.lift is None


def test_rare_faults_are_then_learnt_without_products_and_nothing_says_with(works: FakeWorks) -> None:
    with_faults(works, 0.06, 60)
    strict(works)
    curve = tuned(works, works.run(tuning="auto")).plan.tuned
    assert curve is not None and {each.lift for each in curve.candidates} == {None}
    assert "by the logistic loss and few terms" in curve.why and "beside splines" not in curve.why
    assert {each.radius for each in curve.candidates} == {0.1, 0.3, 1.0}


def test_lifts_that_a_plan_states_are_not_taken_away(works: FakeWorks) -> None:
    strict(works)
    stated = {"radius": [1.0, 3.0], "lifts": ["none", {"kind": "spline", "segments": 2}]}
    with pytest.raises(LiftsRefusedError, match="plant-2"):
        tuned(works, works.run(tuning=stated))
    assert grid_of(plan(spec={"lift": OWN}), RIG, lifts=False).lifts == (OWN,), "its own stays in the grid"


def test_too_few_rows_are_told_before_lifts(works: FakeWorks) -> None:
    strict(works)
    small = works.plants["plant-1"]
    small.behave = lambda task: small.refusal_of(task, "too_few_samples") if task.kind == "tune" else None
    with pytest.raises(TooFewRowsToTuneError):
        tuned(works, works.run(tuning={"radius": [1.0, 3.0], "lifts": ["none", {"kind": "spline", "segments": 2}]}))


def test_a_plant_that_answers_nothing_of_a_tuning_ends_the_run(works: FakeWorks) -> None:
    plant = works.plants["plant-1"]
    plant.behave = lambda task: plant.refusal_of(task, "exposure_limit") if task.kind == "tune" else None
    run = works.run(tuning="auto", reveal="each site")
    with pytest.raises(LiftsRefusedError, match="plant-1"):
        tuned(works, run)
    asked = [lifts_of(task) for task in tune_tasks(works, run)]
    assert asked == [set()], "its classes are counted first"
