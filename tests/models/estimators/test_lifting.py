"""The lift of an estimator by its argument: splines over the ranges of the rows, or the one that is given."""

from __future__ import annotations

import numpy as np

from models.estimators.lifting import fitted_lift, kind_of, segments_of, spline_of
from models.features.products import product_lift
from models.features.spline import SplineLift

ROWS = np.array([[-3.0, 7.0, 1.0], [5.0, 7.0, 0.0], [1.0, 7.0, 4.0]])


def test_splines_reach_from_the_least_value_to_the_largest() -> None:
    """In segments of one width; what is always the same has them above its value."""
    found = spline_of(ROWS, 4)
    assert isinstance(found, SplineLift)
    np.testing.assert_allclose(found.knots[0], [-3.0, -1.0, 1.0, 3.0, 5.0])
    np.testing.assert_allclose(found.knots[1], 7.0 + 8.0 * np.arange(5) / 4)
    np.testing.assert_allclose(found.knots[2], [0.0, 1.0, 2.0, 3.0, 4.0])
    by_word = fitted_lift("spline", 4, ROWS, None)
    assert isinstance(by_word, SplineLift) and (by_word.knots == found.knots).all()


def test_a_lift_that_is_given_is_taken_as_it_is() -> None:
    given = spline_of(ROWS, 2)
    assert fitted_lift(given, 9, ROWS, None) is given
    assert fitted_lift(None, 9, ROWS, None) is None and fitted_lift(None, 9, ROWS, (0.0, 1.0)) is None


def test_kinds_and_segments_are_those_of_what_lifts() -> None:
    """Products of features alone have no segments, products of their lines have those of the lines."""
    products, lines = product_lift(3, (0, 1)), product_lift(3, (0, 1), segments=4)
    for lift, kind, segments in (
        (None, "none", 0), (spline_of(ROWS, 5), "spline", 5), (products, "products", 0), (lines, "products", 4)
    ):
        assert (kind_of(lift), segments_of(lift)) == (kind, segments)
