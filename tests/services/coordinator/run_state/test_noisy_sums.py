"""Runs with noise on sums, on ports that are none but with real masks, real noise and real accounts of the plants."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.cohorts.noise import METHOD
from models.methods.bundle.asynchronous import AsynchronousServer
from models.methods.catalogue import get_method
from models.problem import ServerProblem, SiteTerms, Status
from services.contracts.errors import InvalidInputError
from services.contracts.plans.plan import Plan
from services.contracts.wire.masking import MaskingCohort
from services.contracts.wire.messages import Task
from services.coordinator.asking.ports import RawAnswer
from services.coordinator.round_loop import run_parts, summed_rounds
from services.coordinator.run_state.noisy_sums import noise_plan, promise, server_half
from services.coordinator.run_state.run_errors import ContradictingAnswersError, TooFewSitesError
from services.coordinator.run_state.terms import cohorts_of
from services.site_agent.rules.policy import SitePolicy
from tests.services.coordinator.fake_ports import RIG, FakePlant, FakeWorks

LOOSE = {"epsilon": 300.0, "rounds": 12, "within": 8.0, "confidence": 0.9999}
TIGHT = {"epsilon": 1.0, "rounds": 5, "within": 8.0}


@pytest.fixture
def new_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeWorks]:
    for module in (run_parts, summed_rounds):
        monkeypatch.setattr(module, "RETRY_SECONDS", 0.0)

    def new(plants: int = 4, rows: int = 20_000) -> FakeWorks:
        names = [f"plant-{number}" for number in range(1, plants + 1)]
        made = (FakePlant(name, tmp_path / name / "site.nk", k, rows) for k, name in enumerate(names))
        return FakeWorks({plant.site_id: plant for plant in made})

    return new


def with_noise(works: FakeWorks, noise: dict[str, Any] | None = None, **changes: Any) -> Any:
    spec = {"radius": {"rule": "fixed", "value": 0.05}}
    plan = {"reveal": "sums", "method": METHOD, "noise": noise or LOOSE, "gap": 0.05, "spec": spec}
    return works.run(**plan | changes)


def told(plant: FakePlant) -> float:
    return plant.record.account("digest").rho


def rounds_of(works: FakeWorks, site: str) -> list[tuple[str, str]]:
    return [(each.status, each.code) for record in works.store.records for each in record.answers
            if each.site_id == site]


def test_a_run_with_noise_ends_with_bounds_around_the_true_optimum(new_works: Callable[..., FakeWorks]) -> None:
    works = new_works()
    run = with_noise(works)
    trained = works.train(run)
    exact = works.train(works.run(reveal="sums", method=METHOD, spec=run.plan.spec.model_dump()))
    assert trained.status is Status.CERTIFIED and trained.certificate.gap <= 0.05
    assert trained.certificate.lower < exact.certificate.upper and trained.certificate.upper > exact.certificate.lower
    assert trained.certificate.upper != exact.certificate.upper and np.linalg.norm(trained.weights) <= 8.0 + 1e-9
    said = promise(works.store.get_run(run.run_id), RIG, trained.rounds)
    budget = noise_plan(works.store.get_run(run.run_id), RIG)
    assert said is not None and budget is not None and said.confidence == 0.9999 and said.epsilon < 300.0
    assert all(told(plant) == pytest.approx(trained.rounds * budget.rho) for plant in works.plants.values())


def test_every_plant_signs_the_terms_of_the_noise(new_works: Callable[..., FakeWorks]) -> None:
    works = new_works(rows=400)
    works.plants["plant-2"].features = works.plants["plant-2"].features[:200]
    works.plants["plant-2"].classes = works.plants["plant-2"].classes[:200]
    run = with_noise(works, LOOSE | {"in_league": 1}, max_rounds=1)
    works.train(run)
    cohorts = [task.masking for plant in works.plants.values() for task in plant.asked
               if isinstance(task.masking, MaskingCohort)]
    assert len(cohorts) == 4 and all(each == cohorts[0] for each in cohorts)
    noise, budget = cohorts[0].noise, noise_plan(works.store.get_run(run.run_id), RIG)
    assert noise is not None and budget is not None
    assert (noise.honest, noise.rho) == (2, budget.rho) and noise.row_share == pytest.approx(0.25 / 200)


def test_the_budget_ends_the_run_with_what_it_reached(new_works: Callable[..., FakeWorks]) -> None:
    works = new_works(rows=400)
    trained = works.train(with_noise(works, {"epsilon": 1.0, "rounds": 3, "within": 8.0}))
    assert trained.status is Status.BUDGET_SPENT and trained.rounds == len(works.store.records) == 3
    assert "noise budget is spent" in trained.status.value and np.isfinite(trained.certificate.upper)
    said = promise(next(iter(works.store.runs.values())), RIG, trained.rounds)
    assert said is not None and said.epsilon == pytest.approx(1.0)
    fewer = works.train(with_noise(works, {"epsilon": 1.0, "rounds": 3, "within": 8.0}, max_rounds=2))
    assert fewer.status is Status.ROUND_LIMIT and fewer.rounds == 2


def test_a_resumed_run_spends_the_same_budget(new_works: Callable[..., FakeWorks]) -> None:
    works = new_works(rows=400)
    run = with_noise(works, TIGHT)
    works.store.lose_after = 3
    with pytest.raises(KeyboardInterrupt):
        works.train(run)
    works.store.lose_after = None
    resumed = asyncio.run(works.coordinator().train(works.store.get_run(run.run_id)))
    budget = noise_plan(works.store.get_run(run.run_id), RIG)
    assert budget is not None and resumed.rounds == 5 and resumed.status is Status.BUDGET_SPENT
    assert (works.store.states[run.run_id][1]["cut_round"] == 0).sum() == 6, "the walls, once"
    # The round whose commit was lost is asked again under new masks: new noise, which every plant charges again.
    assert all(told(plant) == pytest.approx(6 * budget.rho) for plant in works.plants.values())


def test_a_plant_whose_epsilon_is_spent_says_so_and_the_run_goes_on(new_works: Callable[..., FakeWorks]) -> None:
    works = new_works(plants=4, rows=400)
    plant = works.plants["plant-3"]
    run = with_noise(works, TIGHT)
    plant.policy = SitePolicy(noise_epsilon=0.6)
    plant.restart()
    trained = works.train(run)
    answered = [status for status, _ in rounds_of(works, "plant-3")].count("accepted")
    assert 1 <= answered < 4 and rounds_of(works, "plant-3")[answered:] == [
        ("refused_by_site", "noise_limit"), ("excluded", "noise_limit")
    ]
    left = works.store.get_run(run.run_id).excluded
    assert [each.site_id for each in left] == ["plant-3"] and "more of a row than its policy allows" in left[0].reason
    assert trained.rounds == 5 and trained.status is Status.BUDGET_SPENT
    assert promise(works.store.get_run(run.run_id), RIG, 5).epsilon == pytest.approx(1.0)  # type: ignore[union-attr]


def test_too_few_plants_with_something_left_end_the_run_by_name(new_works: Callable[..., FakeWorks]) -> None:
    works = new_works(plants=3, rows=400)
    works.plants["plant-3"].policy = SitePolicy(noise_epsilon=0.6)
    works.plants["plant-3"].restart()
    with pytest.raises(TooFewSitesError, match=r"2 of the 3 sites .* left: plant-3 .* more of a row than its policy"):
        works.train(with_noise(works, TIGHT))
    assert len(works.store.records) >= 1


def test_a_plant_with_a_limit_makes_no_masks_without_noise(new_works: Callable[..., FakeWorks]) -> None:
    works = new_works(rows=400)
    plant = works.plants["plant-2"]
    plant.policy = SitePolicy(noise_epsilon=10.0)
    plant.restart()
    run = works.run(reveal="sums", method=METHOD)
    works.train(run)
    left = works.store.get_run(run.run_id).excluded
    assert [(each.site_id, each.code) for each in left] == [("plant-2", "noise_limit")]


def test_a_plant_that_leaves_takes_its_noise_and_a_new_cohort_has_walls(new_works: Callable[..., FakeWorks]) -> None:
    works = new_works(rows=400)

    def behave(task: Task) -> RawAnswer | None:
        gone = task.kind != "join" and task.round >= 3
        return RawAnswer("plant-4", None, "absent", 0.1) if gone else None

    works.plants["plant-4"].behave = behave
    run = with_noise(works, TIGHT)
    trained = works.train(run)
    assert [each.site_id for each in works.store.get_run(run.run_id).excluded] == ["plant-4"]
    assert trained.rounds == 5 and np.linalg.norm(trained.weights) <= 8.0 + 1e-9
    cohort = [task.masking for task in works.plants["plant-1"].asked if isinstance(task.masking, MaskingCohort)][-1]
    assert len(cohort.members) == 3 and cohort.noise is not None and cohort.noise.honest == 3
    state = works.store.states[run.run_id][1]
    assert (state["cut_round"] == 0).sum() == 6 and (state["cut_round"] > 0).sum() >= 2


def test_two_cohorts_with_noise_are_trained_over(new_works: Callable[..., FakeWorks]) -> None:
    works = new_works(plants=6, rows=400)
    run = with_noise(works, TIGHT)
    trained = works.train(run)
    assert len(cohorts_of(works.store.get_run(run.run_id))) == 2 and trained.rounds == 5
    state = works.store.states[run.run_id][1]
    assert state["cut_used"].shape == state["cut_round"].shape == (1, 6 + 2 * 5)


@pytest.mark.parametrize("gone_from", [1, 2])
def test_a_plant_may_leave_before_anything_was_asked(new_works: Callable[..., FakeWorks], gone_from: int) -> None:
    """The walls stand with a cohort from the start; what is left of it keeps them."""
    works = new_works(rows=400)

    def behave(task: Task) -> RawAnswer | None:
        gone = task.kind != "join" and task.round >= gone_from
        return RawAnswer("plant-4", None, "absent", 0.1) if gone else None

    works.plants["plant-4"].behave = behave
    run = with_noise(works, TIGHT)
    assert works.train(run).rounds == 5
    assert [each.site_id for each in works.store.get_run(run.run_id).excluded] == ["plant-4"]


@pytest.mark.parametrize(("change", "wanted"), [
    ({"reveal": "each site"}, 'noise is added to sums: set reveal = "sums"'),
    ({"method": "cohort-bundle"}, "noise is for method level-bundle-plain, got cohort-bundle"),
    ({"spec": {"support": "sensor_ranges"}}, "set support to unbounded"),
    ({"spec": {"radius": {"rule": "confidence", "confidence": 0.9}}}, "a radius that is estimated from the rows"),
    ({"site_settings": {"plant-1": {"radius": {"rule": "confidence", "confidence": 0.9}}}}, "a radius that is est"),
    ({"spec": {"lift": {"components": 20, "bandwidth": 1.0}}}, "leave out the lift"),
    ({"noise": LOOSE | {"in_league": 3}}, "noise of nobody is left"),
])
def test_a_plan_whose_noise_would_promise_nothing_is_refused(
    new_works: Callable[..., FakeWorks], change: dict[str, Any], wanted: str
) -> None:
    works = new_works(rows=40)
    with pytest.raises(InvalidInputError, match=wanted):
        works.train(with_noise(works, **change))
    assert works.plants["plant-1"].asked == []


def test_a_noisy_plane_above_a_risk_is_no_lie(new_works: Callable[..., FakeWorks]) -> None:
    run = with_noise(new_works(rows=40))
    problem = ServerProblem(
        n_features=2, sites=(SiteTerms("cohort-1", 1.0, 0.05, 1.0),), transport_norm="l2", fit_intercept=True, gap=1e-3,
        parameters={"level": 0.5},
    )
    said = {"cohort-1": {"risk": np.array(0.1), "cut_height": np.array(0.5), "slope": np.zeros(3),
                         "norm_weight": np.array(0.0)}}
    exact, noisy = get_method(METHOD).server, server_half(run.plan, RIG)
    assert exact.contradictions(exact.init(problem), problem, said)
    assert not noisy.contradictions(noisy.init(problem), problem, said)
    far = replace(noisy.init(problem), point=np.array([30.0, 40.0, 0.0]))
    np.testing.assert_allclose(noisy.messages(far, problem)["cohort-1"]["point"], [4.8, 6.4, 0.0])
    asked = noisy.step(far, problem, {"cohort-1": said["cohort-1"] | {"risk": np.array(0.6)}})
    np.testing.assert_allclose(asked.evidence.points, [[4.8, 6.4, 0.0]])
    assert noisy.status(replace(asked, stagnated=True), problem) is Status.CONTINUE


def test_a_risk_that_no_noise_explains_ends_the_run_with_the_plants_named(new_works: Callable[..., FakeWorks]) -> None:
    """A sum far below 0 was a bound of 0 with a gap of 0: the model of zero weights was certified after one round."""
    works = new_works(rows=2000)
    liar = works.plants["plant-3"]
    honest = liar.noise.words
    liar.noise.words = lambda *asked: honest(*asked) - np.uint64(2**61)  # type: ignore[method-assign]  # it lies
    with pytest.raises(ContradictingAnswersError, match="some plant of plant-1, plant-2, plant-3, plant-4 lied: their"):
        works.train(with_noise(works))


@pytest.mark.parametrize(("method", "prox"), [("level-bundle", True), ("level-bundle-plain", False)])
def test_who_waits_for_nobody_asks_for_the_cuts_of_the_plans_own_method(method: str, prox: bool) -> None:
    plan = Plan.model_validate({
        "name": "nightly", "asset_type": "rig", "reveal": "each site", "method": method, "waiting": {},
    })
    assert server_half(plan, RIG) == AsynchronousServer(prox_cuts=prox)
