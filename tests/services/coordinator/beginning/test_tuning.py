"""Tuning by the coordinator over fake plants: its choice, its cost, what it sees, and what is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from services.contracts.errors import InvalidInputError
from services.contracts.history.run import Run
from services.contracts.machines.asset_type import AssetType, Feature
from services.contracts.plans.overrides import tuning_alone
from services.contracts.plans.plan import Plan
from services.contracts.plans.plan_problem import check_problem, grid_of
from services.contracts.problems.tuning import settled
from services.contracts.problems.tuning_curve import TuningCurve
from services.coordinator.run_state.run_errors import TooFewSitesError
from tests.services.coordinator.fake_ports import RIG, FakeWorks

GRID = {"radius": [1.0, 10.0], "label_flip_cost": [1.0, 4.0], "lifts": ["none", {"kind": "spline", "segments": 3}],
        "folds": 4}

BRIEF = {"radius": [3.0, 10.0], "label_flip_cost": [4.0], "lifts": [{"kind": "spline", "segments": 3}], "folds": 2}
"""For tests of which choice is taken: whatever is chosen differs in every term from the plan's own."""


def tuned(works: FakeWorks, **changes: Any) -> Run:
    return of_run(works, works.run(**({"tuning": GRID} | changes)))


def tuned_alone(works: FakeWorks, **changes: Any) -> Run:
    run = works.run(**({"tuning": GRID} | changes))
    return completed(works, of_run(works, works.store.change(run.run_id, plan=tuning_alone(run.plan))))


def of_run(works: FakeWorks, run: Run) -> Run:
    async def whole() -> Run:
        coordinator = works.coordinator()
        return await coordinator.tune(await coordinator.join(run))

    return asyncio.run(whole())


def completed(works: FakeWorks, run: Run, **changes: Any) -> Run:
    return works.store.change(run.run_id, status="completed", **changes)


def curve_of(run: Run) -> TuningCurve:
    assert run.plan.tuned is not None
    return run.plan.tuned


@pytest.mark.parametrize("reveal", ["sums", "each site"])
def test_the_run_goes_on_with_the_chosen_terms(works: FakeWorks, reveal: str) -> None:
    run = tuned(works, reveal=reveal)
    curve, plan = curve_of(run), run.plan
    assert len(curve.candidates) == 8 and curve.terms.score is not None and curve.terms.folds == 4
    assert plan.spec.label_flip_cost == curve.terms.label_flip_cost
    assert plan.spec.radius.value == pytest.approx(0.02 * curve.terms.radius) and plan.spec.lift == curve.terms.lift
    assert {site.radius for site in run.sites} == {plan.spec.radius.value}
    assert run == works.store.get_run(run.run_id), "the choice is in the store"
    trained = asyncio.run(works.coordinator().train(run))
    assert trained.certificate.gap <= 1e-3
    sizes = {2 if each.lift is None else 6 for each in curve.candidates}
    assert sizes == {2, 6} and trained.weights.shape[1] == (3 if curve.terms.lift is None else 7)


@pytest.mark.parametrize("reveal", ["sums", "each site"])
def test_a_tuning_costs_no_more_than_its_budget_by_what_the_plants_were_asked(works: FakeWorks, reveal: str) -> None:
    run = tuned(works, reveal=reveal)
    curve = curve_of(run)
    asked = [task for task in works.plants["plant-1"].asked if task.kind == "tune"]
    down = sum(array.size for task in asked for array in task.arrays.values())
    assert len(asked) == curve.rounds <= curve.budget * curve.reference_rounds
    up = 0
    for task in asked:
        assert task.tuning is not None
        points = [array for name, array in task.arrays.items() if name.startswith("point")]
        up += sum(point.size + 3 for point in points) if points else 4 * len(task.tuning.parts)
    assert down + up == curve.numbers <= curve.budget * curve.reference_numbers
    assert curve.bytes_sent > 8 * down


@pytest.mark.parametrize("reveal", ["sums", "each site"])
def test_the_best_of_three_folds_is_by_one_score_of_a_candidate(works: FakeWorks, reveal: str) -> None:
    run = tuned(works, reveal=reveal, tuning={**GRID, "folds": 3, "rule": "best"})
    curve = curve_of(run)
    assert all(each.folds == 3 and each.standard_error is None for each in curve.candidates)
    asked = [task for task in works.plants["plant-1"].asked if task.kind == "tune"]
    scored = [task.tuning for task in asked if task.tuning is not None and task.tuning.scored]
    assert [(each.pooled, len(each.parts)) for each in scored] == [(True, 24)]
    down = sum(array.size for task in asked for array in task.arrays.values())
    cuts = [array for task in asked for name, array in task.arrays.items() if name.startswith("point")]
    assert down + sum(point.size + 3 for point in cuts) + 8 * 4 == curve.numbers, "eight scores of four counts"
    assert curve.terms.score == max(each.score or 0.0 for each in curve.candidates) > 0.75


def test_the_price_of_one_training_is_that_of_the_run_before(works: FakeWorks) -> None:
    assert curve_of(tuned(works, tuning=BRIEF)).reference_rounds == 12
    first = works.store.runs[next(iter(works.store.runs))]
    works.store.change(first.run_id, status="completed", rounds=17)
    assert curve_of(tuned(works, tuning=BRIEF)).reference_rounds == 17


def test_as_many_plants_as_the_plan_asks_for_are_enough(works: FakeWorks) -> None:
    run = works.run(min_sites=len(works.plants))
    assert len(asyncio.run(works.coordinator().join(run)).members) == len(works.plants)


def test_on_sums_no_plant_tells_a_score_or_a_cut_of_its_own(works: FakeWorks) -> None:
    run = tuned(works, reveal="sums")
    assert curve_of(run).rounds > 0
    for plant in works.plants.values():
        kinds = {task.kind for task in plant.asked if task.tuning is not None}
        assert kinds == {"tune"} and all(task.masking is not None for task in plant.asked if task.tuning is not None)


def test_runs_between_take_the_last_choice(works: FakeWorks) -> None:
    every = {**BRIEF, "every": 3}
    first = tuned(works, tuning=every)
    works.store.change(first.run_id, status="completed", rounds=9)
    before = len(works.plants["plant-1"].asked)
    second = tuned(works, tuning=every)
    assert curve_of(second).reused_from == first.run_id and second.plan.spec == first.plan.spec
    assert [task.kind for task in works.plants["plant-1"].asked[before:]] == ["join"]
    works.store.change(second.run_id, status="completed", rounds=9)
    third = tuned(works, tuning=every)
    assert curve_of(third).reused_from == first.run_id
    works.store.change(third.run_id, status="completed", rounds=9)
    assert not curve_of(tuned(works, tuning=every)).reused_from, "the fourth run tunes again"
    works.store.runs.popitem()
    assert not curve_of(tuned(works, tuning={**every, "seed": 1})).reused_from, "other terms are tuned anew"


def test_a_tuning_alone_is_that_of_the_next_training_and_of_no_more(works: FakeWorks) -> None:
    completed(works, tuned(works, tuning=BRIEF), rounds=17)
    alone = tuned_alone(works, tuning=BRIEF)
    assert not curve_of(alone).reused_from and curve_of(alone).reference_rounds == 17, "priced by a training"
    taker = completed(works, tuned(works, tuning=BRIEF), rounds=9)
    assert curve_of(taker).reused_from == alone.run_id and taker.plan.spec == alone.plan.spec
    assert [task.kind for task in works.plants["plant-1"].asked if task.run_id == taker.run_id] == ["join"]
    last = completed(works, tuned(works, tuning=BRIEF), rounds=9)
    assert not curve_of(last).reused_from, "it was the tuning of one training"


def test_a_tuning_alone_counts_for_as_many_trainings_as_the_plan_says(works: FakeWorks) -> None:
    every = {**BRIEF, "every": 2}
    completed(works, tuned(works, tuning=every), rounds=9)
    first, second = tuned_alone(works, tuning=every), tuned_alone(works, tuning=every)
    assert not curve_of(first).reused_from and not curve_of(second).reused_from, "who asks for a tuning gets one"
    for _ in range(2):
        assert curve_of(completed(works, tuned(works, tuning=every), rounds=9)).reused_from == second.run_id
    assert not curve_of(tuned(works, tuning=every)).reused_from
    completed(works, tuned_alone(works, tuning=every))
    assert not curve_of(tuned(works, tuning={**every, "seed": 1})).reused_from, "other terms are tuned anew"


@pytest.mark.parametrize("alone", [True, False])
def test_a_choice_by_the_rows_of_a_plant_that_is_gone_is_not_taken(works: FakeWorks, alone: bool) -> None:
    every = {**BRIEF, "every": 5}
    if alone:
        tuned_alone(works, tuning=every)
    else:
        completed(works, tuned(works, tuning=every), rounds=9)
    del works.plants["plant-2"]
    run = tuned(works, tuning=every)
    assert not curve_of(run).reused_from and "plant-2" not in {site.site_id for site in run.sites}


def test_a_choice_by_another_version_of_the_asset_type_is_not_taken(works: FakeWorks) -> None:
    """A lift of the features of before would fit those of now as little as their ranges."""
    every = {**BRIEF, "every": 5}
    first = completed(works, tuned(works, tuning=every), rounds=9)
    assert first.start is not None
    assert curve_of(completed(works, tuned(works, tuning=every), rounds=9)).reused_from == first.run_id
    works.store.change(first.run_id, start=first.start.model_copy(update={"contract": "f" * 64}))
    assert not curve_of(tuned(works, tuning=every)).reused_from


def test_a_coordinator_that_dies_in_a_tuning_leaves_nothing_and_tunes_again(works: FakeWorks) -> None:
    run = works.join(works.run(tuning=BRIEF))
    calls = 0

    def dying(task: Any) -> None:
        nonlocal calls
        calls += task.kind == "tune"
        if calls == 3:
            raise KeyboardInterrupt

    works.plants["plant-2"].behave = dying
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(works.coordinator().tune(run))
    assert works.store.get_run(run.run_id).plan.tuned is None
    works.plants["plant-2"].behave = lambda task: None
    again = asyncio.run(works.coordinator().tune(works.store.get_run(run.run_id)))
    assert curve_of(again).rounds > 3
    assert asyncio.run(works.coordinator().tune(again)) == again, "a tuned run is not tuned twice"


@pytest.mark.parametrize("reveal", ["sums", "each site"])
def test_a_coordinator_that_tunes_again_without_the_key_of_a_plant_names_it_at_once(
    works: FakeWorks, reveal: str
) -> None:
    run = works.join(works.run(tuning=BRIEF, reveal=reveal, absence_patience_seconds=1.0))
    del works.plants["plant-2"]
    with pytest.raises(TooFewSitesError, match="the key of plant-2 was taken away"):
        asyncio.run(works.coordinator().tune(run))


@pytest.mark.parametrize("reveal", ["sums", "each site"])
def test_a_plant_whose_policy_forbids_it_ends_the_run_with_one_line(works: FakeWorks, reveal: str) -> None:
    plant = works.plants["plant-3"]
    plant.behave = lambda task: plant.refusal_of(task, "message_not_allowed") if task.kind == "tune" else None
    with pytest.raises(TooFewSitesError, match="plant-3: the site's policy does not allow this message"):
        tuned(works, reveal=reveal, absence_patience_seconds=60.0)


WALLS = {"matrix": [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], "limits": [1.0, 0.0, 1.0, 0.0]}


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"tuning": {"radius": [2.0]}}, "two candidates at least to choose from, got 1"),
        ({"tuning": GRID, "reveal": "sums", "method": "fedavg"}, "methods that minimise the worst-case risk"),
        ({"tuning": GRID, "site_settings": {"plant-1": {"label_flip_cost": 2.0}}}, "leave them out of site_settings"),
        ({"tuning": {**GRID, "mixture_radius": [0.0, 0.2]}, "reveal": "sums"}, "needs the answer of each plant"),
        ({"tuning": GRID, "spec": {"radius": {"rule": "fixed", "value": 0.0}}}, "factors of a radius above 0"),
        ({"tuning": {"radius": [float(k) for k in range(1, 70)]}}, "at most 60 candidates, the grid has 69"),
        (
            {"tuning": {"lifts": ["none", {"kind": "spline", "segments": 4}]}, "spec": {"support": WALLS}},
            "a polytope speaks of the features themselves: leave the lifts out of the tuning",
        ),
    ],
)
def test_a_tuning_that_cannot_be_is_refused_with_a_line(changes: dict[str, Any], line: str) -> None:
    plan = Plan.model_validate({"name": "p", "asset_type": "rig", "reveal": "each site"} | changes)
    with pytest.raises(InvalidInputError, match=line):
        check_problem(plan, RIG)


@pytest.mark.parametrize(
    ("tuning", "line"),
    [
        ({"folds": 1}, "two folds at least, got 1"), ({"budget": 0.5}, "from 1 to 3 trainings, got a budget of 0.5"),
        ({"lifts": [{"kind": "deep"}]}, "the kind of a lift is"), ({"rule": "luck"}, "one-standard-error"),
        ("often", "auto"),
    ],
)
def test_a_table_without_meaning_is_no_plan(tuning: Any, line: str) -> None:
    with pytest.raises(ValidationError, match=line):
        Plan.model_validate({"name": "p", "asset_type": "rig", "tuning": tuning})


def measured(n_features: int) -> AssetType:
    features = tuple(Feature(name=f"s{number}", unit="1", low=0, high=1) for number in range(n_features))
    return RIG.model_copy(update={"features": features})


def test_auto_is_a_grid_that_is_fixed_and_a_plan_without_tuning_has_none() -> None:
    plan = Plan.model_validate({"name": "p", "asset_type": "rig", "tuning": "auto"})
    found = grid_of(plan, measured(3))
    assert [getattr(lift, "segments", None) for lift in found.lifts] == [None, 6, 1]
    assert found.sizes(3) == (3, 18, 9) and len(found.candidates) == 12
    assert len(grid_of(plan, measured(22)).lifts) == 2, "products of many features are too many numbers"
    spec = settled(plan.tuning)
    assert spec is not None and (spec.folds, spec.rule, spec.budget) == (3, "best", 3.0)
    assert Plan.model_validate({"name": "p", "asset_type": "rig"}).tuning is None
    check_problem(plan, RIG)
    assert np.isfinite([each.radius for each in found.candidates]).all()
