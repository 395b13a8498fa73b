"""What answers isolate: held to a search over all differences by the definition, and to the pseudo-inverse."""

from __future__ import annotations

import itertools
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.methods.row_account import RowAccount
from services.site_agent.policy import Refusal, SitePolicy
from services.site_agent.vault.dataset import Part
from services.site_agent.vault.exposure import SKETCH, Differences, Span
from services.site_agent.vault.exposure_gate import ExposureGate, data_digest
from services.site_agent.vault.exposure_record import ExposureRecord, directions_kept
from services.site_agent.vault.exposure_words import exposure_lines, exposure_summary

RUN, NEXT_RUN = "a" * 32, "b" * 32
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def alone(vector: np.ndarray, near: float = 1.4e-5) -> set[int]:
    """The row that a combination leaves alone, by the definition."""
    size = np.abs(vector)
    row = int(size.argmax())
    left = np.delete(size, row)
    return {row} if size[row] > 1e-9 and np.sqrt((left**2).sum()) <= near * size[row] else set()


def searched(vectors: np.ndarray) -> tuple[set[int], set[int]]:
    """Rows that pairs isolate, and pairs of pairs, one combination after the other."""
    known = [np.zeros(vectors.shape[1]), *vectors]
    pairs = [a - b for a, b in itertools.combinations(known, 2)]
    first = set().union(*(alone(each, 0.02) for each in pairs))
    signed = itertools.combinations(pairs, 2)
    return first, first.union(*(alone(a - b) | alone(a + b) for a, b in signed))


def activity(n_vectors: int, n_rows: int, seed: int) -> np.ndarray:
    """Coefficients like those of a hinge: nearly the same rows are active in all of them."""
    rng = np.random.default_rng(seed)
    start = rng.integers(0, 2, n_rows).astype(float)
    vectors = []
    for _ in range(n_vectors):
        start = start.copy()
        changed = rng.integers(0, n_rows, rng.integers(1, 4))
        start[changed] = rng.choice([0.0, 1.0, 0.37], changed.size)
        vectors.append(start / n_rows)
    return np.stack(vectors)


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


class Plain(Differences):
    """Every sum held to every row, nothing sorted out before and nothing remembered."""

    def _isolated_sums(self, one: Any, other: Any, signs: Any, angle_to_row: float) -> set[int]:
        sums = np.concatenate([np.add.outer(one, sign * other).diagonal(0, 1, 3).reshape(-1, SKETCH) for sign in signs])
        return self._isolated(sums, angle_to_row)

    def _isolated(self, combined: Any, angle_to_row: float) -> set[int]:
        sums, rows = np.meshgrid(np.arange(len(combined)), np.arange(self._n_rows), indexing="ij")
        found = self._confirmed(combined[sums.ravel()], rows.ravel(), angle_to_row)
        return set(np.flatnonzero(np.isin(self._alike, list(found))).tolist())

    def knows(self, sketch: np.ndarray) -> bool:
        return any(np.abs(sketch - each).max() <= 1e-12 for each in [*self.sketches, np.zeros(SKETCH)])

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


def part(n_rows: int = 40, seed: int = 0) -> Part:
    rng = np.random.default_rng(seed)
    return Part(rng.uniform(size=(n_rows, 3)), rng.integers(0, 2, n_rows), np.full(n_rows, np.nan))


def told(rows: np.ndarray) -> RowAccount:
    return RowAccount(tuple(rows))


def gate(path: Path | None, now: datetime = NOON, **limits: float | bool | None) -> ExposureGate:
    allowed: Any = {"exposure_limit": 1.0} | limits
    return ExposureGate(ExposureRecord(path), SitePolicy(**allowed), lambda: now)


def everyone(train: Part) -> np.ndarray:
    return np.ones(len(train), dtype=bool)


def test_the_record_survives_a_restart_and_belongs_to_the_data(tmp_path: Path) -> None:
    train, path = part(), tmp_path / "exposure.sqlite"
    vectors = activity(10, 40, 3)
    first = gate(path)
    for vector in vectors[:5]:
        first.admit(train, everyone(train), RUN, told(vector[None]))
    again, whole = gate(path), gate(None)
    figures = [again.admit(train, everyone(train), NEXT_RUN, told(vector[None])) for vector in vectors[5:]]
    straight = [whole.admit(train, everyone(train), RUN, told(vector[None])) for vector in vectors]
    assert figures == straight[5:]
    assert figures[-1].by_differences == len(searched(vectors)[1]) > 0
    assert path.stat().st_mode & 0o777 == 0o600
    other = part(seed=1)
    assert data_digest(other) != data_digest(train)
    assert again.admit(other, everyone(other), RUN, told(vectors[:1])).vectors == 1
    assert again.admit(train, everyone(train), RUN, told(vectors[:1])) == figures[-1], "the earlier rows are remembered"


def test_what_was_admitted_is_there_after_the_process_died_and_for_who_looks(tmp_path: Path) -> None:
    train, path, left = part(), tmp_path / "plant" / "exposure.sqlite", tmp_path / "left"
    path.parent.mkdir()
    record = ExposureRecord(path)
    door = ExposureGate(record, SitePolicy(exposure_limit=1.0), lambda: NOON)
    for vector in activity(10, 40, 3)[:4]:
        figures = door.admit(train, everyone(train), RUN, told(vector[None]))
        assert exposure_summary(path, SitePolicy())["vectors"] == figures.vectors, "while the agent runs"
    shutil.copytree(path.parent, left)  # as a process that is killed leaves it
    assert {each.stat().st_mode & 0o777 for each in left.iterdir()} == {0o600}
    assert gate(left / path.name).figures(train) == figures
    reader = ExposureRecord(path, looking=True)
    reader.close()
    record.close()
    assert exposure_summary(path, SitePolicy())["vectors"] == figures.vectors, "and after it has ended"
    assert [each.name for each in path.parent.iterdir()] == [path.name], "the file by itself is the whole record"
    assert gate(path).figures(train) == figures


def test_past_the_limit_nothing_leaves_and_nothing_is_recorded(tmp_path: Path) -> None:
    train, path = part(), tmp_path / "exposure.sqlite"
    steps = np.tril(np.ones((40, 40))) / 40
    door = gate(path, exposure_limit=0.25)
    for number in range(10):
        assert door.admit(train, everyone(train), RUN, told(steps[number][None])).by_differences == number + 1
    for _ in range(2):
        with pytest.raises(Refusal, match=r"isolate 11 of 40 rows, the policy allows a share of 0\.25") as caught:
            door.admit(train, everyone(train), RUN, told(steps[10][None]))
        assert caught.value.refusal_code == "exposure_limit"
    assert door.admit(train, everyone(train), RUN, told(steps[:3])).by_differences == 10, "a repeat may always leave"
    assert gate(path, exposure_limit=0.25).admit(train, everyone(train), RUN, told(steps[:1])).by_differences == 10


def test_leverage_has_a_limit_of_its_own() -> None:
    train, door = part(), gate(None, leverage_limit=0.0)
    rng = np.random.default_rng(0)
    with pytest.raises(Refusal, match="combinations of all answers would isolate 4 of 40 rows"):
        for _ in range(40):
            figures = door.admit(train, everyone(train), RUN, told(rng.uniform(size=(1, 40))))
    assert (figures.by_differences, figures.leveraged, figures.vectors) == (0, 0, 38)
    assert 0.9 < figures.leverage < 1


def test_rows_that_a_task_does_not_learn_from_are_not_exposed_by_it() -> None:
    train, door = part(), gate(None)
    known = np.arange(40) % 2 == 0
    door.admit(train, known, RUN, told(np.ones((1, 20))))
    figures = door.admit(train, ~known, RUN, told(np.ones((1, 20))))
    assert (figures.vectors, figures.rows, figures.by_differences) == (2, 40, 0), "other rows, another vector"


def test_answers_and_runs_have_budgets_by_the_version_of_the_data() -> None:
    train, other = part(), part(seed=1)
    record = ExposureRecord(None)

    def door(hours: float) -> ExposureGate:
        policy = SitePolicy(max_answers_per_run=2, max_runs_per_day=1)
        return ExposureGate(record, policy, lambda: NOON + timedelta(hours=hours))

    for _ in range(2):
        door(0).check_budget(train, RUN)
        door(0).admit(train, everyone(train), RUN, RowAccount())
    for hours, rows, run, fits in (
        (1, train, RUN, False), (1, train, NEXT_RUN, False), (1, other, RUN, True), (23.9, train, NEXT_RUN, False),
        (24.1, train, NEXT_RUN, True), (24.1, train, RUN, False),
    ):
        if fits:
            door(hours).check_budget(rows, run)
        else:
            with pytest.raises(Refusal) as caught:
                door(hours).check_budget(rows, run)
            assert caught.value.refusal_code == "budget_spent"


def test_the_words_say_the_figures(tmp_path: Path) -> None:
    path, policy = tmp_path / "exposure.sqlite", SitePolicy(max_runs_per_day=7)
    assert exposure_lines(exposure_summary(path, policy)) == ["Nothing has been answered about the data yet."]
    train, door = part(), gate(path)
    steps = np.tril(np.ones((40, 40))) / 40
    door.admit(train, everyone(train), RUN, RowAccount())
    door.admit(train, everyone(train), RUN, told(steps[:3]))
    summary = exposure_summary(path, policy, NOON + timedelta(hours=1))
    assert (summary["by_pairs"], summary["answers"], summary["runs"], summary["runs_left_today"]) == (3, 2, 1, 6)
    text = "\n".join(exposure_lines(summary))
    for words in ("2 answers in 1 runs about the present 40", "3 of 40 rows can be read off exactly", "allows 0.",
                  "leverage of a row over all answers is 1.000; 3 rows", "6 more runs"):
        assert words in text, text
    door.admit(train, everyone(train), RUN, RowAccount((), False))
    text = "\n".join(exposure_lines(exposure_summary(path, policy, NOON + timedelta(hours=1))))
    assert "40 of 40 rows can be read off" in text and "1 answers said more" in text, text


def test_an_answer_that_says_more_than_its_account_counts_for_every_row_and_needs_a_policy_that_takes_it() -> None:
    train = part()
    for limit in (0.0, 0.5, 0.99):
        with pytest.raises(Refusal, match="all of them count"):
            strict = gate(None, exposure_limit=limit, allow_unaccounted=False)
            strict.admit(train, everyone(train), RUN, RowAccount((), False))
    figures = gate(None, exposure_limit=0.0).admit(train, everyone(train), RUN, RowAccount((), False))
    assert (figures.by_pairs, figures.by_differences, figures.leveraged, figures.unaccounted) == (40, 40, 40, 1)


def test_rows_of_the_same_features_hide_nothing_behind_one_another() -> None:
    train = part()
    train.features[7] = train.features[3]
    door, first, second = gate(None), np.full(40, 0.01), np.full(40, 0.01)
    second[[3, 7]] += 0.01
    door.admit(train, everyone(train), RUN, told(first[None]))
    found = door.admit(train, everyone(train), RUN, told(second[None]))
    assert (found.by_pairs, found.leveraged) == (2, 2)


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
