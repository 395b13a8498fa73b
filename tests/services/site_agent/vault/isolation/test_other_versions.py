"""Numbers of rows that say the same in every version of the data, and what sums of them leave alone."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Sequence

import numpy as np
import pytest

from services.site_agent.vault.isolation import other_versions
from services.site_agent.vault.isolation.factors import ANY_KIND
from services.site_agent.vault.isolation.other_versions import OtherVersions, row_marks
from services.site_agent.vault.isolation.sketches import OF_READINGS
from services.site_agent.vault.records import known_rows

DEPTH, ANGLE = 32, 1e-4
NOBODY = np.zeros(0, dtype=np.int64)


def row_numbers(secret: bytes, readings: np.ndarray) -> np.ndarray:
    """Numbers of rows by their readings."""
    columns = [f"x{column}" for column in range(readings.shape[1])]
    return other_versions.row_numbers(secret, row_marks(readings, columns))


@pytest.mark.parametrize("seed", range(6))
def test_rows_that_two_or_four_vectors_of_two_versions_leave_alone_are_those_of_a_search(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = rng.uniform(size=(12, 2))
    numbers = row_numbers(b"secret", features)
    before, now = np.arange(0, 10), np.arange(2, 12)  # rows 0 and 1 went, 10 and 11 came
    told = np.zeros((5, 12))
    told[:, before] = rng.integers(0, 2, (5, 10))
    late = np.zeros((3, 12))
    late[:, now] = rng.integers(0, 2, (3, 10))
    late[2] = np.where(np.isin(np.arange(12), now), told[1], 0.0)
    late[2, 11] = 1.0
    late[2, :2], told[1, :2] = 0.0, 0.0
    others = OtherVersions(numbers[now], numbers[:2], np.array([1, 2]), told @ numbers, np.full(5, 0.5))

    def names(rows: set[int]) -> set[int]:
        return {-1 - row if row < 2 else row - 2 for row in rows}

    def alone(sums: Sequence[np.ndarray]) -> set[int]:
        return {int(np.flatnonzero(each)[0]) for each in sums if np.count_nonzero(each) == 1}

    found = others.pairs(late[2] @ numbers, ANGLE)
    assert found == names(alone([late[2] - each for each in told])) and 9 in found
    recent = [np.zeros(12), *told, *late[:2]]
    sums = [late[2] + b - c - d for b, c, d in itertools.product(recent, recent, recent)]
    sums += [2 * late[2] - c - d for c, d in itertools.product(recent, recent)]
    by_four = others.differences(late[2] @ numbers, late[:2] @ numbers, np.full(3, 0.5), DEPTH, ANGLE)
    assert by_four == names(alone(sums))
    assert not others.differences(late[2] @ numbers, late[:2] @ numbers, np.full(3, 0.5), 2, ANGLE), "told long ago"


def test_of_many_rows_and_vectors_exactly_those_are_found_that_are_left_alone() -> None:
    rng = np.random.default_rng(11)
    numbers = row_numbers(b"secret", rng.uniform(size=(4000, 2)))
    told = rng.integers(0, 2, (300, 4000)) * 1.0
    vectors = told @ numbers
    others = OtherVersions(numbers, numbers[:0], NOBODY, vectors, np.full(300, 0.5))
    new = told[17].copy()
    new[2345] -= 1.0
    hidden = new.copy()
    hidden[77] += 0.001
    beside = new.copy()
    beside[77] += 0.01
    for vector, found in ((new, {2345}), (hidden, {2345}), (beside, set())):
        assert others.pairs(vector @ numbers, 0.002) == found
    assert not others.pairs(vectors[17] + 3e-11 * numbers[5], 0.002), "rounding"
    assert others.pairs(vectors[17] + 1e-8 * numbers[5], 0.002) == {5}
    assert not others.pairs(rng.uniform(size=4000) @ numbers, 0.002)


def test_the_last_vectors_are_held_to_one_another_and_the_new_one_twice() -> None:
    rng = np.random.default_rng(12)
    numbers, told = row_numbers(b"secret", rng.uniform(size=(40, 2))), rng.integers(0, 2, (6, 40)) * 1.0
    new = rng.uniform(size=40)
    told[4] = 2.0 * new - told[5]
    told[4, 9] += 1.0
    none = np.zeros((0, OF_READINGS))
    for vectors, found in ((told, {9}), (told[::-1], set())):
        others = OtherVersions(numbers, none, NOBODY, vectors @ numbers, np.full(6, 0.5))
        assert others.differences(new @ numbers, none, np.array([0.5]), 2, ANGLE) == found


def test_a_row_that_is_gone_goes_by_its_name() -> None:
    numbers = row_numbers(b"secret", np.random.default_rng(3).uniform(size=(9, 2)))
    told = np.ones((1, 9)) @ numbers
    others = OtherVersions(numbers[2:], numbers[:2], np.array([17, 4]), told, np.array([0.5]))
    assert others.pairs(told[0] - numbers[0], ANGLE) == {-17}
    assert others.pairs(told[0] - 0.5 * numbers[1], ANGLE) == {-4}
    assert others.pairs(told[0] - numbers[2], ANGLE) == {0}
    assert not others.pairs(told[0] - numbers[0] - numbers[1], ANGLE)


def test_of_unlike_kinds_any_factors_are_looked_through() -> None:
    numbers = row_numbers(b"secret", np.random.default_rng(0).uniform(size=(20, 2)))
    base, other = np.random.default_rng(1).uniform(size=(2, 20))
    new = 1.7 * base - 0.3 * other
    new[4] += 1.0
    told = np.vstack([base, other]) @ numbers
    others = OtherVersions(numbers, np.zeros((0, OF_READINGS)), NOBODY, told, np.full(2, 0.5))
    for kind, expected in ((0.5, set()), (0.7, {4}), (ANY_KIND, {4})):
        found = others.differences(new @ numbers, np.zeros((0, OF_READINGS)), np.array([kind]), DEPTH, ANGLE)
        assert found == expected


def test_rows_are_known_by_their_names_and_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_rows, "ROWS_KEPT", 6)
    base = sqlite3.connect(":memory:")
    base.executescript(known_rows.TABLE)
    numbers = row_numbers(b"secret", np.arange(9.0)[:, np.newaxis])
    first = known_rows.known_rows(base, numbers[:4])
    assert first.gone.shape == (0, OF_READINGS) and len(first.gone_names) == 0
    assert len(set(first.names.tolist())) == 4 and first.names.min() > 0
    second = known_rows.known_rows(base, numbers[[4, 3, 2, 3]])
    assert np.array_equal(second.gone, numbers[:2]) and np.array_equal(second.gone_names, first.names[:2])
    assert second.names[1] == second.names[3] == first.names[3] and second.names[2] == first.names[2]
    again = known_rows.known_rows(base, numbers[2:5])
    assert np.array_equal(again.gone, second.gone) and set(again.names.tolist()) == set(second.names.tolist())
    last = known_rows.known_rows(base, numbers[5:8])
    assert np.array_equal(last.gone, numbers[2:5]), "the rows of the last versions"
    more = known_rows.known_rows(base, row_numbers(b"another", np.arange(9.0)[:, np.newaxis]))
    assert len(set(more.names.tolist())) == 9 and (more.names < 0).sum() == 3
    base.close()


def test_numbers_of_a_row_follow_from_its_readings_and_the_secret_alone() -> None:
    features = np.array([[0.1, 0.0], [0.1, -0.0], [0.2, 0.0]])
    numbers = row_numbers(b"secret", features)
    assert np.array_equal(numbers[0], numbers[1]) and not np.allclose(numbers[0], numbers[2])
    assert np.array_equal(numbers, row_numbers(b"secret", features[::-1])[::-1])
    assert not np.allclose(numbers, row_numbers(b"another", features))
    planes = numbers.reshape(3, -1, 2)
    assert np.allclose(np.square(planes).sum(axis=2), 1.0) and (planes[:, 0, 1] >= 0.0).all()


def test_a_rows_mark_is_of_its_readings_by_the_columns_names_and_not_of_what_is_not_measured() -> None:
    readings = np.random.default_rng(1).uniform(size=(4, 2))
    marks = row_marks(readings, ["flow", "head"])
    assert len(set(marks.tolist())) == 4
    assert np.array_equal(row_marks(readings[:, ::-1], ["head", "flow"]), marks)
    assert np.array_equal(row_marks(np.column_stack([readings, np.full(4, np.nan)]), ["flow", "head", "noise"]), marks)
    for other in (row_marks(readings, ["flow", "height"]), row_marks(readings[:, ::-1], ["flow", "head"])):
        assert not np.isin(other, marks).any()


def test_the_numbers_of_a_row_are_those_that_stand_in_records_of_before() -> None:
    """Others would hold a plant's answers to rows that nobody has, and leave its own out."""
    marks = np.arange(200, dtype=np.uint64)
    numbers = other_versions.row_numbers(b"secret", marks)
    pairs = numbers.reshape(200, -1, 2)
    assert np.allclose(np.hypot(pairs[..., 0], pairs[..., 1]), 1.0) and (pairs[:, 0, 1] >= 0).all()
    for sides in itertools.product((-1, 1), repeat=2):
        assert (np.sign(pairs[:, 1:]) == sides).all(axis=2).mean() == pytest.approx(0.25, abs=0.1)
    assert np.allclose(numbers[1, :4], [-0.23224769, 0.97265668, -0.11944392, 0.99284095])
