"""Rounds over cohorts in one process: what a server half sees of the plants is their mean by share, and no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.basics import Arrays, ProblemError
from models.cohorts.dealing import cohort_problem
from models.cohorts.fixed_point import word_count
from models.methods.catalogue import get_method
from models.methods.guard import Guard
from models.methods.row_account import Accounted
from models.problem import RobustSpec, SiteProblem
from models.simulation.cohort_rounds import CohortRounds, bytes_of_words
from models.simulation.federation import server_problem

METHOD = get_method("level-bundle-plain")
COHORTS = {"one": ("a", "b", "c"), "two": ("d", "e", "f")}
WEIGHTS = {"a": 0.2, "b": 0.1, "c": 0.1, "d": 0.3, "e": 0.2, "f": 0.1}


def plants() -> dict[str, SiteProblem]:
    found = {}
    for seed, name in enumerate(WEIGHTS):
        random = np.random.default_rng(seed)
        found[name] = SiteProblem(random.normal(size=(9, 2)), random.choice([-1.0, 1.0], 9), RobustSpec(0.1, 0.8))
    return found


def rounds(**more: Any) -> tuple[CohortRounds, Any, dict[str, tuple[int, ...]]]:
    problem = server_problem(plants(), WEIGHTS, METHOD, {}, 1e-3)
    seen = cohort_problem(problem, COHORTS)
    messages = METHOD.server.messages(METHOD.server.init(seen), seen)
    shapes = METHOD.server.answer_shapes(3, 0, problem.parameters)
    return CohortRounds(METHOD, plants(), problem, COHORTS, **more), messages, shapes


def test_an_answer_is_the_mean_of_the_plants_by_their_shares_of_the_cohort() -> None:
    """To the digits of the words; a part of a cohort tells no risk, and one of which nobody is there nothing."""
    there, messages, shapes = rounds()
    messages["two"]["point"] = np.array([1.0, -0.5, 0.2])  # each cohort is asked what it is asked
    of = {site: cohort for cohort, members in COHORTS.items() for site in members}
    own = {name: METHOD.site.answer(site, messages[of[name]], {}) for name, site in plants().items()}
    found = there.answers(messages, shapes)
    for cohort, members in COHORTS.items():
        whole = sum(WEIGHTS[site] for site in members)
        for name in ("risk", "cut_height", "slope", "norm_weight"):
            mean = np.sum([WEIGHTS[site] / whole * own[site][name] for site in members], axis=0)
            np.testing.assert_allclose(found[cohort][name], mean, atol=1e-6)
    part = there.answers(messages, shapes, absent={"b", "d", "e", "f"})
    assert set(part) == {"one"} and np.isnan(part["one"]["risk"])
    expected = 0.5 * own["a"]["slope"] + 0.25 * own["c"]["slope"]
    np.testing.assert_allclose(part["one"]["slope"], expected, atol=1e-6)


class FirstGuard:
    """A guard that takes the first answer."""

    def choose(self, question: bytes, candidate: Any, vectors: Any) -> Any:
        return candidate(0, np.random.default_rng(0))

    def choose_cut(self, question: bytes, near: Any, exact: Any, other: Any) -> Any:
        return exact


class Remembering:
    """A site half that answers as it is and counts in its memory how often it did, with which guard."""

    def __init__(self) -> None:
        self.guards: list[Guard | None] = []

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Any) -> Any:
        return METHOD.site.answer(problem, message, parameters)

    def answer_remembering(
        self, problem: SiteProblem, message: Arrays, parameters: Any, memory: Arrays, guard: Guard | None = None
    ) -> Any:
        self.guards.append(guard)
        times = float(memory["times"]) + 1.0 if "times" in memory else 1.0
        return Accounted(self.answer(problem, message, parameters)), {"times": np.array(times)}


def test_every_plant_has_a_memory_and_a_guard_of_its_own() -> None:
    """The half that is given answers in place of the method's; a plant that is away forgets nothing."""
    half, guard = Remembering(), FirstGuard()
    there, messages, shapes = rounds(half=half, guards={"c": guard})
    there.answers(messages, shapes, absent={"a"})
    there.answers(messages, shapes)
    assert {name: float(memory["times"]) for name, memory in there.memories.items()} == {
        "a": 1.0, "b": 2.0, "c": 2.0, "d": 2.0, "e": 2.0, "f": 2.0
    }
    assert [place for place, given in enumerate(half.guards) if given is guard] == [1, 7]
    assert len(half.guards) == 11 and half.guards.count(None) == 9


def test_a_method_that_needs_single_answers_is_refused_and_words_are_counted() -> None:
    wafl, sites = get_method("wafl"), plants()
    with pytest.raises(ProblemError, match="needs the answer of each plant"):
        CohortRounds(wafl, sites, server_problem(sites, WEIGHTS, wafl, {}, 1e-3), COHORTS)
    shapes = rounds()[2]
    assert bytes_of_words(shapes) == 8 * word_count(shapes) >= 8 * 6
