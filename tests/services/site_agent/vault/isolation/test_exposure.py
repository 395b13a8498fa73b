"""What answers isolate: held to a search over all differences by the definition, and to the pseudo-inverse."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from services.site_agent.vault.isolation.exposure import Differences
from services.site_agent.vault.isolation.sketches import SKETCH, largest
from services.site_agent.vault.isolation.span import Span
from services.site_agent.vault.records.exposure_record import directions_kept
from tests.oracles.isolated_rows import activity, searched

RUN, NEXT_RUN = "a" * 32, "b" * 32
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n_rows", [7, 30, 400])
def test_rows_isolated_by_differences_are_those_of_a_search_by_the_definition(n_rows: int, seed: int) -> None:
    vectors = activity(12, n_rows, seed)
    found = Differences(n_rows, seed, np.zeros((0, SKETCH)), set(), set())
    for vector in vectors:
        sketch = found.sketch(vector)
        if not found.knows(sketch):
            found.add(sketch)
    pairs, differences = searched(vectors)
    assert (found.pairs, found.differences) == (pairs, differences)
    assert found.pairs and len(found.differences) < n_rows or n_rows < 100


def test_what_is_nearly_a_row_alone_counts_where_sums_are_held_to_the_rows_too() -> None:
    """A sum is another row's multiple by chance only within a far smaller angle than a pair of vectors leaves one."""
    draw, n_rows = np.random.default_rng(4), 40
    found = Differences(
        n_rows, 4, np.zeros((0, SKETCH)), set(), set(), features=draw.standard_normal((n_rows, 6))
    )
    first, beside = draw.standard_normal((2, n_rows))
    alone = np.zeros(n_rows)
    alone[7] = 1.0
    for vector in (first, first + alone + 1e-3 * beside / np.linalg.norm(beside)):
        found.add(found.sketch(vector))
    assert found.pairs == {7}


class Plain(Differences):
    """Every sum held to every row, nothing sorted out before and nothing remembered."""

    def _by_differences(self, sketch: np.ndarray) -> set[int]:
        recent = [np.zeros(SKETCH), *self.sketches[-32:]]
        older = [one - other for one, other in itertools.permutations(recent, 2)]
        newer = [sketch - each for each in recent]
        older += [-each for each in newer]
        return self._isolated(np.array([one - other for one in newer for other in older]), self._combined_angle)

    def by_pairs(self, sketch: np.ndarray) -> set[int]:
        known = np.vstack([self.sketches, np.zeros(SKETCH)])
        return self._isolated(sketch - known, self._pair_angle)

    def _isolated(self, combined: Any, angle_to_row: float) -> set[int]:
        sums, rows = np.meshgrid(np.arange(len(combined)), np.arange(self._n_rows), indexing="ij")
        rounding = np.full(sums.size, 1e-12)
        found = self._rows.confirmed(combined[sums.ravel()], rows.ravel(), angle_to_row, rounding)
        return set(np.flatnonzero(np.isin(self._alike, list(found))).tolist())

    def knows(self, sketch: np.ndarray) -> bool:
        return any(np.abs(sketch - each).max() <= 1e-12 for each in [*self.sketches, np.zeros(SKETCH)])

    def renew(self, sketch: np.ndarray) -> None:
        told = [each for each in self.sketches if np.abs(sketch - each).max() > 1e-12]
        if len(told) < len(self.sketches):
            self.sketches = np.array(told).reshape(-1, SKETCH)
            self.add(sketch)

    def add(self, sketch: np.ndarray, by_pairs: set[int] | None = None) -> None:
        self.pairs |= self.by_pairs(sketch)
        self.differences |= self._by_differences(sketch) | self.pairs
        self.sketches = np.vstack([self.sketches, sketch])


@pytest.mark.parametrize("seed", range(8))
def test_what_is_sorted_out_and_remembered_changes_no_decision(seed: int) -> None:
    """Answers of one to three vectors, as the guard tries them on a copy and the gate then takes them or does not."""
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(4, 30))
    alike = np.arange(n_rows)
    alike[rng.integers(n_rows, size=n_rows // 4)] = 0
    fast, plain = (kind(n_rows, seed, np.zeros((0, SKETCH)), set(), set(), alike) for kind in (Differences, Plain))
    vectors = [*activity(14, n_rows, seed), np.zeros(n_rows), np.eye(n_rows)[1] / n_rows]
    for _ in range(8):
        answer = [vectors[place] for place in rng.integers(len(vectors), size=rng.integers(1, 4))]
        answer[0] = (1.0 - 0.004 * rng.integers(2)) * answer[0] + 0.004 * rng.integers(2) * answer[-1]
        tried, wanted = fast.copy(), plain.copy()
        may = wanted.admits(answer)
        assert tried.admits(answer) == may
        assert (tried.pairs, tried.differences) == (wanted.pairs, wanted.differences)
        if may or rng.random() < 0.5:  # at the end of its candidates something leaves whatever it isolates
            fast.take(answer)
            plain.take(answer)
        assert (fast.pairs, fast.differences) == (plain.pairs, plain.differences)
        assert np.array_equal(fast.sketches, plain.sketches)
        assert all(np.array_equal(each.sizes, largest(each.sketches)) for each in (fast, tried))


def test_what_the_guard_tried_is_not_searched_again_when_it_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    searched, by_differences = list[int](), Differences._by_differences

    def counted(differences: Differences, sketch: np.ndarray) -> set[int]:
        searched.append(len(differences.sketches))
        return by_differences(differences, sketch)

    monkeypatch.setattr(Differences, "_by_differences", counted)
    kept = Differences(60, 1, np.zeros((0, SKETCH)), set(), set())
    halves = np.random.default_rng(2).integers(0, 2, (4, 60)) / 60
    assert kept.copy().admits(halves[:2])
    kept.take(halves[:2])
    assert searched == [0, 1]
    kept.take(halves[2:3])
    assert searched == [0, 1, 2]
    other = Differences(60, 1, kept.sketches[1:2], set(), set())  # the same vector after others is another question
    other._found = kept._found
    other.take(halves[2:3])
    assert searched == [0, 1, 2, 1]


def test_a_difference_of_two_rows_isolates_none_and_a_tiny_rest_hides_nothing() -> None:
    base = np.full(50, 0.02)
    for change, rows in (({3: 0.01, 4: 0.01}, set()), ({3: 0.01, 4: 1e-5}, {3}), ({3: 0.01, 4: 3e-4}, set())):
        found = Differences(50, 1, np.zeros((0, SKETCH)), set(), set())
        found.add(found.sketch(base))
        other = base.copy()
        for row, size in change.items():
            other[row] += size
        found.add(found.sketch(other))
        assert found.pairs == rows, change


@pytest.mark.parametrize("size", [1e-3, 1e-17, 1e-80])
def test_a_vector_that_is_faint_as_a_whole_has_all_its_digits(size: float) -> None:
    """A message's step size makes it whole again, and a number in double precision is read at any size."""
    found = Differences(50, 1, np.zeros((0, SKETCH)), set(), set())
    halves = np.full((2, 50), size / 50)
    halves[1, 7] = 0.0
    assert found.admits([np.full(50, 0.02)]) and found.admits(halves[:1])
    assert found.admits(halves[:1]), "the very vector once more is nothing new"
    assert not found.admits(halves[1:]) and not found.admits([size * np.eye(50)[3]])
    found.take(halves[1:])
    assert found.pairs == {7} and len(found.sketches) == 3


@pytest.mark.parametrize("size", [1e-10, 1e-6, 1e-2])
def test_two_vectors_that_hardly_differ_give_the_row_along_which_they_do(size: float) -> None:
    found, base = Differences(50, 1, np.zeros((0, SKETCH)), set(), set()), np.full(50, 0.02)
    assert found.admits([base])
    assert found.admits([base.copy()]), "the very vector once more is nothing new"
    other = base.copy()
    other[7] += size / 50
    assert not found.admits([other]) and found.pairs == set()
    found.take([other])
    assert found.pairs == {7}


@pytest.mark.parametrize("seed", range(4))
def test_leverage_is_that_of_the_pseudo_inverse(seed: int) -> None:
    vectors = activity(25, 40, seed)
    vectors[10] = vectors[3] - 2.0 * vectors[5]
    span = Span(40, np.zeros((0, 40)), 40)
    added = [span.add(vector) for vector in vectors]
    matrix = vectors * 40
    expected = np.diag(np.linalg.pinv(matrix, rcond=1e-10) @ matrix)
    np.testing.assert_allclose(span.leverage, expected, atol=1e-9)
    assert sum(each is not None for each in added) == np.linalg.matrix_rank(matrix)


def test_a_span_that_is_full_takes_every_row_for_isolated() -> None:
    span = Span(6, np.zeros((0, 6)), 2)
    for row in range(3):
        assert (span.leverage < 1).any()
        span.add(np.eye(6)[row])
    assert span.full and (span.leverage == 1).all()
    assert directions_kept(300) == 300 and directions_kept(2**21) == 2


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_a_difference_of_differences_is_found_in_whichever_order_the_answers_came(order: tuple[int, ...]) -> None:
    base = np.full(50, 0.01)
    first, second, last = np.zeros((3, 50))
    first[[1, 2]], second[[3, 4]] = 0.01, 0.02
    last[5] = 0.005
    vectors = np.stack([base, base + first, base + second, base + first + second + last])
    found = Differences(50, 2, np.zeros((0, SKETCH)), set(), set())
    for number in order:
        found.add(found.sketch(vectors[number]))
    assert (found.pairs, found.differences) == (set(), {5})


@pytest.mark.parametrize(("others", "counts"), [(7e-5, True), (1e-4, True), (1e-2, False)])
def test_a_row_hardly_hidden_in_a_difference_of_differences_counts(others: float, counts: bool) -> None:
    """Rows of one table are much alike: of what hides a row, a part alone lies across it."""
    draw = np.random.default_rng(4)
    first, middle, aside = draw.uniform(0, 0.05, (3, 20))
    aside[14] = 0.0
    shown = np.eye(20)[14] / 20 + others / 20 * aside / np.linalg.norm(aside)
    found = Differences(20, 7, np.empty((0, SKETCH)), set(), set())
    found.take([first, middle, shown - first + 2.0 * middle])
    assert found.pairs == set()
    assert found.differences == ({14} if counts else set())


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_vector_counted_twice_is_held_to_two_others(order: tuple[int, ...]) -> None:
    """``2 s - a - b`` is a row whichever of the three came last."""
    ends = np.random.default_rng(3).uniform(size=(2, 50)) / 50
    vectors = [*ends, ends.mean(axis=0) + 0.005 * np.eye(50)[5]]
    found = Differences(50, 1, np.zeros((0, SKETCH)), set(), set())
    for place in order:
        found.add(found.sketch(vectors[place]))
    assert (found.pairs, found.differences) == (set(), {5})


def told_long_ago(n_rows: int) -> tuple[Differences, list[np.ndarray], np.ndarray]:
    """A vector, forty others, and two more; and what the first and those two leave of a row, with a fourth."""
    draw = np.random.default_rng(7)
    first, *others, second, third = draw.random((43, n_rows)) / n_rows
    found = Differences(n_rows, 7, np.zeros((0, SKETCH)), set(), set())
    found.take([first, *others, second, third])
    fourth = second + third - first
    fourth[5] += 0.5 / n_rows
    assert found.differences == set()
    return found, [first, second, third], fourth


def test_a_vector_that_is_told_again_is_one_of_the_last_again() -> None:
    found, (first, _, _), fourth = told_long_ago(60)
    forgotten = found.copy()
    forgotten.take([fourth])
    assert forgotten.differences == set(), "it is held to the last vectors, of which the first is none"
    assert found.admits([first]), "by itself it shows nothing new"
    assert len(found.sketches) == 43 and not found.admits([fourth])
    found.take([fourth])
    assert found.differences == {5}


def test_a_vector_that_is_told_again_is_held_to_what_came_meanwhile() -> None:
    found, (first, _, _), fourth = told_long_ago(60)
    found.take([fourth])
    assert found.differences == set() and not found.admits([first])
    found.take([first])
    assert found.differences == {5}
