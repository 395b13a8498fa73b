"""Of two plants that tell the same, point after point, one counts; alike by chance or for want of rows is no copy."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from models.cuts.evidence import Evidence, with_answers
from models.problem import ServerProblem, SiteTerms
from services.coordinator.asking.ports import RawAnswer
from services.coordinator.run_state.copies import LEAST_ALIKE, _alike, _coin, _near_pairs
from services.coordinator.training import Coordinator
from services.verification.contradiction import verify_evidence
from tests.services.coordinator.fake_ports import RIG

LIAR = "plant-4"


def copying(works: Any, name: str) -> Any:
    return lambda task, arrays: works.plants[name].honest(task) if task.kind == "round" else arrays


def echo(works: Any, name: str) -> Any:
    """What the other plant answers to the question that it was asked last."""
    return lambda task, arrays: works.plants[name].honest(works.plants[name].asked[-1]) if (
        task.kind == "round" and works.plants[name].asked[-1].kind == "round"
    ) else arrays


@pytest.mark.parametrize("seed", range(6))
def test_who_tells_what_another_tells_is_convicted_and_never_the_other(works: Any, seed: int) -> None:
    works.plants[LIAR].falsify = echo(works, "plant-2")
    run = works.run(min_sites=3, gap=1e-6, spec={"radius": {"rule": "fixed", "value": 0.002 + 0.003 * seed}})
    trained = works.train(run)
    (verdict,) = works.store.get_run(run.run_id).excluded
    assert (verdict.site_id, verdict.code) == (LIAR, "contradiction") and "points of its own" in verdict.reason
    assert trained.certificate.gap <= 1e-6 and len(trained.site_risks) == 3
    assert verify_evidence(works.store.evidence[LIAR])[0].startswith(f"proven: {LIAR} contradicts itself")
    assert "plant-2" not in works.store.evidence


def test_who_does_not_answer_at_a_point_of_its_own_settles_nothing(works: Any) -> None:
    liar = works.plants[LIAR]
    liar.falsify = echo(works, "plant-2")

    def behave(task: Any) -> Any:
        together = np.array_equal(task.arrays.get("point", 0), works.plants["plant-2"].asked[-1].arrays.get("point", 0))
        return None if together else RawAnswer(LIAR, None, "absent", 0.0)

    liar.behave = behave
    run = works.run(min_sites=3, gap=1e-3)
    works.train(run)
    assert works.store.get_run(run.run_id).excluded == ()


@pytest.mark.parametrize("suspended", [True, False])
def test_a_pair_of_which_one_has_no_key_any_more_settles_nothing(works: Any, suspended: bool) -> None:
    keys = {site: plant.public_key for site, plant in works.plants.items()}
    liar = works.plants[LIAR]
    liar.falsify = echo(works, "plant-2")

    def behave(task: Any) -> Any:
        if np.array_equal(task.arrays.get("point", 0), works.plants["plant-2"].asked[-1].arrays.get("point", 0)):
            return None
        keys.pop(LIAR, None)  # an operator has seen enough
        keys.update({LIAR: ""} if suspended else {})
        return RawAnswer(LIAR, None, "absent", 0.0)

    liar.behave = behave
    coordinator, run = Coordinator(works.store, works.transport, keys, RIG), works.run(min_sites=3, gap=1e-6)

    async def whole() -> Any:
        return await coordinator.train(await coordinator.join(run))

    asyncio.run(whole())
    assert not keys.get(LIAR) and works.store.get_run(run.run_id).excluded == ()


def test_of_two_plants_with_the_same_rows_one_is_left_out(works: Any) -> None:
    works.plants[LIAR].falsify = copying(works, "plant-2")
    run = works.run(min_sites=3, gap=1e-6)
    trained = works.train(run)
    (verdict,) = works.store.get_run(run.run_id).excluded
    assert verdict.site_id in (LIAR, "plant-2") and verdict.code == "copied" and verdict.round > 5
    assert "both hold the same rows" in verdict.reason and "\n" not in verdict.reason
    assert trained.certificate.gap <= 1e-6 and len(trained.site_risks) == 3


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_what_is_near_goes_by_the_size_of_the_risks(size: float) -> None:
    """Of a squared loss risks are of thousands, and near the end of a run of millionths."""
    risks = size * np.array([[1.0, 1.0 + 1e-12, 1.0 + 1e-5], [0.5, 0.5, 0.5]])
    assert _near_pairs(risks).tolist() == [[0, 1]]


def test_lot_chooses_which() -> None:
    """To copy a plant is no way to oust it."""
    drawn = [_coin(f"{run:032x}", LIAR, "plant-2") for run in range(400)]
    assert 150 < sum(drawn) < 250


@pytest.mark.parametrize("off", ["risk", "slope"])
def test_plants_that_differ_at_one_point_are_two(works: Any, off: str) -> None:
    def nearly(task: Any, arrays: Any) -> Any:
        if task.kind != "round":
            return arrays
        said = works.plants["plant-2"].honest(task)
        return said | {off: said[off] * (1.0 + 1e-7)} if task.round == 3 else said

    works.plants[LIAR].falsify = nearly
    run = works.run(min_sites=3, gap=1e-6)
    works.train(run)
    assert works.store.get_run(run.run_id).excluded == ()


@pytest.mark.parametrize(("slope", "rounds", "copy"), [
    (0.3, 8, True), (0.0, 8, False), (0.3, LEAST_ALIKE + 1, True), (0.3, LEAST_ALIKE, False),
])
def test_what_no_row_gave_or_few_points_show_is_no_sign_of_a_copy(slope: float, rounds: int, copy: bool) -> None:
    """Where all rows are well classified, plants of one radius tell the ball's part alone, alike for all.

    The first point, of zero weights, is none that tells plants apart.
    """
    problem = ServerProblem(
        n_features=2, sites=(SiteTerms("a", 0.5, 0.1, 1.0), SiteTerms("b", 0.5, 0.1, 1.0)), transport_norm="l2",
        fit_intercept=True,
    )
    evidence = Evidence.empty(problem)
    for number in range(rounds):
        said = {
            "risk": np.array(1.0 + number), "cut_height": np.array(1.0 + number),
            "slope": np.array([slope * number, 0.0, 0.1 * slope]), "norm_weight": np.array(0.1),
        }
        evidence = with_answers(evidence, problem, np.full(3, float(number)), {"a": said, "b": said})
    assert _alike([evidence], 0, 1) == copy


@pytest.mark.parametrize("seed", range(20))
def test_no_pair_that_tells_the_same_is_passed_over(seed: int) -> None:
    draw = np.random.default_rng(seed)
    risks = draw.uniform(size=(6, 9))
    risks[0] = 1.0
    risks[:, 7] = risks[:, 2] * (1.0 + 1e-10)
    risks[:, 4] = risks[:, 1]
    risks[draw.integers(1, 6), draw.integers(0, 9)] = np.nan
    found = {tuple(pair) for pair in _near_pairs(risks).tolist()}
    assert {(1, 4), (2, 7)} <= found
    told = ~np.isnan(risks)
    assert all(
        np.allclose(risks[both := told[:, g] & told[:, h], g], risks[both, h], rtol=0, atol=2e-9) for g, h in found
    )
    assert len(found) <= 2 + 8, "whoever was absent once may be like anybody at that point, and at no other"
