"""A feature that stands still changes no training: what is left of it beside its mean is rounding, and no slope."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from models.basics import FloatArray
from models.centralised.bundle import train_at_hand
from models.features.feature_units import centred, units_of
from models.losses.base import Loss
from models.losses.catalogue import get_loss
from models.problem import Certificate, RobustSpec, SiteProblem
from models.simulation.crammer_singer import train_crammer_singer
from models.site_ambiguity.ball import MixtureBall

# One ends in a digit that a mean of thirty does not give back, one differs by its last digit, one is large.
STILL = {
    "a tenth": np.full(60, 0.1), "last digits": np.where(np.arange(60) % 3, 0.3, 0.1 + 0.2),
    "large": np.full(60, 1e9 / 3),
}
AS_GIVEN = pytest.mark.parametrize("column", STILL.values(), ids=STILL.keys())


def _rows() -> tuple[FloatArray, FloatArray, FloatArray]:
    random = np.random.default_rng(0)
    x = random.normal(size=(60, 2))
    return x, x @ [1.0, -1.0] + 0.3 * random.normal(size=60), np.argmax(x @ [[1, 0, -1], [0, 1, -1.0]], axis=1) * 1.0


def _sites(x: FloatArray, y: FloatArray, radius: float, loss: Loss) -> dict[str, SiteProblem]:
    spec = RobustSpec(radius, 1.0, loss=loss)
    return {name: SiteProblem(x[part], y[part], spec) for name, part in (("a", slice(30)), ("b", slice(30, None)))}


def _same(trained: Callable[[FloatArray], Certificate], x: FloatArray, column: FloatArray) -> None:
    """Both certified, and no bound of one beyond one of the other."""
    plain, found = trained(x), trained(np.column_stack([x, column]))
    assert found.gap <= 1e-3
    assert found.lower <= plain.upper * (1 + 1e-9) and plain.lower <= found.upper * (1 + 1e-9)


@AS_GIVEN
@pytest.mark.parametrize("loss", ["logistic", "hinge", "huber"])
def test_without_a_ball_it_changes_no_bound(loss: str, column: FloatArray) -> None:
    x, score, _ = _rows()
    y = score if loss == "huber" else np.sign(score)

    def trained(features: FloatArray) -> Certificate:
        sites = _sites(features, y, 0.0, get_loss(loss))
        return train_at_hand(sites, mixture=MixtureBall("l2", 0.3), gap=1e-3).certificate

    _same(trained, x, column)


@AS_GIVEN
def test_all_classes_at_once_are_trained_as_without_it(column: FloatArray) -> None:
    x, _, classes = _rows()
    _same(
        lambda features: train_crammer_singer(_sites(features, classes, 0.01, get_loss("hinge")), 3).certificate,
        x, column,
    )


def test_all_classes_at_once_close_the_gap_where_a_feature_moves_by_far_less_than_the_radius() -> None:
    x, _, classes = _rows()
    nearly_still = 0.3 + 1e-8 * np.random.default_rng(1).normal(size=60)
    sites = _sites(np.column_stack([x, nearly_still]), classes, 0.01, get_loss("hinge"))
    assert train_crammer_singer(sites, 3, max_rounds=100).certificate.gap <= 1e-3


def test_the_hinge_over_all_rows_is_solved_beside_it() -> None:
    x, score, _ = _rows()

    def trained(features: FloatArray) -> Certificate:
        sites = _sites(features, np.sign(score), 0.0, get_loss("hinge"))
        return train_at_hand(sites, mixture=MixtureBall(), gap=1e-3).certificate

    _same(trained, x, STILL["a tenth"])


@AS_GIVEN
def test_its_unit_is_no_rounding(column: FloatArray) -> None:
    for radius in (0.0, 1e-14, 0.5):
        sites = list(_sites(np.column_stack([column, np.zeros(60)]), column, radius, get_loss("huber")).values())
        units = units_of(*centred(sites), radius)
        assert units[0] >= max(radius or 1.0, 1e-3 * column[0]) * (1 - 1e-12)
        assert units[1] == (radius or 1.0)
