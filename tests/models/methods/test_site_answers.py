"""What a plant makes of a penalty that says next to nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models.methods.guard import MOVES
from models.methods.site_answers import AdmmSite, ProxCutSite, RiskSite, asked_penalty
from models.problem import RobustSpec, SiteProblem
from models.prox.bundle import local_prox
from models.worst_case.risk import site_risk


def site(seed: int) -> SiteProblem:
    """Twenty rows of three features."""
    random = np.random.default_rng(seed)
    return SiteProblem(
        random.random((20, 3)), np.where(random.random(20) < 0.5, 1.0, -1.0), RobustSpec(0.01, 1.0)
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("penalty", [0.0, 1e-321, 1e-200, 1e-13, 1e-11])
@pytest.mark.parametrize("seed", range(3))
def test_a_soft_penalty_gets_a_minorant_of_the_risk(seed: int, penalty: float) -> None:
    problem, random = site(seed), np.random.default_rng(seed)
    message = {"point": np.zeros(4), "centre": random.normal(size=4), "penalty": np.array(penalty)}
    said = ProxCutSite().answer(problem, message, {})
    for point in random.normal(size=(20, 4)):
        below = said["minorant_offset"] + said["minorant_slope"] @ point
        below += said["minorant_norm_weight"] * np.linalg.norm(point[:3])
        assert np.isfinite(below) and below <= site_risk(point, problem).value + 1e-9


def test_no_penalty_is_too_soft_to_solve_with() -> None:
    soft = {"penalty": np.array(1e-321)}
    assert asked_penalty(soft, 0.5, np.array([0.3, 0.4])) == pytest.approx(0.5)
    assert asked_penalty(soft, 0.5, np.array([1e-160, 0.0])) == 0.0
    assert asked_penalty({"penalty": np.array(1e-3)}, 0.5, np.array([1e-160, 0.0])) == 1e-3


def test_a_plant_of_a_cohort_keeps_its_own_multiplier() -> None:
    """The first is what the server knows, then mu + w_g - w; what it tells brings the server the mean of w_g + mu."""
    problem, random, half = site(1), np.random.default_rng(2), AdmmSite()
    memory: dict[str, np.ndarray] = {}
    dual = None
    for _ in range(3):
        point, shared = random.normal(size=(2, 4))
        message = {
            "point": point, "centre": point - shared, "penalty": np.array(0.3), "ridge": np.array(0.1)
        }
        found, after = half.answer_remembering(problem, message, {}, memory)
        dual = shared if dual is None else dual + memory["local_point"] - point
        alone = half.answer(problem, {**message, "centre": point - dual}, {})
        np.testing.assert_allclose(after["dual"], dual)
        np.testing.assert_allclose(after["local_point"], alone["local_point"])
        np.testing.assert_allclose(found.arrays["local_point"], alone["local_point"] + dual - shared)
        np.testing.assert_allclose(found.arrays["minorant_slope"], alone["minorant_slope"])
        memory = after


class Last:
    """A guard that lets the last resort leave alone, and notes what was asked."""

    def __init__(self) -> None:
        self.asked, self.exchanges, self.near = list[bytes](), list[int](), list[np.ndarray]()

    def choose(self, question: bytes, candidate: Any, vectors: Any) -> Any:
        self.asked.append(question)
        found = candidate(MOVES + 1, np.random.default_rng(0))
        assert all(not np.any(each) for each in vectors(found))
        return found

    def choose_cut(self, question: bytes, near: Any, exact: Any, other: Any) -> Any:
        self.asked.append(question)
        self.exchanges.append(near.exchange)
        self.near.append(near.point)
        return exact


def test_the_last_resort_of_a_step_is_that_of_a_risk_of_which_nothing_is_known() -> None:
    """The least of ridge and penalty alone; its minorant is that a risk is not negative."""
    problem, guard = site(2), Last()
    message = {
        "point": np.ones(4), "centre": np.array([1.0, -2.0, 3.0, 0.5]), "penalty": np.array(0.3), "ridge": np.array(0.1)
    }
    found = AdmmSite().accounted(problem, message, {}, guard)
    np.testing.assert_allclose(found.arrays["local_point"], message["centre"] * 0.3 / 0.5)
    assert found.arrays["minorant_offset"] == 0.0 and not found.arrays["minorant_slope"].any()


def test_another_centre_or_penalty_is_another_question() -> None:
    """The same question has the same answer, so what tells questions apart must be all that is asked."""
    problem, guard = site(3), Last()
    first = {"point": np.ones(4), "centre": np.zeros(4), "penalty": np.array(0.3), "ridge": np.array(0.1)}
    others = [{}, {"centre": np.full(4, 0.1)}, {"penalty": np.array(0.31)}, {"point": np.full(4, 0.9)}]
    for half, more in ((ProxCutSite(), []), (AdmmSite(), [{"ridge": np.array(0.11)}])):
        seen = []
        for changes in [*others, *more]:
            guard.asked.clear()
            half.accounted(problem, {**first, **changes}, {}, guard)
            seen.append(guard.asked[-1])
        assert len(set(seen)) == len(seen)
        guard.asked.clear()
        half.accounted(problem, {name: array.copy() for name, array in first.items()}, {}, guard)
        assert guard.asked[-1] == seen[0]


def test_a_guard_is_told_of_which_exchange_a_question_is() -> None:
    """Of the cut and of the minorant; a message that does not say so is of the first."""
    message = {"point": np.ones(4), "centre": np.zeros(4), "penalty": np.array(0.3)}
    for half in (RiskSite(), ProxCutSite()):
        for more, number in (({"exchange": np.array(3.0)}, 3), ({}, 0)):
            guard = Last()
            half.accounted(site(1), {**message, **more}, {}, guard)
            assert guard.exchanges and set(guard.exchanges) == {number}


@pytest.mark.parametrize("row_weights", [None, np.linspace(0.5, 1.5, 20)])
def test_what_leaves_in_place_of_a_minorant_is_tight_where_the_local_step_ends(row_weights: np.ndarray | None) -> None:
    """And not at the point of the risk, nor at the centre: the next round's model is wanted where the step ends."""
    problem, guard = replace(site(4), row_weights=row_weights), Last()
    message = {"point": np.ones(4), "centre": np.array([1.0, -2.0, 3.0, 0.5]), "penalty": np.array(0.3)}
    ProxCutSite().accounted(problem, message, {}, guard)
    ended = local_prox(problem, message["centre"], 0.3).point
    assert guard.near[0].tolist() == message["point"].tolist()
    way = min(np.linalg.norm(message[name] - ended) for name in ("point", "centre"))
    assert np.linalg.norm(guard.near[1] - ended) < 0.15 * way
