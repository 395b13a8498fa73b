"""Theorem 1 on the penguins, exactly; the grid search against a smaller one gone through whole."""

import numpy as np
import pytest

from tests.benchmarks.data import data_folder
from tests.benchmarks.papers.relative_fairness import penguins
from tests.benchmarks.papers.relative_fairness.figure3 import solutions

pytestmark = pytest.mark.skipif(
    not (data_folder() / "palmer_penguins.csv").is_file(), reason="the table palmer_penguins is not in BALLAST_DATA_DIR"
)


@pytest.fixture(scope="module")
def found():
    return solutions(grid=True)


@pytest.mark.parametrize("space", ["grid", "box", "all"])
def test_relative_unfairness_never_rises_with_phi(found, space):
    own = [row for row in found if row["theta"] == space]
    assert [row["phi"] for row in own] == list(penguins.PHIS)
    ratios = np.array([row["relative_unfairness"] for row in own])
    assert (np.diff(ratios) <= 1e-9).all()
    assert ratios[0] > 3.9 and ratios[-1] < 1.01
    assert all(row["gap"] <= 1e-8 * row["objective"] for row in own)


def test_a_larger_theta_has_no_worse_objective(found):
    by = {(row["theta"], row["phi"]): row["objective"] for row in found}
    for phi in penguins.PHIS:
        assert by["all", phi] <= by["box", phi] * (1 + 1e-9) and by["box", phi] <= by["grid", phi] * (1 + 1e-9)


def test_grid_search_leaves_out_no_better_point(monkeypatch):
    quadratics = penguins.losses()
    axes = (np.linspace(-35, -25, 41), np.linspace(0, 1, 41), np.linspace(0, 1, 401))
    monkeypatch.setattr(penguins, "GRID", axes)
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    for phi in (0.0, 0.03, 0.3):
        at, value = penguins._value(quadratics, points, phi)
        best = penguins.solve_on_grid(quadratics, phi, np.array([-30.0, 0.5, 0.3]))
        values = quadratics.values(best)
        assert values.max() - phi * values.min() == pytest.approx(value, rel=1e-9)
