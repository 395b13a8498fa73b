"""What a model says of rows that a fold held out: of models of the other folds alone, with an intercept or without."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import FloatArray
from models.conformal.cross import Ends
from models.estimators.folds import fold_models
from models.estimators.table import Table


def table(seed: int, n: int = 400) -> Table:
    draw = np.random.default_rng(seed)
    features, site = draw.normal(size=(n, 2)), np.arange(n) % 2
    return Table(features, features[:, 0] + draw.normal(size=n), site, draw.integers(1, 4, n) * 1.0, np.ones(n))


def fitted(part: Table) -> list[FloatArray]:
    """Means of the rows, by which models of different rows differ."""
    return [part.features.mean(axis=0), part.features.std(axis=0)]


@pytest.mark.parametrize("intercept", [False, True])
def test_held_out_rows_are_scored_by_the_model_of_the_other_folds(intercept: bool) -> None:
    rows = table(1)
    folds = np.where(np.arange(400) % 7 == 0, -1, np.arange(400) % 3)

    def fit(part: Table) -> list[FloatArray]:
        return [np.append(each, 0.25) for each in fitted(part)] if intercept else fitted(part)

    found = fold_models(rows, folds, 3, fit, fit_intercept=intercept)
    assert sorted(found.rows) == np.flatnonzero(folds >= 0).tolist()
    assert found.planes.shape == (3, 2, 3) and (found.planes[:, :, -1] == 0.25 * intercept).all()
    for row, fold, scores in zip(found.rows, found.fold, found.scores, strict=True):
        planes = np.stack(fitted(rows.take(np.flatnonzero(folds != folds[row]))))
        np.testing.assert_allclose(scores, planes @ rows.features[row] + 0.25 * intercept, rtol=1e-12)
        assert fold == folds[row]


def test_the_ends_of_a_model_are_those_of_the_rows_that_it_was_fitted_to() -> None:
    """A row that is held out says nothing of them: else its own error made its interval wide enough."""
    rows, folds = table(2), np.arange(400) % 4
    rows.outcomes[folds == 2] += 50.0
    found = fold_models(rows, folds, 4, lambda part: [np.array([1.0, 0.0, 0.0])], fit_intercept=True)
    held = found.errors_out_of_fold(rows, folds, rows.take(found.rows), ("a", "b"))
    for number, ends in enumerate(held.ends):
        own = rows.take(np.flatnonzero(folds != number))
        wanted = Ends.of(own.features[:, 0], own.outcomes, own.counts)
        np.testing.assert_array_equal(ends.sizes, wanted.sizes)
        np.testing.assert_array_equal(ends.edges, wanted.edges)
        of_fold = held.fold == number
        estimates, targets = rows.features[found.rows[of_fold], 0], rows.outcomes[found.rows[of_fold]]
        np.testing.assert_allclose(held.scores[of_fold], wanted.scores(estimates, targets), rtol=1e-12)
