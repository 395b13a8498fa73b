"""What may leave in place of an exact answer: a bound that holds everywhere, drawn by the question alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import Arrays, FloatArray
from models.geometry.norms import dual_norm
from models.geometry.supports import BoxSupport
from models.losses.catalogue import get_loss
from models.methods import guard
from models.methods.catalogue import METHODS
from models.methods.guard import MOVES, AnswerT, Minorant, Near, Other, height_at
from models.methods.guard import asked as asked_of
from models.methods.row_account import accounted_answer, accounted_remembering
from models.one_vs_rest import accounted_heads
from models.problem import RobustSpec, SiteProblem
from models.simulation.federation import train
from models.worst_case.risk import site_cut, site_risk

NUMBERS = {
    "step_size": 0.1, "draw": 1.0, "snapshot_step": 1.0, "target": 0.2, "penalty": 0.05, "ridge": 0.0, "stiffness": 2.0,
}


@dataclass
class Takes:
    """A guard that takes the candidate of a fixed number, and notes what it was asked."""

    number: int
    asked: list[bytes] = field(default_factory=list)

    def choose(
        self, question: bytes, candidate: Callable[[int, np.random.Generator], AnswerT],
        vectors: Callable[[AnswerT], Sequence[FloatArray]],
    ) -> AnswerT:
        self.asked.append(question)
        found = candidate(self.number, np.random.default_rng(int.from_bytes(question[:4], "big")))
        assert vectors(found)
        return found

    def choose_cut(self, question: bytes, near: Near, exact: Minorant, other: Other) -> Minorant:
        return self.choose(question, lambda number, random: other(number, random) if number else exact, rows_of)


def rows_of(cut: Minorant) -> list[FloatArray]:
    return [] if cut.rows is None else [cut.rows]


def problem(loss: str, seed: int, *, box: bool = False, norm: Any = "l2", rows: int = 60) -> SiteProblem:
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(rows, 4))
    score, of_loss = x @ rng.normal(size=4) + 0.3 * rng.normal(size=rows), get_loss(loss)
    labels = np.where(score > np.median(score), 1.0, -1.0) if of_loss.task == "classification" else score
    support = BoxSupport(np.zeros(4), np.ones(4), -3.0, 3.0) if box else None
    return SiteProblem(x, labels, RobustSpec(0.05, 0.8, norm, support, loss=of_loss))


def message(seed: int, dimension: int = 5) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    vectors = {name: 2.0 * rng.normal(size=dimension) for name in ("point", "centre")}
    return vectors | {"correction": np.zeros(dimension)} | {name: np.array(value) for name, value in NUMBERS.items()}


def is_below(said: Arrays, asked: Arrays, site: SiteProblem, seed: int) -> None:
    """Both cuts of an answer are below the risk at points near and far, and the risk is exact."""
    rng, norm, point = np.random.default_rng(seed), site.spec.transport_norm, asked["point"]
    assert said["risk"] >= site_risk(point, site).value - 1e-12
    assert said["cut_height"] <= said["risk"]
    for size in (0.01, 1.0, 30.0):
        for other in point + size * rng.normal(size=(4, point.size)):
            risk = site_risk(other, site).value
            grown = dual_norm(other[:4], norm) - dual_norm(point[:4], norm)
            cut = said["cut_height"] + said["slope"] @ (other - point) + said["norm_weight"] * grown
            if "swing" in said:
                cut += said["swing"] @ (np.abs(other[:4]) - np.abs(point[:4]))
            assert cut <= risk + 1e-9 * (1 + abs(risk))
            if "minorant_slope" in said:
                parts = (said["minorant_slope"], float(said["minorant_norm_weight"]), said.get("minorant_swing"))
                below = height_at(Minorant(float(said["minorant_offset"]), *parts), other, dual_norm(other[:4], norm))
                assert below <= risk + 1e-9 * (1 + abs(risk))


@settings(max_examples=60, derandomize=True)
@given(
    loss=st.sampled_from(["hinge", "logistic", "huber", "pinball"]), norm=st.sampled_from(["l1", "l2", "linf"]),
    number=st.integers(0, MOVES + 1), seed=st.integers(0, 1000),
    name=st.sampled_from(["level-bundle", "level-bundle-plain", "fdr-admm", "drfl-admm", "standard", "fdr-admm-reg"]),
)
def test_whatever_leaves_is_below_the_risk_everywhere(loss: str, norm: Any, number: int, seed: int, name: str) -> None:
    site, asked, method = problem(loss, seed, norm=norm), message(seed), METHODS[name]
    guard = Takes(number)
    found = accounted_answer(method.site, site, asked, method.parameters, guard)
    restated = getattr(method.site, "changes", {})
    is_below(found.arrays, asked, SiteProblem(site.features, site.labels, replaced(site.spec, restated)), seed)
    assert guard.asked and found.account.whole
    if number == 0:
        exact = accounted_answer(method.site, site, asked, method.parameters)
        for key, array in exact.arrays.items():
            np.testing.assert_array_equal(found.arrays[key], array)
    if number == MOVES + 1:
        assert not found.arrays["slope"].any() and not any(rows.any() for rows in found.account.rows)


def replaced(spec: RobustSpec, changes: Any) -> RobustSpec:
    from dataclasses import replace

    return replace(spec, **changes)


@pytest.mark.parametrize("number", [1, MOVES])
@pytest.mark.parametrize("loss", ["hinge", "pinball"])
def test_a_box_has_its_swings_mixed_too(loss: str, number: int) -> None:
    site, asked = problem(loss, 3, box=True), message(3)
    found = accounted_answer(METHODS["level-bundle"].site, site, asked, {}, Takes(number))
    is_below(found.arrays, asked, site, 3)
    assert not found.account.whole


@pytest.mark.parametrize("box", [False, True])
@pytest.mark.parametrize("number", [1, MOVES])
def test_all_parts_of_two_cuts_are_mixed_alike(box: bool, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the mean, of cuts with unlike parts for the norm and the walls, is no cut any more."""
    site, rng = problem("hinge", 3, box=box), np.random.default_rng(1)
    known, other = (
        Minorant(rng.normal(), rng.normal(size=5), rng.random(), rng.random(4) if box else None, rng.normal(size=60))
        for _ in range(2)
    )
    monkeypatch.setattr(guard, "step_minorant" if box else "prox_minorant", lambda solution: other)
    found = guard.mixed(known, np.zeros(5), site, number, rng)
    share = (found.offset - known.offset) / (other.offset - known.offset)
    assert 0.75 * guard.LEAST_SHARE <= share <= 2.0 * guard.LEAST_SHARE
    for part in ("slope", "norm_weight", "rows", *(["swing"] if box else [])):
        mean = (1.0 - share) * getattr(known, part) + share * getattr(other, part)
        np.testing.assert_allclose(getattr(found, part), mean, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("box", [False, True])
def test_a_cut_that_stands_in_for_another_is_nearly_as_high(box: bool) -> None:
    """At the point that was asked, of which the other cut has a two-hundredth."""
    for seed in range(4):
        site, asked = problem("hinge", seed, box=box), message(seed)
        found = accounted_answer(METHODS["level-bundle"].site, site, asked, {}, Takes(1)).arrays
        assert 0.98 * found["risk"] <= found["cut_height"] <= found["risk"]


@pytest.mark.parametrize("number", [0, 1, 6, MOVES])
@pytest.mark.parametrize("name", ["level-bundle", "fdr-admm", "drfl-admm", "fedavg"])
def test_the_account_is_that_of_what_leaves(name: str, number: int) -> None:
    site, asked, method = problem("hinge", 8), message(8), METHODS[name]
    found = accounted_answer(method.site, site, asked, method.parameters, Takes(number))
    first, second = found.account.rows[:2]
    np.testing.assert_allclose(np.append(first @ site.features, first.sum()), found.arrays["slope"], atol=1e-9)
    if name != "fedavg":
        told = np.append(second @ site.features, second.sum())
        np.testing.assert_allclose(told, found.arrays["minorant_slope"], atol=1e-9)


def test_a_step_that_tells_nothing_of_the_risk_ends_where_a_risk_of_zero_would_take_it() -> None:
    """At the least of ``ridge ||w||^2 + penalty/2 ||w - centre||^2``, whose slope is 0 there."""
    site, asked = problem("hinge", 3), {**message(3), "ridge": np.array(0.3)}
    found = accounted_answer(METHODS["fdr-admm"].site, site, asked, {}, Takes(MOVES + 1))
    end, penalty = found.arrays["local_point"], NUMBERS["penalty"]
    np.testing.assert_allclose(2 * 0.3 * end + penalty * (end - asked["centre"]), 0.0, atol=1e-12)
    assert found.account.whole and not any(rows.any() for rows in found.account.rows)


@pytest.mark.parametrize("number", [3, MOVES + 1])
def test_gradients_beside_the_point_are_cuts_of_the_loss(number: int) -> None:
    site, asked = problem("logistic", 5), message(5)
    found = accounted_answer(METHODS["fedavg"].site, site, asked, METHODS["fedavg"].parameters, Takes(number))
    mean = SiteProblem(site.features, site.labels, replaced(site.spec, {"radius": 0.0, "label_flip_cost": np.inf}))
    is_below({**found.arrays, "norm_weight": np.array(0.0)}, asked, mean, 5)
    exact = accounted_answer(METHODS["fedavg"].site, site, asked, METHODS["fedavg"].parameters)
    assert found.arrays["risk"] == exact.arrays["risk"]
    assert np.abs(found.arrays["slope"] - exact.arrays["slope"]).max() > 1e-6


def test_questions_are_told_apart_by_what_is_asked_and_by_their_head() -> None:
    site, guard = problem("hinge", 2), Takes(2)
    other = SiteProblem(site.features, -site.labels, site.spec)
    both = {name: np.stack([array, array]) for name, array in message(2).items()}
    accounted_heads(METHODS["level-bundle"].site, [site, other], both, {}, guard)
    accounted_heads(METHODS["level-bundle"].site, [site, other], both, {}, guard)
    accounted_heads(METHODS["level-bundle"].site, [site, other], {**both, "point": both["point"] + 1e-9}, {}, guard)
    assert guard.asked[:4] == guard.asked[4:8]
    assert len(set(guard.asked)) == 8


def test_questions_about_two_risks_are_two_questions_to_the_last_digit() -> None:
    free, boxed = problem("hinge", 2), problem("hinge", 2, box=True)
    walls = np.ones(4)
    walls[3] += 1e-12
    wider = replaced(boxed.spec, {"support": BoxSupport(np.zeros(4), walls)})
    moved_rows = np.where(np.arange(240).reshape(60, 4) == 120, free.features + 1e-12, free.features)
    sites = [
        free, boxed, SiteProblem(boxed.features, boxed.labels, wider), SiteProblem(moved_rows, free.labels, free.spec),
        SiteProblem(free.features, free.labels, replaced(free.spec, {"radius": 0.05 + 1e-12})),
        SiteProblem(free.features, free.labels, free.spec, np.linspace(0.5, 1.5, 60)),
    ]
    assert len({asked_of(each, np.zeros(5)) for each in sites}) == len(sites)
    assert asked_of(problem("hinge", 2, box=True), np.zeros(5)) == asked_of(boxed, np.zeros(5))


def test_a_plant_of_a_cohort_remembers_what_it_sent() -> None:
    rng, site, method = np.random.default_rng(1), problem("hinge", 1), METHODS["cohort-bundle"]
    asked = {
        "points": rng.normal(size=(2, 5)), "centre": rng.normal(size=(2, 5)), "penalty": np.ones(2),
        "counted": np.zeros((2, 0)), "of_norm": np.zeros((2, 5)), "sides": np.zeros((2, 4)),
    }
    found, kept = accounted_remembering(method.site, site, asked, method.parameters, {}, Takes(5))
    np.testing.assert_array_equal(kept["slope"][0, ::2], found.arrays["slope"])
    np.testing.assert_array_equal(kept["slope"][0, 1::2], found.arrays["minorant_slope"])
    exact = site_cut(asked["points"][0], site)
    assert np.abs(found.arrays["slope"][0] - exact.slope).max() > 1e-9


@pytest.mark.parametrize(("name", "cohort"), [("level-bundle", False), ("cohort-bundle", True), ("fdr-admm", True)])
def test_a_run_on_moved_answers_ends_with_bounds_that_hold(name: str, cohort: bool) -> None:
    sites = {f"s{seed}": problem("hinge", seed, rows=40) for seed in range(3)}
    cohorts = {"all": tuple(sites)} if cohort else None
    exact = train(sites, gap=1e-6, method="level-bundle", max_rounds=100).certificate
    guards = {site: Takes(1) for site in sites}
    found = train(sites, gap=1e-3, method=name, max_rounds=25, cohorts=cohorts, guards=guards).certificate
    assert found.lower <= exact.upper and found.upper >= exact.lower
    assert found.lower > 0.5 * exact.lower


def test_questions_of_a_message_that_are_the_same_get_one_answer_made_once() -> None:
    site, method, guard = problem("hinge", 1), METHODS["cohort-bundle"], Takes(0)
    points = np.zeros((3, 5))
    points[2] = 1.0
    asked = {
        "points": points, "centre": points, "penalty": np.zeros(3), "counted": np.zeros((3, 0)),
        "of_norm": np.zeros((3, 5)), "sides": np.zeros((3, 4)),
    }
    found = accounted_answer(method.site, site, asked, method.parameters, guard)
    assert len(guard.asked) == len(set(guard.asked)) == 4, "a cut and a prox cut of each of two questions"
    for k, point in enumerate(points):
        one = {"point": point, "centre": point, "penalty": np.array(0.0)}
        alone = accounted_answer(METHODS["level-bundle"].site, site, one, {})
        for name, array in alone.arrays.items():
            np.testing.assert_array_equal(found.arrays[name][k], array)
    assert len(found.account.rows) == 6
