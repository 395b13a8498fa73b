"""What "auto" does by itself: the loss of several classes, and a run whose plants have too few rows to tune by."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from services.contracts.machines.asset_type import AssetType
from services.contracts.plans.overrides import tuning_alone
from services.contracts.plans.plan_problem import grid_of, with_automatic_loss
from services.contracts.problems.tuning import TuningSpec
from services.contracts.wire.messages import Task
from services.coordinator.beginning.chosen_terms import earlier_choice
from services.coordinator.run_state.run_errors import NothingCountedError, TooFewSitesError, TuningBudgetError
from services.reporting.tuning_section import tuning_account, tuning_rows
from tests.services.coordinator import fake_ports
from tests.services.coordinator.automatic import GRADES, plan, tune_tasks, tuned, with_faults
from tests.services.coordinator.fake_ports import RIG, FakePlant, FakeWorks


def small(works: FakeWorks) -> None:
    def refuses(plant: FakePlant, task: Task) -> bytes | None:
        return plant.refusal_of(task, "too_few_samples") if task.kind == "tune" else None

    for plant in works.plants.values():
        plant.behave = partial(refuses, plant)


@pytest.mark.parametrize("reveal", ["sums", "each site"])
def test_plants_too_small_to_tune_by_are_trained_on_with_the_plans_own_terms(works: FakeWorks, reveal: str) -> None:
    small(works)
    run = tuned(works, works.run(tuning="auto", reveal=reveal))
    curve = run.plan.tuned
    assert curve is not None and "untuned" in curve.why and "too few rows for 3 folds" in curve.why
    assert "plant-" not in tuning_account(curve), "a report is shown to who sees pseudonyms"
    assert (curve.terms.radius, curve.terms.lift, curve.rounds) == (1.0, None, 1)
    assert all(each.score is None for each in curve.candidates) and len(tuning_rows(curve)) == 12
    assert run.plan.spec.radius.value == pytest.approx(0.02) and run.plan.spec.lift is None
    trained = asyncio.run(works.coordinator().train(run))
    assert trained.certificate.gap <= 1e-3


def uncounted(works: FakeWorks) -> None:
    """Plants of which none has rows enough of a class: counts are without it."""
    for plant in works.plants.values():
        plant.falsify = lambda task, arrays: {
            name: 0.0 * each if name.startswith("score") else each for name, each in arrays.items()
        }


@pytest.mark.parametrize("reveal", ["sums", "each site"])
def test_plants_that_count_no_class_are_trained_on_with_the_plans_own_terms(works: FakeWorks, reveal: str) -> None:
    uncounted(works)
    run = tuned(works, works.run(tuning="auto", reveal=reveal))
    curve = run.plan.tuned
    assert curve is not None and "untuned: no plant has rows enough of a class" in curve.why
    assert (curve.terms.radius, curve.terms.lift) == (1.0, None) and curve.rounds > 1 and curve.bytes_sent > 0
    with pytest.raises(NothingCountedError, match="too few rows of a class in a fold"):
        tuned(works, works.run(tuning={"radius": [1.0, 10.0]}, reveal=reveal))


def test_who_asks_for_a_grid_or_for_a_tuning_alone_is_told_that_rows_are_too_few(works: FakeWorks) -> None:
    small(works)
    with pytest.raises(TooFewSitesError, match="fewer samples than its policy asks for"):
        tuned(works, works.run(tuning={"radius": [1.0, 10.0]}))
    run = works.run(tuning="auto")
    alone = works.store.change(run.run_id, plan=tuning_alone(run.plan))
    with pytest.raises(TooFewSitesError, match="fewer samples than its policy asks for"):
        tuned(works, alone)


def test_trainings_that_are_too_short_to_pay_for_a_tuning_take_the_plans_own_terms(works: FakeWorks) -> None:
    run = tuned(works, works.run(tuning="auto", reveal="each site", method="level-bundle", max_rounds=2))
    curve = run.plan.tuned
    assert curve is not None and "untuned: trainings of the plan are so short" in curve.why
    assert (curve.terms.radius, curve.terms.lift, curve.rounds, curve.bytes_sent) == (1.0, None, 0, 0)
    assert not any(task.kind == "tune" for task in works.plants["plant-1"].asked)
    assert asyncio.run(works.coordinator().train(run)).rounds == 2


@pytest.mark.parametrize(("share", "loss"), [(0.5, "hinge"), (0.05, "logistic")])
def test_after_such_a_training_an_earlier_choice_is_taken_however_often_it_was(
    works: FakeWorks, share: float, loss: str
) -> None:
    with_faults(works, share)
    terms = {"tuning": "auto", "reveal": "each site", "method": "level-bundle"}
    first = tuned(works, works.run(**terms))
    chosen = first.plan.tuned
    assert chosen is not None and chosen.rounds > 1
    last = first
    for _ in range(TuningSpec().every + 1):  # in the last of these weeks a tuning is due, and not to be had
        works.store.change(last.run_id, status="completed", rounds=2)
        last = tuned(works, works.run(**terms))
        assert last.plan.tuned == chosen.model_copy(update={"reused_from": first.run_id})
    assert last.plan.spec.radius == first.plan.spec.radius and last.plan.spec.lift == first.plan.spec.lift
    assert last.plan.spec.loss.name == first.plan.spec.loss.name == loss and len(tune_tasks(works, last)) == 0


def test_a_training_after_a_tuning_alone_takes_its_loss_and_asks_nothing(works: FakeWorks) -> None:
    with_faults(works, 0.05)
    asked = works.run(tuning="auto", reveal="each site")
    alone = tuned(works, works.store.change(asked.run_id, plan=tuning_alone(asked.plan)))
    works.store.change(alone.run_id, status="completed")
    run = tuned(works, works.run(tuning="auto", reveal="each site"))
    assert run.plan.tuned is not None and run.plan.tuned.reused_from == alone.run_id
    assert run.plan.spec.loss.name == alone.plan.spec.loss.name == "logistic" and not tune_tasks(works, run)


def test_a_choice_that_is_due_is_taken_only_where_it_may_be_however_often(works: FakeWorks) -> None:
    asked = works.run(tuning="auto", reveal="each site", method="level-bundle")
    weeks = [tuned(works, asked)] * TuningSpec().every
    assert earlier_choice(asked.plan, weeks[1:], weeks[0]) is not None
    assert earlier_choice(asked.plan, weeks, weeks[0]) is None
    assert earlier_choice(asked.plan, weeks, weeks[0], however_often=True) is not None


def test_who_asks_for_a_grid_or_for_a_tuning_alone_is_told_what_it_would_cost(works: FakeWorks) -> None:
    short = {"reveal": "each site", "method": "level-bundle", "max_rounds": 2}
    with pytest.raises(TuningBudgetError, match="too small for its grid"):
        tuned(works, works.run(tuning={"radius": [0.1, 0.3, 1.0, 3.0, 10.0], "budget": 1.0}, **short))
    run = works.run(tuning="auto", **short)
    with pytest.raises(TuningBudgetError, match="6 rounds and"):
        tuned(works, works.store.change(run.run_id, plan=tuning_alone(run.plan)))


def test_auto_learns_several_classes_by_the_logistic_loss() -> None:
    before = plan()
    found = with_automatic_loss(before, GRADES)
    assert found.spec.loss.name == "logistic" and before.spec.loss.name == "hinge"
    assert found.model_copy(update={"spec": before.spec}) == before, "nothing else changes"
    in_l1 = plan(spec={"loss": {"name": "logistic"}, "transport_norm": "l1"})
    factors = [sorted({each.radius for each in grid_of(each, GRADES).candidates}) for each in (before, in_l1, found)]
    assert factors[:2] == [[0.3, 1.0, 3.0, 10.0], [0.1, 0.3, 1.0, 3.0]], "log odds are larger than margins"
    assert factors[2] == [1.0, 3.0], "squares tell lifts apart, and radii hardly"


def test_the_plants_tune_and_train_several_classes_by_it_and_the_run_keeps_it(
    works: FakeWorks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_ports, "RIG", GRADES)
    run = tuned(works, works.run(tuning="auto"))
    trained = asyncio.run(works.coordinator().train(run))
    assert trained.certificate.gap <= 1e-3 and trained.weights.shape[0] == 3
    asked = {(task.kind, task.spec.loss.name) for task in works.plants["plant-1"].asked if task.kind != "prepare"}
    assert asked == {("join", "hinge"), ("tune", "logistic"), ("round", "logistic")}
    assert works.store.get_run(run.run_id).plan.spec.loss.name == "logistic"


@pytest.mark.parametrize(
    ("changes", "asset_type"),
    [
        ({}, RIG), ({"tuning": None}, GRADES), ({"tuning": {"radius": [1.0, 3.0]}}, GRADES),
        ({"spec": {"loss": "smooth_hinge"}}, GRADES), ({"spec": {"support": "sensor_ranges"}}, GRADES),
        ({"spec": {"multi_class": "crammer_singer"}}, GRADES),
    ],
)
def test_the_loss_stays_where_two_classes_or_the_plan_itself_say_what_is_meant(
    changes: dict[str, Any], asset_type: AssetType
) -> None:
    given = plan(**changes)
    assert with_automatic_loss(given, asset_type) is given
