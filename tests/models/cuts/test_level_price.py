"""What a projection tells beside its point: the price of the level, the cuts' multipliers, the worst mixture."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.basics import FloatArray
from models.cuts.cut_model import CutModel, ModelPoint
from models.cuts.cut_program import minimise, project
from models.site_ambiguity.ball import MixtureNorm
from tests.models.cuts.test_cut_program import drawn


def projected(model: CutModel, centre: FloatArray, *, towards: bool) -> ModelPoint:
    """Nearest point three tenths of the way up from the model's minimum to the centre."""
    least = minimise(model, centre).point
    lowest, height = model.value(least), model.value(centre)
    assert height - lowest > 1e-3
    return project(model, centre, lowest + 0.3 * (height - lowest), towards=least if towards else None)


@pytest.mark.parametrize("towards", [False, True])
@pytest.mark.parametrize("unit", [1e-2, 1.0, 30.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_pull_of_the_cuts_is_that_of_the_way_over_the_price(seed: int, unit: float, towards: bool) -> None:
    r"""``sum_j v_j slope_j = (c - x) / level_price`` of cuts without norms; all of it in whichever unit of the risk."""
    model, centre = drawn(seed, 3, 5, True, "l2", False, None)
    plain = replace(
        model, norm_weight=np.zeros(model.site.size), floor=np.zeros(3), offset=unit * model.offset,
        slope=unit * model.slope,
    )
    found = projected(plain, centre, towards=towards)
    pull = found.multipliers @ plain.slope
    np.testing.assert_allclose(pull, (centre - found.point) / found.level_price, rtol=1e-4, atol=1e-5 * unit)
    sums = np.bincount(plain.site, weights=found.multipliers, minlength=3)
    assert (sums <= found.mixture + 1e-5).all() and np.abs(pull).max() > 0


@pytest.mark.parametrize("ball", ["l1", "l2", "linf"])
@pytest.mark.parametrize("seed", range(6))
def test_the_mixture_is_the_worst_one_at_the_point_floors_counted(seed: int, ball: MixtureNorm) -> None:
    """Sites at their floors have their parts of it: their heights count as those of any."""
    model, centre = drawn(seed, 4, 3, False, "l2", False, None)
    model = replace(model, mixture=drawn(seed, 4, 3, False, "l2", False, ball)[0].mixture)
    model = replace(model, floor=np.array([2.0, 0.1, 2.0, 0.1]))
    for found in (minimise(model, centre), projected(model, centre, towards=False)):
        value = float(found.mixture @ model.site_values(found.point[None])[0])
        assert value == pytest.approx(model.value(found.point), rel=1e-4)
        assert found.mixture.sum() == pytest.approx(1.0)
