"""The vault's guard isolates nothing, whatever is asked, and draws by its secret."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from models.geometry.supports import BoxSupport
from models.losses.catalogue import get_loss
from models.methods.catalogue import METHODS
from models.methods.guard import MOVES, Minorant, Near
from models.methods.row_account import RowAccount, accounted_answer
from models.problem import RobustSpec, SiteProblem
from models.simulation.federation import train
from models.worst_case.risk import site_risk
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.vault.dataset import Part
from services.site_agent.vault.isolation.exposure import Differences
from services.site_agent.vault.isolation.guard import VaultGuard
from services.site_agent.vault.isolation.sketches import SKETCH
from services.site_agent.vault.records.exposure_gate import ExposureGate
from services.site_agent.vault.records.exposure_record import ExposureRecord

Make = Callable[[int, np.random.Generator], np.ndarray]


def guard(n_rows: int, secret: bytes = b"secret") -> VaultGuard:
    differences = Differences(n_rows, 1, np.zeros((0, SKETCH)), set(), set())
    return VaultGuard(differences, secret, lambda rows: rows, lambda question: None)


def isolated(vectors: list[np.ndarray]) -> set[int]:
    """Rows that a vector, two or four of them leave alone, by the definition."""
    known = [np.zeros_like(vectors[0]), *vectors]
    pairs = np.array([a - b for a, b in itertools.combinations(known, 2)])
    found: set[int] = set()
    for combined in (pairs, *(pairs - each for each in pairs), *(pairs + each for each in pairs)):
        size = np.abs(combined)
        left = np.sqrt(np.maximum((size**2).sum(axis=1) - size.max(axis=1) ** 2, 0.0))
        found.update(size.argmax(axis=1)[(left <= 1e-5 * size.max(axis=1)) & (size.max(axis=1) > 1e-7)].tolist())
    return found


def problems(seed: int, count: int = 3, loss: str = "hinge") -> dict[str, SiteProblem]:
    rng, plane = np.random.default_rng(seed), np.random.default_rng(seed + 100).normal(size=4)
    sites = {}
    for number in range(count):
        x = np.round(rng.uniform(size=(30, 4)), 1)
        score = x @ plane + 0.3 * rng.normal(size=30)
        labels = np.where(score > np.median(score), 1.0, -1.0)
        sites[f"s{number}"] = SiteProblem(x, labels, RobustSpec(0.003, 1.0, loss=get_loss(loss)))
    return sites


class Noting:
    """A guard that writes down the vectors that leave through another."""

    def __init__(self, inner: VaultGuard) -> None:
        self.inner, self.left = inner, list[np.ndarray]()

    def choose(self, question, candidate, vectors):  # type: ignore[no-untyped-def]  # as the one inside
        found = self.inner.choose(question, candidate, vectors)
        self.left.extend(vectors(found))
        return found

    def choose_cut(self, question, near, exact, other):  # type: ignore[no-untyped-def]  # as the one inside
        found = self.inner.choose_cut(question, near, exact, other)
        self.left.append(found.rows)
        return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["level-bundle-plain", "fdr-sm"])
def test_honest_runs_isolate_nothing_by_the_definition(name: str, seed: int) -> None:
    sites = problems(seed)
    guards = {site: Noting(guard(30)) for site in sites}
    train(sites, method=name, gap=1e-4, max_rounds=20, guards=guards)
    plain = {site: Noting(guard(30)) for site in sites}
    for each in plain.values():
        each.inner.choose = lambda question, candidate, vectors: candidate(0, None)  # type: ignore[method-assign]
        each.inner.choose_cut = lambda question, near, exact, other: exact  # type: ignore[method-assign]
    train(sites, method=name, gap=1e-4, max_rounds=20, guards=plain)
    assert not any(isolated(each.left) for each in guards.values())
    assert any(isolated(each.left) for each in plain.values()), "without one they do"


def test_questions_that_ask_for_rows_get_vectors_that_have_none() -> None:
    site, door, half = problems(5)["s0"], Noting(guard(30)), METHODS["level-bundle-plain"].site
    for threshold in np.linspace(0.05, 0.95, 40):
        accounted_answer(half, site, {"point": np.array([1e3, 0.0, 0.0, 0.0, -1e3 * threshold])}, {}, door)
    assert len(door.left) == 40 and not isolated(door.left[-16:]) and not isolated(door.left[::3])
    assert 0 < len(door.inner.choices) < 40


def test_the_first_candidate_that_isolates_nothing_leaves_and_the_last_always_may() -> None:
    door, one, tried = guard(20), np.eye(20)[3] / 20, list[int]()
    base = np.full(20, 0.05)
    assert door.choose(b"first", lambda number, random: base, lambda rows: [rows]) is base

    def candidate(number: int, random: np.random.Generator) -> np.ndarray:
        tried.append(number)
        return base + one if number < 4 else base + one + np.eye(20)[5] / 20

    taken = door.choose(b"second", candidate, lambda rows: [rows])
    assert (tried, list(door.choices.values())) == ([0, 1, 2, 3, 4], [4]) and taken[5] > 0.05
    tried.clear()
    door.choose(b"second", candidate, lambda rows: [rows])
    assert tried == [4], "the same question gets the same candidate at once"
    last = door.choose(b"third", lambda number, random: base + 0.7 * one, lambda rows: [rows])
    assert sorted(door.choices.values()) == [4, MOVES + 1] and last is not base


def test_the_draw_is_the_secrets_and_the_questions() -> None:
    def drawn(secret: bytes, question: bytes) -> float:
        found: float = guard(20, secret).choose(question, lambda number, random: random.uniform(), lambda each: [])
        return found

    assert drawn(b"a", b"q") == drawn(b"a", b"q")
    assert len({drawn(b"a", b"q"), drawn(b"b", b"q"), drawn(b"a", b"r")}) == 3


def test_choices_and_the_secret_outlive_the_agent_and_belong_to_the_rows(tmp_path: Path) -> None:
    part = Part(np.random.default_rng(0).uniform(size=(20, 3)), np.arange(20) % 2, np.full(20, np.nan))
    everyone, path = np.ones(20, dtype=bool), tmp_path / "exposure.sqlite"

    def door() -> ExposureGate:
        now = datetime(2026, 1, 5, tzinfo=UTC)
        return ExposureGate(ExposureRecord(path), SitePolicy(), lambda: now)

    told = list[np.ndarray]()

    def asked(gate: ExposureGate, rows: Part) -> tuple[VaultGuard, int]:
        tried = list[int]()

        def candidate(number: int, random: np.random.Generator) -> np.ndarray:
            tried.append(number)
            return np.eye(20)[3] if number < 2 else random.uniform(size=20)

        chosen = gate.guard(rows, everyone)
        found = chosen.choose(b"question", candidate, lambda each: [each])
        gate.admit(rows, everyone, "a" * 32, RowAccount((found,)), chosen.choices)
        told.append(found)
        return chosen, len(tried)

    first, tries = asked(door(), part)
    again, later = asked(door(), part)
    assert (tries, later) == (3, 1) and first.choices == again.choices
    assert np.array_equal(*told), "by the same draw"
    other = Part(part.features[::-1].copy(), part.classes, part.targets)
    assert asked(door(), other)[1] == 3
    assert ExposureRecord(path).secret() == ExposureRecord(path).secret() != ExposureRecord(None).secret()
    assert len(ExposureRecord(path).secret()) == 32


def test_a_choice_that_may_not_leave_any_more_gives_way_to_the_one_that_did() -> None:
    """Else the next time would try the former one again, and might tell both."""
    differences = Differences(20, 1, np.zeros((0, SKETCH)), set(), set())
    before = VaultGuard(differences, b"secret", lambda rows: rows, lambda question: 1)
    plain = np.random.default_rng(0).uniform(size=20)
    found = before.choose(b"question", lambda number, _: np.eye(20)[3] if number else plain, lambda each: [each])
    assert np.array_equal(found, plain) and list(before.choices.values()) == [0]


def test_what_is_not_admitted_was_not_chosen() -> None:
    part = Part(np.random.default_rng(0).uniform(size=(20, 3)), np.arange(20) % 2, np.full(20, np.nan))
    everyone, gate = np.ones(20, dtype=bool), ExposureGate(ExposureRecord(None), SitePolicy())
    half = np.full(20, 0.05)
    gate.guard(part, everyone).choose(b"refused later", lambda number, random: half, lambda each: [each])
    assert gate.admit(part, everyone, "a" * 32, RowAccount()).vectors == 0


def old_questions(door: VaultGuard, count: int) -> list[bytes]:
    """Questions that may be answered by an earlier cut."""
    named = (f"question {number}".encode() for number in itertools.count())
    may = (each for each in named if door._key(each + b"new")[0] >= 64)  # a quarter of all may not
    return list(itertools.islice(may, count))


def test_an_earlier_cut_is_told_again_where_a_mean_would_be_looser_and_again_after_a_restart() -> None:
    base, one, near = np.full(20, 0.05), np.eye(20)[3] / 20, Near(np.zeros(2), 0.0, b"a risk")
    door = guard(20)
    first, second, third = old_questions(door, 3)
    sent = door.choose_cut(first, near, cut(1.0, base), lambda number, random: cut(0.0, base))
    exact, loose = cut(1.01, base + one), cut(0.9, base + one + np.eye(20)[5] / 20)
    assert door.choose_cut(second, near, exact, lambda number, random: loose) is sent
    tight = cut(1.005, base + one + np.eye(20)[6] / 20)
    assert door.choose_cut(third, near, exact, lambda number, random: tight) is tight
    later = VaultGuard(
        Differences(20, 1, np.zeros((0, SKETCH)), set(), set()), b"secret", lambda rows: rows, door.choices.get
    )
    again = later.choose_cut(second, near, exact, lambda number, random: tight)
    assert (again.offset, again.norm_weight) == (sent.offset, sent.norm_weight)
    np.testing.assert_array_equal(again.slope, sent.slope)
    np.testing.assert_array_equal(again.rows, sent.rows)
    other = Near(np.zeros(2), 0.0, b"another risk")
    assert door.choose_cut(b"of another", other, exact, lambda number, random: loose) is loose


def test_an_earlier_cut_that_may_not_leave_does_not_leave_last() -> None:
    near = Near(np.zeros(2), 0.0, b"a risk")
    alone, zero = cut(1.0, np.eye(20)[3] / 20), cut(0.0, np.zeros(20))
    differences, left = Differences(20, 1, np.zeros((0, SKETCH)), set(), set()), {b"a risk": deque([alone])}
    door = VaultGuard(differences, b"secret", lambda rows: rows, lambda question: None, left)
    exact = cut(2.0, np.eye(20)[4] / 20)
    assert door.choose_cut(b"q", near, exact, lambda number, random: zero if number > MOVES else alone) is zero
    lower = cut(0.5, np.full(20, 0.05))
    left[b"a risk"].extend([lower, cut(-1.0, np.full(20, 0.04))])
    found = door.choose_cut(b"r", near, exact, lambda number, random: zero if number > MOVES else alone)
    assert found is lower, "the tightest of those that may"


def test_a_cut_that_left_many_times_and_may_not_leave_does_not_stand_before_all_others() -> None:
    near, zero = Near(np.zeros(2), 0.0, b"a risk"), cut(0.0, np.zeros(20))
    many = [cut(1.0 + 1e-15 * number, np.eye(20)[3] / 20) for number in range(100)]
    lower = cut(0.5, np.full(20, 0.05))
    door = VaultGuard(
        Differences(20, 1, np.zeros((0, SKETCH)), set(), set()), b"secret", lambda rows: rows, lambda question: None,
        {b"a risk": deque([lower, *many])},
    )
    exact = cut(2.0, np.eye(20)[4] / 20)
    assert door.choose_cut(b"q", near, exact, lambda number, random: zero if number > MOVES else many[0]) is lower


def test_how_far_above_a_risk_is_told_is_the_secrets_and_the_questions() -> None:
    near, exact = Near(np.zeros(2), 0.0), cut(1.0, np.eye(20)[4] / 20)

    def above(secret: bytes = b"secret", question: bytes = b"q", most_above: float = 0.5) -> float:
        door = VaultGuard(
            Differences(20, 1, np.zeros((0, SKETCH)), set(), set()), secret, lambda rows: rows, lambda each: None,
            most_above=most_above,
        )
        found = door.choose_cut(question, near, exact, lambda number, random: cut(0.9, np.full(20, 0.05)))
        assert found.rows is not exact.rows, "one row alone may not leave"
        assert found.above <= most_above
        return found.above

    assert above() == above() > 0
    assert len({above(), above(b"another"), above(question=b"r")}) == 3
    assert above(most_above=0.0) == 0


def cut(height: float, rows: np.ndarray) -> Minorant:
    return Minorant(height, np.zeros(2), 0.0, None, rows)


def test_what_answers_a_question_as_before_counts_for_the_next_one() -> None:
    differences, moved = Differences(20, 1, np.zeros((0, SKETCH)), set(), set()), np.arange(20) / 400
    chosen = {guard(20)._key(b"first"): 2}
    door = VaultGuard(differences, b"secret", lambda rows: rows, chosen.get)
    assert door.choose(b"first", lambda number, random: moved, lambda rows: [rows]) is moved
    one = moved + np.eye(20)[3] / 20
    door.choose(b"second", lambda number, random: one if number == 0 else one * 1.5, lambda rows: [rows])
    assert list(door.choices.values()) == [2, 1]


def test_what_leaves_unasked_as_the_last_candidate_counts_for_the_next_one() -> None:
    door, alone, last = guard(20), np.eye(20)[7] / 20, np.arange(20) / 400
    door.choose(b"first", lambda number, random: last if number > MOVES else (number + 1) * alone, lambda rows: [rows])
    one = last + np.eye(20)[3] / 20
    door.choose(b"second", lambda number, random: one if number == 0 else one * 1.5, lambda rows: [rows])
    assert list(door.choices.values()) == [MOVES + 1, 1]


def test_what_answered_a_question_and_would_isolate_a_row_by_now_is_another_and_remembered(tmp_path: Path) -> None:
    part = Part(np.random.default_rng(0).uniform(size=(20, 3)), np.arange(20) % 2, np.full(20, np.nan))
    everyone, gate = np.ones(20, dtype=bool), ExposureGate(ExposureRecord(tmp_path / "record.sqlite"), SitePolicy())
    base, random = np.full(20, 0.05), np.random.default_rng(4)
    offered = [base + np.eye(20)[3], base + random.uniform(size=20), base + random.uniform(size=20)]

    tried = list[int]()

    def asked(question: bytes, *candidates: np.ndarray) -> np.ndarray:
        guard = gate.guard(part, everyone)
        tried.clear()

        def candidate(number: int, random: np.random.Generator) -> np.ndarray:
            tried.append(number)
            return candidates[number]

        found = guard.choose(question, candidate, lambda each: [each])
        gate.admit(part, everyone, "a" * 32, RowAccount((found,)), guard.choices)
        return found

    gate.admit(part, everyone, "a" * 32, RowAccount((base,)))
    assert asked(b"first", *offered) is offered[1], "without the row that the difference with base shows"
    gate.admit(part, everyone, "a" * 32, RowAccount((random.uniform(size=20),)))
    # By now something has left that shows a row beside the first answer, by another plan's question, say.
    beside = [offered[0], offered[1] + np.eye(20)[7], offered[2]]
    assert asked(b"first", *beside) is offered[2] and tried == [1, 0, 1, 2]
    assert asked(b"first", *beside) is offered[2] and tried == [2], "which is remembered"
    assert not gate.figures(part).by_differences


def test_a_cut_told_again_is_of_the_same_risk() -> None:
    """The points that a run over all space asked are asked on a box: a cut of the higher risk is no bound there."""
    free, box = problems(5)["s0"], BoxSupport(np.zeros(4), np.ones(4))
    boxed = SiteProblem(free.features, free.labels, replace(free.spec, support=box))
    half, door = METHODS["level-bundle-plain"].site, guard(30)
    for site in (free, boxed):
        for threshold in np.repeat(np.linspace(0.05, 0.95, 40), 2) + np.tile([0.0, 1e-7], 40):
            asked = {"point": np.array([1e3, 0.0, 0.0, 0.0, -1e3 * threshold])}
            said = accounted_answer(half, site, asked, {}, door).arrays
            assert ("swing" in said) == (site is boxed)
            assert said["cut_height"] <= site_risk(asked["point"], site).value + 1e-9
        assert any(isinstance(each, bytes) for each in door.choices.values()), "some cut was told again"
