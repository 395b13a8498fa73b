"""Rows on a box, some of them taken out: what they answer at a price is what they answered among the others."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import TransportNorm
from models.worst_case.box_blocks import Block, make_block
from models.worst_case.saddle_point import Rows

PRICES = (0.0, 0.05, 0.3, 0.8, 1.5, 4.0)


def _block(norm: TransportNorm, flips: bool, counts: np.ndarray | None, n: int = 9) -> Block:
    random = np.random.default_rng(11)
    low, high = random.uniform(0, 1, (n, 3)), random.uniform(0, 1, (n, 3))
    labels, weights = np.where(random.random(n) < 0.5, 1.0, -1.0), np.array([0.9, -0.4, 1.6])
    margins = random.normal(size=n)
    rows = Rows(np.zeros((n, 3)), labels, weights, margins, 0.1, 0.6 if flips else np.inf, norm, None)
    return make_block(margins, low, high if flips else None, np.abs(weights), rows, counts)


@pytest.mark.parametrize("flips", [False, True])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_rows_that_are_taken_answer_as_they_did_and_count_as_often(norm: TransportNorm, flips: bool) -> None:
    counts, some = np.array([1.0, 3.0, 0.5, 2.0, 7.0, 1.5, 0.25, 4.0, 6.0]), np.array([7, 2, 4], dtype=np.intp)
    whole, once = _block(norm, flips, counts), _block(norm, flips, None)
    for price in PRICES:
        answer, plain = whole.at(price), once.at(price)
        for found, wanted in zip(whole.take(some).at(price), answer.take(some), strict=True):
            np.testing.assert_array_equal(found, wanted)
        np.testing.assert_allclose(answer.value, counts * plain.value)
        np.testing.assert_allclose(answer.spent, counts * plain.spent)
        np.testing.assert_array_equal(answer.extent, plain.extent)  # of one row, however often it counts


@pytest.mark.parametrize("flips", [False, True])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_what_a_row_spends_is_how_fast_its_value_falls_with_the_price(norm: TransportNorm, flips: bool) -> None:
    block = _block(norm, flips, None)
    for price in PRICES:
        answer = block.at(price)
        for other in PRICES:  # every answer is a line below a convex function of the price
            assert (block.at(other).value >= answer.value - answer.spent * (other - price) - 1e-12).all()
    assert (block.at(0.0).spent > 0).any() and (block.at(100.0).act == 0).any()
