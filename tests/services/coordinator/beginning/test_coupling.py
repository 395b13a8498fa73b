"""The coupling after the last round: of several classes by "auto" alone, on sums, on single answers, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from models.tuning.coupling import EXCHANGES, RIDGE, Coupler, Told, coupled_planes
from services.contracts.history.run import Run
from services.contracts.plans.plan import Plan
from services.contracts.plans.plan_problem import couples, with_automatic_loss
from services.contracts.problems.coupling import CouplingTask
from services.contracts.wire.messages import Task
from services.coordinator.beginning import coupling
from services.coordinator.run_state.run_errors import RunCancelledError
from services.coordinator.run_state.training_state import TrainedModel
from tests.services.coordinator import fake_ports
from tests.services.coordinator.automatic import GRADES, tune_tasks
from tests.services.coordinator.fake_ports import RIG, FakePlant, FakeWorks

PLAN = {"tuning": "auto", "spec": {"loss": "logistic"}, "max_rounds": 12, "site_weights": "samples"}


@pytest.fixture
def grades(works: FakeWorks, monkeypatch: pytest.MonkeyPatch) -> FakeWorks:
    """Plants of three grades of one quantity, of unlike sizes and weights."""
    monkeypatch.setattr(fake_ports, "RIG", GRADES)
    for plant in works.plants.values():
        draw = np.random.default_rng([6, plant.number])
        plant.count += 10 * plant.number
        plant.features = draw.uniform(0.0, 1.0, (plant.count, 2))
        plant.classes = np.digitize(plant.features[:, 0] + 0.04 * draw.standard_normal(plant.count), [0.4, 0.7])
    return works


def trained(works: FakeWorks, *, tuned: bool = False, **changes: Any) -> tuple[Run, TrainedModel]:
    """A run that was trained, and tuned before where that is wanted."""
    async def whole() -> tuple[Run, TrainedModel]:
        coordinator = works.coordinator()
        run = await coordinator.join(works.run(**PLAN | changes))
        if tuned:  # at the price of the whole training, of which three rounds make a model to be coupled
            run = await coordinator.tune(run)
            run = works.store.change(run.run_id, plan=run.plan.model_copy(update={"max_rounds": 3}))
        found = await coordinator.train(run)
        return works.store.get_run(run.run_id), found

    return asyncio.run(whole())


def coupled(works: FakeWorks, run: Run, model: TrainedModel) -> TrainedModel:
    return asyncio.run(works.coordinator().couple(run, model))


def log_loss(works: FakeWorks, run: Run, model: TrainedModel, coupling: np.ndarray) -> float:
    """Objective of a coupling by all rows at once."""
    planes = coupled_planes(model.weights, coupling.reshape(3, 4))
    total = RIDGE / 2 * float(((coupling.reshape(3, 4) - np.eye(3, 4)) ** 2).sum())
    for site in run.sites:
        plant = works.plants[site.site_id]
        scores = plant.features @ planes[:, :-1].T + planes[:, -1]
        own = scores[np.arange(plant.count), plant.classes]
        total += site.weight * float((np.log(np.exp(scores).sum(axis=1)) - own).mean())
    return total


@pytest.mark.parametrize("reveal", ["sums", "each site"])
def test_the_planes_are_coupled_as_by_all_rows_at_once(grades: FakeWorks, reveal: str) -> None:
    run, model = trained(grades, reveal=reveal)
    found = coupled(grades, run, model)
    assert found.coupling is not None and found.coupling.rounds <= EXCHANGES
    start = np.eye(3, 4).ravel()
    wanted = float(minimize(partial(log_loss, grades, run, model), start, method="BFGS").fun)
    assert found.coupling.before == pytest.approx(log_loss(grades, run, model, start), abs=1e-6)
    assert found.coupling.at_least <= wanted + 1e-6 <= found.coupling.objective + 2e-6
    assert found.coupling.objective <= 1.02 * wanted < found.coupling.before
    assert found.weights == pytest.approx(coupled_planes(model.weights, found.coupling.array))
    assert found.certificate == model.certificate and found.rounds == model.rounds
    assert found.risk_bound == np.inf and found.coupling.words in found.note
    asked = [task for task in grades.plants["plant-1"].asked if isinstance(task.tuning, CouplingTask)]
    assert len(asked) == found.coupling.rounds
    if reveal == "sums":
        assert all(task.masking is not None for task in asked)
    again = coupled(grades, run, model)
    assert again.weights == pytest.approx(found.weights), "who is killed couples again, to the same planes"


def test_an_evaluation_goes_on_after_a_coupling_on_sums(grades: FakeWorks) -> None:
    run, model = trained(grades, reveal="sums", max_rounds=3)

    async def both() -> Any:
        coordinator = grades.coordinator()
        found = await coordinator.couple(run, model)
        return await coordinator.evaluate(run, found.weights, found.risk_bound)

    evaluation = asyncio.run(both())
    assert set(evaluation.risk) == set(grades.plants), "every plant answers at the coupled planes"


@pytest.mark.parametrize("reveal", ["sums", "each site"])
def test_planes_stay_as_they_are_where_a_plant_does_not_couple(grades: FakeWorks, reveal: str) -> None:
    run, model = trained(grades, reveal=reveal, max_rounds=3)

    def refuses(plant: FakePlant, task: Task) -> bytes | None:
        return plant.refusal_of(task, "bad_task") if isinstance(task.tuning, CouplingTask) else None

    plant = grades.plants["plant-2"]
    plant.behave = partial(refuses, plant)
    found = coupled(grades, run, model)
    assert found.coupling is None and found.weights is model.weights and found.risk_bound == model.risk_bound
    assert found.note.endswith("the planes of the classes are not coupled: not every plant answered")
    assert "plant-" not in found.note


@pytest.mark.parametrize(
    ("reveal", "name", "told"),
    [("sums", "risk", -10.0), ("sums", "cut_height", 10.0), ("each site", "cut_height", 10.0)],
)
def test_planes_stay_as_they_are_where_losses_are_told_that_cannot_be(
    grades: FakeWorks, reveal: str, name: str, told: float
) -> None:
    """A loss below 0, or below what a cut says of it, was taken: the version had a coupling that nothing bounds."""
    run, model = trained(grades, reveal=reveal, max_rounds=3)
    grades.plants["plant-2"].falsify = lambda task, said: {
        each: np.full_like(array, told) if each.startswith(name) else array for each, array in said.items()
    }
    found = coupled(grades, run, model)
    assert found.coupling is None and found.weights is model.weights and found.risk_bound == model.risk_bound
    assert "the planes of the classes are not coupled: a loss of " in found.note and "plant-" not in found.note


@pytest.mark.parametrize(("above", "taken"), [(5e-7, True), (2e-6, False)])
def test_a_loss_that_is_below_what_cuts_prove_by_rounding_alone_is_no_lie(
    grades: FakeWorks, monkeypatch: pytest.MonkeyPatch, above: float, taken: bool
) -> None:
    class AtTheEnd(Coupler):
        def tell(self, answers: Sequence[Told]) -> None:
            super().tell(answers)
            self.at_least = self.objective + above * max(1.0, self.objective)

    monkeypatch.setattr(coupling, "Coupler", AtTheEnd)
    run, model = trained(grades, reveal="each site")
    found = coupled(grades, run, model)
    assert (found.coupling is not None) == taken and ("some plant lied" in found.note) != taken


@pytest.mark.parametrize("reveal", ["sums", "each site"])
def test_each_exchange_of_a_coupling_has_a_number_of_its_own(grades: FakeWorks, reveal: str) -> None:
    """By it answers and masks are told apart; the run's rounds had those before."""
    run, model = trained(grades, reveal=reveal, max_rounds=3)
    coupled(grades, run, model)
    numbers = [task.round for task in tune_tasks(grades, run) if isinstance(task.tuning, CouplingTask)]
    assert len(numbers) > 1 and numbers == list(range(model.rounds + 1, model.rounds + 1 + len(numbers)))


def test_who_cancels_is_heard_while_planes_are_coupled(grades: FakeWorks) -> None:
    run, model = trained(grades, reveal="sums", max_rounds=3)
    grades.store.change(run.run_id, cancel_requested=True)
    with pytest.raises(RunCancelledError):
        coupled(grades, run, model)


def test_a_tuning_leaves_the_rounds_and_numbers_of_the_coupling(grades: FakeWorks) -> None:
    run, model = trained(grades, tuned=True, reveal="sums", max_rounds=6)
    found, curve = coupled(grades, run, model), run.plan.tuned
    assert curve is not None and found.coupling is not None
    assert curve.rounds + found.coupling.rounds <= curve.budget * curve.reference_rounds
    coupling = sum(
        sum(array.size for array in task.arrays.values()) + task.tuning.points * (8 + 3)
        for task in grades.plants["plant-1"].asked
        if isinstance(task.tuning, CouplingTask) and type(task.masking).__name__ == "Delivery"
    )
    assert curve.numbers + coupling <= curve.budget * curve.reference_numbers


@pytest.mark.parametrize(
    "changes",
    [
        {"tuning": {"radius": [1.0, 3.0]}}, {"tuning": None}, {"spec": {"loss": "smooth_hinge"}},
        {"spec": {"fit_intercept": False}}, {"mixture": {"radius": 0.1}, "reveal": "each site"},
        {"spec": {"multi_class": "crammer_singer"}},
    ],
)
def test_other_plans_are_not_coupled(changes: dict[str, Any]) -> None:
    def of(**given: Any) -> Plan:
        plan = Plan.model_validate({"name": "p", "asset_type": "rig", "tuning": "auto"} | given)
        return with_automatic_loss(plan, GRADES)

    assert couples(of(), GRADES) and not couples(of(), RIG) and not couples(of(**changes), GRADES)
