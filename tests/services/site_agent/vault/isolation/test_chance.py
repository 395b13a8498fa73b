"""Sums that are by chance a multiple of a row: held to whole-number arithmetic, at the guard and at the door."""

from __future__ import annotations

import itertools
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from models.methods.row_account import RowAccount
from services.site_agent.rules.policy import Refusal, SitePolicy
from services.site_agent.vault.dataset import Part
from services.site_agent.vault.isolation.exposure import Differences
from services.site_agent.vault.isolation.guard import VaultGuard
from services.site_agent.vault.isolation.sketches import SKETCH
from services.site_agent.vault.records.exposure_gate import ExposureGate
from services.site_agent.vault.records.exposure_record import ExposureRecord
from services.site_agent.vault.records.version_exposure import alike_rows

RUN = "a" * 32
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def over(features: np.ndarray) -> Differences:
    return Differences(
        len(features), 1, np.zeros((0, SKETCH)), set(), set(), alike_rows(features), features
    )


def by_whole_numbers(vectors: np.ndarray, readings: np.ndarray) -> tuple[set[int], set[int]]:
    """Rows that one vector or two, and up to four, are a multiple of; coefficients and readings are whole numbers."""
    whole = np.column_stack([readings, np.ones(len(readings), dtype=int)])
    sums = [np.zeros(whole.shape[1], dtype=int), *vectors @ whole]

    def along(combined: np.ndarray) -> set[int]:
        return set(np.flatnonzero((combined[-1] != 0) & (combined[-1] * whole == combined).all(axis=1)).tolist())

    pairs = [one - other for one, other in itertools.permutations(sums, 2)]
    alone = {row for each in pairs for row in along(each)}
    return alone, alone | {row for one in pairs for other in pairs for row in along(one - other)}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("columns", "values"), [(1, 50), (2, 4), (3, 2), (4, 2), (8, 2)])
def test_rows_found_are_those_of_whole_number_arithmetic(columns: int, values: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    readings, vectors = draw.integers(0, values, (15, columns)), draw.integers(-1, 2, (5, 15))
    vectors[:, 8:] = 0
    found = over(readings / (values - 1))
    for vector in vectors:
        sketch = found.sketch(vector / 15)
        if not found.knows(sketch):
            found.add(sketch)
    assert (found.pairs, found.differences) == by_whole_numbers(vectors, readings)


def test_whole_numbers_often_show_a_row_and_measured_ones_do_not() -> None:
    draw = np.random.default_rng(3)
    readings, vectors = draw.integers(0, 3, (40, 3)) / 2, draw.integers(-1, 2, (40, 40)) / 40
    counts = {}
    for name, features in (("whole", readings), ("measured", readings + draw.uniform(0, 0.1, readings.shape))):
        found = over(features)
        found.take(vectors)
        counts[name] = len(found.pairs), len(found.differences)
    assert counts["measured"] == (0, 0)
    assert 0 < counts["whole"][0] < counts["whole"][1]


def square() -> tuple[np.ndarray, np.ndarray]:
    """Twenty rows of two readings, and coefficients of rows 1 to 4 of which the sum is row 0 twice over."""
    features = np.random.default_rng(0).uniform(size=(20, 2))
    features[:5] = [[0.5, 0.5], [0.25, 0.25], [0.75, 0.75], [0.25, 0.75], [0.75, 0.25]]
    coefficients = np.zeros(20)
    coefficients[1:5] = [1, 1, 0.5, 0.5]
    return features, coefficients / 20


def test_a_sum_that_is_a_multiple_of_a_row_without_a_part_does_not_leave_and_counts() -> None:
    features, coefficients = square()
    base = np.random.default_rng(1).uniform(size=20) / 20
    for before, vector in (([], coefficients), ([base], base - 0.7 * coefficients)):
        found = over(features)
        found.take(before)
        assert not found.admits([vector]) and found.pairs == set()
        found.take([vector])
        assert found.pairs == {0}
        aside = over(features)
        aside.take(before)
        assert aside.admits([vector + np.eye(20)[7] / 2000]), "another row's five-hundredth hides it"


def test_of_two_rows_beside_one_another_it_is_the_one_that_is_hit() -> None:
    features, coefficients = square()
    features[9] = features[0] + 1e-4
    for row in (0, 9):
        features[4] = 4.0 * features[row] - features[1:4].sum(axis=0)
        found = over(features)
        found.take([np.where(coefficients > 0, 0.05, 0.0)])
        assert found.pairs == {row}


def test_rows_like_the_one_that_is_shown_count_too() -> None:
    features, coefficients = square()
    features[9] = features[0]
    found = over(features)
    found.take([coefficients])
    assert found.pairs == {0, 9}


@pytest.mark.parametrize("column", range(5))
def test_a_sum_that_is_as_near_to_a_row_as_counts_is_found(column: int) -> None:
    """A cosine within 1e-10 of 1, by any column: what is kept of a sum are four numbers, in which angles are others."""
    for seed in range(20):
        features = np.random.default_rng(seed).uniform(size=(25, 5))
        features[1], features[1, column] = features[2], features[2, column] + 1e-3
        length = float(np.linalg.norm(np.append(features[0], 1.0)))
        share = 1.3e-5 * length / 1e-3  # more than rows beside the one may weigh
        coefficients = np.array([1.0, share, -share, *np.zeros(22)]) / 25
        vector = coefficients @ np.column_stack([features, np.ones(25)])
        cosine = float(vector[:5] @ features[0] + vector[5]) / (float(np.linalg.norm(vector)) * length)
        assert 0.0 <= 1.0 - cosine < 1e-10
        found = Differences(25, seed, np.zeros((0, SKETCH)), set(), set(), None, features)
        assert not Differences(25, seed, np.zeros((0, SKETCH)), set(), set()).by_pairs(found.sketch(coefficients))
        assert found.by_pairs(found.sketch(coefficients)) == {0}


def test_the_guard_answers_something_else_in_its_place() -> None:
    features, coefficients = square()
    door = VaultGuard(over(features), b"secret", lambda rows: rows, lambda question: None)
    other = coefficients + np.eye(20)[7] / 2000
    taken = door.choose(b"question", lambda number, draw: other if number else coefficients, lambda rows: [rows])
    assert taken is other and list(door.choices.values()) == [1]


def door(path: Path | None) -> ExposureGate:
    return ExposureGate(ExposureRecord(path), SitePolicy(exposure_limit=0.0), lambda: NOON)


def part(features: np.ndarray) -> Part:
    return Part(features, np.arange(len(features)) % 2, np.full(len(features), np.nan))


def test_the_door_refuses_it_after_a_restart_as_well(tmp_path: Path) -> None:
    features, coefficients = square()
    train, everyone = part(features), np.ones(20, dtype=bool)
    base = np.random.default_rng(1).uniform(size=20) / 20
    door(tmp_path / "exposure.sqlite").admit(train, everyone, RUN, RowAccount((base,)))
    again = door(tmp_path / "exposure.sqlite")
    assert again.admit(train, everyone, RUN, RowAccount((base,))).vectors == 1
    with pytest.raises(Refusal, match="isolate 1 of 20 rows"):
        again.admit(train, everyone, RUN, RowAccount((base + coefficients,)))


def test_a_record_of_an_earlier_agent_reads_on(tmp_path: Path) -> None:
    """Of its vectors the coefficients alone are known."""
    path, (features, coefficients) = tmp_path / "exposure.sqlite", square()
    train, everyone = part(features), np.ones(20, dtype=bool)
    base = np.random.default_rng(1).uniform(size=20) / 20
    door(path).admit(train, everyone, RUN, RowAccount((base,)))
    with closing(sqlite3.connect(path)) as record, record:
        record.execute("UPDATE sketch SET numbers = substr(numbers, 1, 64)")
    again = door(path)
    assert again.admit(train, everyone, RUN, RowAccount((base,))).vectors == 1, "it is known"
    with pytest.raises(Refusal, match="isolate 1 of 20 rows"):
        again.admit(train, everyone, RUN, RowAccount((base + np.eye(20)[3] / 20,)))
    with pytest.raises(Refusal, match="isolate 1 of 20 rows"):
        again.admit(train, everyone, RUN, RowAccount((coefficients,)))
