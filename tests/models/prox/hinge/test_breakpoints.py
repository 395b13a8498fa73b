"""Pieces of the rows' losses, their distances and the best multiplier, each by going through all of them; the rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models.basics import FloatArray
from models.prox.hinge.breakpoints import best_multiplier, held_pieces, kink_distance, row_losses
from models.prox.hinge.site_rows import SiteRows
from models.prox.hinge.statement import Statement

FLIPS = (0.3, 1.0, math.inf)


def heights(margins: FloatArray, multiplier: float, flip: float) -> FloatArray:
    """The pieces of each row, (n, 2 or 3): nothing lost, kept, flipped."""
    pieces = [0.0 * margins, 1.0 - margins]
    return np.stack(pieces if math.isinf(flip) else [*pieces, 1.0 + margins - flip * multiplier], axis=1)


@pytest.mark.parametrize("flip", FLIPS)
@pytest.mark.parametrize("multiplier", [0.0, 2.0, 9.0])
def test_the_loss_is_the_highest_piece_and_the_kink_as_far_as_the_next(flip: float, multiplier: float) -> None:
    margins = np.random.default_rng(0).normal(size=60) * 3.0
    pieces = np.sort(heights(margins, multiplier, flip), axis=1)
    np.testing.assert_allclose(row_losses(margins, multiplier, flip), pieces[:, -1], atol=1e-14)
    np.testing.assert_allclose(kink_distance(margins, multiplier, flip), pieces[:, -1] - pieces[:, -2], atol=1e-14)
    kept, flipped = held_pieces(margins, multiplier, flip)
    highest = heights(margins, multiplier, flip).argmax(axis=1)
    assert (kept == (highest == 1)).all()
    assert flipped.size == 0 if math.isinf(flip) else (flipped == (highest == 2)).all()


def test_a_row_on_the_kink_counts_as_kept_or_as_lost_to_nothing() -> None:
    """Kept and flipped are equal at margin 1/2 here, and at -1 all three would be: only what is higher is flipped."""
    margins = np.array([0.5, 1.0, 0.5 + 1e-6, 0.5 - 1e-6])
    kept, flipped = held_pieces(margins, 1.0, 1.0)
    assert kept.tolist() == [True, False, False, True] and flipped.tolist() == [False, True, True, False]
    kept, flipped = held_pieces(np.array([2.0, 3.0]), 3.0, 1.0)
    assert not kept.any() and flipped.tolist() == [False, True]


@pytest.mark.parametrize("flip", FLIPS)
@pytest.mark.parametrize("size", [0.0, 1.5])
@pytest.mark.parametrize("price", [0.0, 0.1, 0.35, 2.0, 5.9, 6.1, 30.0])
def test_the_best_multiplier_is_the_least_of_the_least_cost(flip: float, size: float, price: float) -> None:
    """A piecewise linear function of the multiplier: its least value is at one of its kinks, or at the norm."""
    random = np.random.default_rng(3)
    for _ in range(4):
        margins = random.normal(size=20)
        kinks = [size] if math.isinf(flip) else [size, *np.minimum(1.0 + margins, 2.0 * margins) / flip]
        allowed = sorted(kink for kink in kinks if kink >= size)
        costs = [price * at + float(row_losses(margins, at, flip).sum()) for at in allowed]
        found = best_multiplier(margins, price, flip, size)
        assert found == pytest.approx(next(
            at for at, cost in zip(allowed, costs, strict=True) if cost <= min(costs) + 1e-12
        ))


def test_margins_stay_as_they_were() -> None:
    margins = np.array([0.3, -1.0, 2.0])
    for flip in FLIPS:
        row_losses(margins, 1.0, flip), kink_distance(margins, 1.0, flip), best_multiplier(margins, 0.4, flip, 1.0)
        held_pieces(margins, 1.0, flip)
    assert margins.tolist() == [0.3, -1.0, 2.0]


def statement(price: float, flip: float) -> Statement:
    return Statement(np.ones((2, 3)), 2, np.zeros(3), 0.0, np.zeros(3), price, flip, 1.0, "l2", 50)


def test_it_is_robust_where_moving_or_flipping_is() -> None:
    """Flips alone ask for a multiplier: without a price they would cost nothing."""
    for price, flip, robust in ((0.0, math.inf, False), (0.1, math.inf, True), (0.0, 0.5, True), (0.1, 0.5, True)):
        found = statement(price, flip)
        assert found.is_robust is robust and found.can_flip is math.isfinite(flip)


def test_a_gap_counts_by_the_objective_or_a_thousandth_a_row() -> None:
    """Of all rows, those that are in no statement included."""
    for objective, allowed in ((20.0, 2e-8), (-20.0, 2e-8), (0.05, 5e-11), (1e-9, 5e-11), (0.0, 5e-11)):
        assert statement(0.1, 1.0).allowed_gap(objective, 1e-9) == pytest.approx(allowed, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("intercept", [True, False])
def test_products_with_rows_are_those_of_the_signed_matrix(intercept: bool) -> None:
    random = np.random.default_rng(1)
    x, y = random.normal(size=(9, 3)), random.choice([-1.0, 1.0], 9)
    whole = y[:, None] * (np.column_stack([x, np.ones(9)]) if intercept else x)
    rows, weights, shares = SiteRows(x, y, intercept), random.normal(size=whole.shape[1]), random.normal(size=9)
    np.testing.assert_allclose(rows.margins(weights), whole @ weights)
    np.testing.assert_allclose(rows.combine(shares), shares @ whole)
    np.testing.assert_array_equal(rows.gather(np.array([4, 0])), whole[[4, 0]])
    np.testing.assert_array_equal(rows.gather(slice(2, 5)), whole[2:5])
    assert rows.passes == 2, "some of the rows are no pass"
    np.testing.assert_array_equal(rows.gather(slice(None)), whole)
    assert rows.passes == 3 and rows.are_finite() and rows.passes == 4
    few = rows.every(2)
    np.testing.assert_array_equal(few.gather(slice(None)), whole[::2])
    assert few.count == 5 and few.passes == 1 and rows.passes == 4


@pytest.mark.parametrize("hole", [np.nan, np.inf, -np.inf])
def test_a_feature_that_is_no_number_is_found(hole: float) -> None:
    x = np.ones((4, 2))
    x[2, 1] = hole
    assert not SiteRows(x, np.ones(4), True).are_finite()
    x[3, 0] = -hole
    assert not SiteRows(x, np.ones(4), True).are_finite()
