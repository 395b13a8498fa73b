"""What "auto" does where a class is rare: how it is known, by which loss it is learnt, and what is tried for it."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from models.tuning.automatic import RARE_SHARE, automatic_lifts, is_rare
from services.contracts.machines.asset_type import AssetType
from services.contracts.plans.plan_problem import asks_for_shares, grid_of
from services.contracts.problems.lift import FourierLiftSpec, ProductLiftSpec, SplineLiftSpec
from tests.services.coordinator import fake_ports
from tests.services.coordinator.automatic import GRADES, plan, tune_tasks, tuned, with_faults
from tests.services.coordinator.fake_ports import RIG, FakeWorks


@pytest.mark.parametrize(("reveal", "share", "loss"), [("sums", 0.05, "logistic"), ("each site", 0.1, "hinge")])
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


# 4 * 4 and 4 * 3 faults for 13 numbers
@pytest.mark.parametrize(("reveal", "count", "lifts"), [("sums", 60, 1), ("each site", 40, 2)])
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


@pytest.mark.parametrize(("share", "radii"), [(0.06, {0.3, 1.0}), (0.3, {1.0, 3.0})])
def test_several_classes_of_which_one_is_rare_are_tuned_as_two_are(
    works: FakeWorks, monkeypatch: pytest.MonkeyPatch, share: float, radii: set[float]
) -> None:
    monkeypatch.setattr(fake_ports, "RIG", GRADES)
    for plant in works.plants.values():
        plant.classes = np.where(np.arange(40) < 40 * share, 2, plant.classes)
    run = tuned(works, works.run(tuning="auto"))
    asked, curve = tune_tasks(works, run), run.plan.tuned
    assert curve is not None and asked[0].tuning.pooled and not any(map(np.any, asked[0].arrays.values()))
    assert ("for a class has less than 8% of the rows" in curve.why) is (share < RARE_SHARE)
    assert {each.radius for each in curve.candidates} == radii
    assert len({each.lift for each in curve.candidates}) == 2 + (share > RARE_SHARE), "products where none is rare"
    assert curve.rounds == len(asked) <= 3 * curve.reference_rounds


def test_a_lift_of_the_plan_is_tried_beside_it(works: FakeWorks) -> None:
    own = FourierLiftSpec(components=5, bandwidth=1.0)
    rows = np.array([900.0, 40.0])
    assert grid_of(plan(spec={"lift": own}), RIG, rows).lifts == (own, BESIDE)
    assert grid_of(plan(spec={"lift": BESIDE}), RIG, rows).lifts == grid_of(plan(), RIG, rows).lifts == (BESIDE,)
    assert grid_of(plan(tuning={"radius": [1.0, 3.0], "lifts": ["none"]}), RIG, rows).lifts == (None,)
    few = np.array([900.0, 12.0])
    assert grid_of(plan(spec={"lift": own}), RIG, few).lifts == (own, SIX)
    assert grid_of(plan(), RIG, few).lifts == (None, SIX) == grid_of(plan(), RIG).lifts[:2]


@pytest.mark.parametrize(
    ("healthy", "faulty", "n_features", "bears"),
    [
        (1000, 51, 6, True), (1000, 50, 6, False),  # 6 * 6 ramps and 15 products
        (51, 1000, 6, True),  # either may be the rare one
        (9000, 336, 21, True), (9000, 500, 22, False),  # more products than splines are worth
        (1000, 9, 8, False), (1000, 9, 9, False),  # the most features beside whose splines a target has products
    ],
)
def test_a_rare_class_bears_a_lift_of_which_it_has_a_row_for_each_number(
    healthy: int, faulty: int, n_features: int, bears: bool
) -> None:
    rows = np.array([healthy, faulty], dtype=float)
    assert automatic_lifts(n_features, rows) == (("products beside splines",) if bears else ("none", "spline"))
    assert automatic_lifts(n_features, rows, products=False) == ("none", "spline")
    assert ("products" in automatic_lifts(n_features)) is (n_features <= 21)
    together = ("products beside splines",) if n_features <= 8 else ("products",) if n_features <= 21 else ()
    assert automatic_lifts(n_features, target=True) == ("none", "spline", *together)
    assert automatic_lifts(n_features, target=True, products=False) == ("none", "spline")


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


def test_no_plant_is_asked_how_rare_a_class_is_where_a_race_is_not_paid_for(works: FakeWorks) -> None:
    with_faults(works, 0.05)
    run = tuned(works, works.run(tuning="auto", max_rounds=1))
    assert run.plan.tuned is not None and "untuned" in run.plan.tuned.why
    assert tune_tasks(works, run) == []
