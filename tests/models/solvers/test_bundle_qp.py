"""The small program of a bundle of cuts: after every cut its solution meets what makes it the optimum."""

from __future__ import annotations

import numpy as np
import pytest

from models.solvers.bundle_qp import CutProgram


@pytest.mark.parametrize("curvature", [0.0, 0.5, 20.0])
@pytest.mark.parametrize("linear", [0.3, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_every_cut_is_met_and_multipliers_balance(curvature: float, linear: float, seed: int) -> None:
    """Stationarity and complementarity, which are enough: the program is convex. Heights start below its free top."""
    random = np.random.default_rng(seed)
    centre = random.normal(size=4)
    program = CutProgram(centre, linear, curvature)
    slopes, heights = np.zeros((0, 4)), np.zeros(0)
    for count in range(1, 25):
        low = -2.0 * linear / curvature if curvature and count <= 3 else 0.0
        slopes = np.vstack([slopes, random.normal(size=4)])
        heights = np.append(heights, low + random.normal())
        program.add(slopes[-1], float(heights[-1]))
        point, held = program.point(), program.multipliers()
        assert held.shape == (count,) and held.min() >= 0.0
        np.testing.assert_allclose(point, centre - held @ slopes, rtol=1e-9, atol=1e-9)
        values = heights + slopes @ (point - centre)
        # Where the top has curvature, the sum of the multipliers says where it is; else the highest cut does.
        top = (held.sum() - linear) / curvature if curvature else values.max()
        assert held.sum() >= 0.0 and (curvature or held.sum() == pytest.approx(linear, rel=1e-9))
        assert values.max() <= top + 1e-8 * (1.0 + abs(top))
        np.testing.assert_allclose(held * (top - values), 0.0, atol=1e-7)
