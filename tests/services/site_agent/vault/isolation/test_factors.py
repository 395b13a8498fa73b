"""Rows that combinations with any factors isolate: as a search by least squares, and among unlike vectors alone."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from services.site_agent.limits.kinds import kind_of
from services.site_agent.vault.isolation.exposure import Differences
from services.site_agent.vault.isolation.factors import ANY_KIND, UNKNOWN_KIND, rows_in_spans
from services.site_agent.vault.isolation.sketches import SKETCH

ROWS = 40


def by_definition(new: np.ndarray, others: np.ndarray) -> set[int]:
    """Rows i of which e_i is a combination of the new vector and one or two of the others."""
    found = set[int]()
    for one, other in itertools.combinations_with_replacement(range(len(others)), 2):
        basis = np.stack([new, others[one], others[other]]).T
        for row, unit in enumerate(np.eye(len(new))):
            if np.linalg.norm(basis @ np.linalg.lstsq(basis, unit, rcond=1e-10)[0] - unit) < 1e-8:
                found.add(row)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_rows_in_spans_are_those_of_a_search_by_least_squares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    others = rng.integers(0, 2, (4, ROWS)) * rng.uniform(0.2, 3.0, (4, 1))
    new = rng.uniform(0.5, 2.0, 2) @ others[:2]
    new[rng.integers(ROWS)] += rng.uniform(0.1, 1.0) * (seed % 3 > 0)
    if seed % 4 == 3:
        others = np.vstack([others, 2.0 * new])  # what lies along the new vector helps nobody
    rows = rng.standard_normal((ROWS, 8))
    found = rows_in_spans(new @ rows, others @ rows, rows)
    assert found == by_definition(new, others)
    assert len(found) == (seed % 3 > 0)


def test_nothing_told_before_and_nothing_told_now_isolate_nothing() -> None:
    rows = np.random.default_rng(0).standard_normal((ROWS, 8))
    assert rows_in_spans(np.zeros(8), rows[:3], rows) == set()
    assert rows_in_spans(rows.sum(axis=0), np.zeros((0, 8)), rows) == set()
    assert rows_in_spans(rows.sum(axis=0), np.zeros((2, 8)), rows) == set()


def test_neither_a_vector_of_zeros_nor_one_of_another_size_hides_a_row() -> None:
    rng = np.random.default_rng(3)
    rows, (told, large) = rng.standard_normal((ROWS, 8)), rng.uniform(0.5, 2.0, (2, ROWS))
    new, others = told + np.eye(ROWS)[7], np.stack([1e-9 * told, np.zeros(ROWS), 1e9 * large])
    assert rows_in_spans(new @ rows, others @ rows, rows) == {7}


def quantiles(row: int) -> list[np.ndarray]:
    """Pinball losses at .5, .2 and .9: rows below the estimate, the same and one more, and all rows."""
    below = np.arange(ROWS) % 2 == 0
    more = below | (np.arange(ROWS) == row)
    return [(below - 0.5) / ROWS, (more - 0.2) / ROWS, np.full(ROWS, 0.1 / ROWS)]


@pytest.mark.parametrize("kinds, isolated", [
    ((0.5, 0.2, 0.9), {7}), ((ANY_KIND,) * 3, {7}), ((0.5, 0.5, 0.5), set()), ((UNKNOWN_KIND, 0.5, 0.5), {7}),
])
def test_factors_are_looked_for_among_vectors_of_unlike_kinds(kinds: Any, isolated: set[int]) -> None:
    found = Differences(ROWS, 1, np.zeros((0, SKETCH)), set(), set())
    for kind, vector in zip(kinds, quantiles(7), strict=True):
        found.kind = kind
        found.take([vector])
    assert found.differences == isolated and found.pairs == set()


def test_the_kind_stands_with_the_vector_and_a_copy_has_it() -> None:
    found = Differences(ROWS, 1, np.zeros((0, SKETCH)), set(), set())
    found.kind = 0.25
    first, second, third = quantiles(7)
    found.take([first, second])
    later = Differences(ROWS, 1, found.sketches.copy(), found.pairs, found.differences)  # the agent began anew
    later.kind = 0.75
    assert not later.copy().admits([third]) and later.admits([first])


def test_a_kind_is_a_loss_with_its_terms_and_steps_are_of_any() -> None:
    kinds = [kind_of(loss, {"point": np.zeros((1, 3))}) for loss in ("hinge", "pinball 0.5", "pinball 0.2")]
    assert len(set(kinds)) == 3 and all(0.0 < kind <= 1.0 for kind in kinds)
    still, stepping = ({"point": np.zeros((1, 3)), "step_size": np.full(1, size)} for size in (0.0, 0.1))
    assert kind_of("hinge", still) == kinds[0] and kind_of("hinge", stepping) == ANY_KIND
    assert kind_of("hinge", {"stiffness": np.ones(1)}) == ANY_KIND
