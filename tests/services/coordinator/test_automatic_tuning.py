"""What "auto" does by itself: the loss of several classes, and a run whose plants have too few rows to tune by."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import numpy as np
import pytest

from models.tuning.automatic import RARE_SHARE, automatic_lifts, is_rare
from services.contracts.asset_type import AssetType, FaultClass
from services.contracts.lift import FourierLiftSpec, ProductLiftSpec, SplineLiftSpec
from services.contracts.messages import Task
from services.contracts.overrides import tuning_alone
from services.contracts.plan import Plan
from services.contracts.plan_problem import asks_for_shares, grid_of, with_automatic_loss
from services.contracts.run import Run
from services.contracts.tuning import TuningSpec
from services.coordinator.training_state import NothingCountedError, TooFewSitesError, TuningBudgetError
from services.coordinator.tuning import earlier_choice
from services.reporting.tuning_section import tuning_account, tuning_rows
from tests.services.coordinator import fake_ports
from tests.services.coordinator.fake_ports import RIG, FakePlant, FakeWorks

GRADES = AssetType(
    name="rig", features=RIG.features,
    fault_classes=tuple(FaultClass(name=name, severity=k) for k, name in enumerate(("ok", "worn", "broken"))),
)


def small(works: FakeWorks) -> None:
    def refuses(plant: FakePlant, task: Task) -> bytes | None:
        return plant.refusal_of(task, "too_few_samples") if task.kind == "tune" else None

    for plant in works.plants.values():
        plant.behave = partial(refuses, plant)


def with_faults(works: FakeWorks, share: float, count: int = 40) -> None:
    """Plants of which so many of ``count`` rows are of the second class."""
    for plant in works.plants.values():
        plant.count = count
        plant.draw_rows()
        plant.classes = (np.arange(plant.count) < share * plant.count).astype(int)


def tune_tasks(works: FakeWorks, run: Run) -> list[Task]:
    asked = works.plants["plant-1"].asked
    return [task for task in asked if task.run_id == run.run_id and task.kind == "tune" and task.tuning is not None]


def tuned(works: FakeWorks, run: Run) -> Run:
    async def whole() -> Run:
        coordinator = works.coordinator()
        return await coordinator.tune(await coordinator.join(run))

    return asyncio.run(whole())


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


def plan(**changes: Any) -> Plan:
    return Plan.model_validate({"name": "p", "asset_type": "rig", "tuning": "auto"} | changes)


def test_auto_learns_several_classes_by_the_logistic_loss() -> None:
    before = plan()
    found = with_automatic_loss(before, GRADES)
    assert found.spec.loss.name == "logistic" and before.spec.loss.name == "hinge"
    assert found.model_copy(update={"spec": before.spec}) == before, "nothing else changes"
    factors = [sorted({each.radius for each in grid_of(each, 2).candidates}) for each in (before, found)]
    assert factors == [[0.3, 1.0, 3.0, 10.0], [0.1, 0.3, 1.0, 3.0]], "log odds are larger than margins"


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


@pytest.mark.parametrize("reveal", ["sums", "each site"])
@pytest.mark.parametrize(("share", "loss"), [(0.05, "logistic"), (0.1, "hinge")])
def test_auto_asks_once_how_rare_a_class_is_and_learns_rare_ones_by_the_logistic_loss(
    works: FakeWorks, reveal: str, share: float, loss: str
) -> None:
    with_faults(works, share)
    run = tuned(works, works.run(tuning="auto", reveal=reveal))
    asked, curve = tune_tasks(works, run), run.plan.tuned
    assert curve is not None
    assert [task.tuning.scored for task in asked[:2]] == [True, False] and asked[0].tuning.pooled
    assert not any(array.any() for array in asked[0].arrays.values()), "planes of zeros: counts and nothing more"
    assert {task.spec.loss.name for task in asked[1:]} == {loss} == {run.plan.spec.loss.name}
    why = "by the logistic loss and few terms, for a class has less than 8% of the rows"
    assert (why in curve.why) is (loss == "logistic")
    assert curve.rounds == len(asked) <= 3 * curve.reference_rounds, "what was counted is of the tuning's budget"
    assert sorted({each.radius for each in curve.candidates})[0] == (0.1 if loss == "logistic" else 0.3)
    trained = asyncio.run(works.coordinator().train(run))
    assert trained.certificate.gap <= 1e-3 and works.store.get_run(run.run_id).plan.spec.loss.name == loss


def test_a_class_is_rare_below_a_share_and_where_none_was_counted() -> None:
    assert is_rare(np.array([1000.0, 1000.0 * RARE_SHARE / (1.0 - RARE_SHARE) - 1.0]))
    assert not is_rare(np.array([1000.0, 1000.0 * RARE_SHARE / (1.0 - RARE_SHARE) + 1.0]))
    assert is_rare(np.array([40.0, 0.0])) and is_rare(np.zeros(2))


BESIDE = ProductLiftSpec(kind="products", features=(0, 1), segments=6)
"""Two sensors: 6 + 6 ramps and a product."""
SIX = SplineLiftSpec(kind="spline", segments=6)


@pytest.mark.parametrize("reveal", ["sums", "each site"])
@pytest.mark.parametrize(("count", "lifts"), [(60, 1), (40, 2)])  # 4 * 4 and 4 * 3 faults for 13 numbers
def test_enough_rare_faults_are_learnt_with_products_beside_splines_without_a_race_of_lifts(
    works: FakeWorks, reveal: str, count: int, lifts: int
) -> None:
    with_faults(works, 0.06, count)
    run = tuned(works, works.run(tuning="auto", reveal=reveal))
    curve = run.plan.tuned
    assert curve is not None and run.plan.spec.loss.name == "logistic"
    tried = {each.lift and each.lift.model_copy(update={"fingerprint": None}) for each in curve.candidates}
    assert tried == ({BESIDE} if lifts == 1 else {None, SIX})
    assert ("and products beside splines, for it has a row for each of their weights" in curve.why) is (lifts == 1)
    assert {each.radius for each in curve.candidates} == {0.1, 0.3, 1.0} and len(curve.candidates) == 3 * lifts
    assert curve.reference_rounds == 20 and run.plan.spec.lift == curve.terms.lift
    trained = asyncio.run(works.coordinator().train(run))
    assert trained.certificate.gap <= 1e-3 and trained.weights.shape[1] == (14 if lifts == 1 else trained.weights.size)


@pytest.mark.parametrize(("share", "radii"), [(0.06, 3), (0.3, 4)])
def test_several_classes_of_which_one_is_rare_are_tuned_as_two_are(
    works: FakeWorks, monkeypatch: pytest.MonkeyPatch, share: float, radii: int
) -> None:
    monkeypatch.setattr(fake_ports, "RIG", GRADES)
    for plant in works.plants.values():
        plant.classes = np.where(np.arange(40) < 40 * share, 2, plant.classes)
    run = tuned(works, works.run(tuning="auto"))
    asked, curve = tune_tasks(works, run), run.plan.tuned
    assert curve is not None and asked[0].tuning.pooled and not any(map(np.any, asked[0].arrays.values()))
    assert ("for a class has less than 8% of the rows" in curve.why) is (radii == 3)
    assert len({each.radius for each in curve.candidates}) == radii
    assert len({each.lift for each in curve.candidates}) == radii - 1, "products of more features where none is rare"
    assert curve.rounds == len(asked) <= 3 * curve.reference_rounds


def test_a_lift_of_the_plan_is_tried_beside_it(works: FakeWorks) -> None:
    own = FourierLiftSpec(components=5, bandwidth=1.0)
    rows = np.array([900.0, 40.0])
    assert grid_of(plan(spec={"lift": own}), 2, rows).lifts == (own, BESIDE)
    assert grid_of(plan(spec={"lift": BESIDE}), 2, rows).lifts == grid_of(plan(), 2, rows).lifts == (BESIDE,)
    assert grid_of(plan(tuning={"radius": [1.0, 3.0], "lifts": ["none"]}), 2, rows).lifts == (None,)
    few = np.array([900.0, 12.0])
    assert grid_of(plan(spec={"lift": own}), 2, few).lifts == (own, SIX)
    assert grid_of(plan(), 2, few).lifts == (None, SIX) == grid_of(plan(), 2).lifts[:2]


@pytest.mark.parametrize(
    ("healthy", "faulty", "n_features", "bears"),
    [
        (1000, 51, 6, True), (1000, 50, 6, False),  # 6 * 6 ramps and 15 products
        (51, 1000, 6, True),  # either may be the rare one
        (9000, 336, 21, True), (9000, 500, 22, False),  # more products than splines are worth
    ],
)
def test_a_rare_class_bears_a_lift_of_which_it_has_a_row_for_each_number(
    healthy: int, faulty: int, n_features: int, bears: bool
) -> None:
    rows = np.array([healthy, faulty], dtype=float)
    assert automatic_lifts(n_features, rows) == (("products beside splines",) if bears else ("none", "spline"))
    assert automatic_lifts(n_features, rows, products=False) == ("none", "spline")
    assert ("products" in automatic_lifts(n_features)) is (n_features <= 21)


def test_where_nothing_is_scored_the_plans_own_lift_stays_however_many_faults_were_counted(works: FakeWorks) -> None:
    with_faults(works, 0.06, 80)
    for plant in works.plants.values():
        plant.falsify = lambda task, arrays: {
            name: 0.0 * each if name.startswith("score") and any(map(np.any, task.arrays.values())) else each
            for name, each in arrays.items()
        }
    run = tuned(works, works.run(tuning="auto", reveal="each site"))
    curve = run.plan.tuned
    assert curve is not None and "untuned: no plant has rows enough of a class" in curve.why
    assert run.plan.spec.lift is None is curve.terms.lift and curve.rounds == len(tune_tasks(works, run)) > 2


@pytest.mark.parametrize(
    ("changes", "asset_type", "asks"),
    [
        ({}, RIG, True), ({}, GRADES, True), ({"tuning": None}, RIG, False),
        ({"tuning": {"radius": [1.0, 3.0]}}, RIG, False),
        ({"spec": {"loss": "smooth_hinge"}}, RIG, False), ({"spec": {"support": "sensor_ranges"}}, RIG, False),
    ],
)
def test_shares_are_asked_for_where_the_plan_leaves_the_loss_to_auto(
    changes: dict[str, Any], asset_type: AssetType, asks: bool
) -> None:
    assert asks_for_shares(plan(**changes), asset_type) is asks


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
