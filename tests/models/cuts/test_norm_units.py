"""A norm in other units than the weights: the minimum of a model is that of the model in weights of those units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.basics import TransportNorm
from models.cuts.cut_model import CutModel
from models.cuts.cut_program import minimise
from models.cuts.lower_bound import lower_bound
from models.site_ambiguity.ball import MixtureBall
from tests.models.cuts.test_cut_program import way


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("swings", [False, True])
@pytest.mark.parametrize("name", ["dense", "heights"])
def test_the_minimum_is_that_of_the_model_in_those_units(norm: TransportNorm, swings: bool, name: str) -> None:
    """With v = scale w slopes and swings are divided by the scale; offsets, norm weights and floors stay."""
    for seed in range(3):
        random = np.random.default_rng(seed)
        site, p, scale = np.repeat([0, 1, 2], 6), 4, np.array([0.2, 1.0, 3.0, 10.0])
        swing = random.uniform(0, 0.3, (18, p)) * scale if swings else None
        model = CutModel(
            np.array([0.5, 0.3, 0.2]), np.full(3, 0.1), site, random.uniform(0.1, 1.0, 18),
            random.normal(size=(18, p)) * scale, random.uniform(0, 0.1, 18), norm, p, MixtureBall(),
            feature_scale=scale, swing=swing,
        )
        plain = replace(
            model, slope=model.slope / scale, feature_scale=None, swing=None if swing is None else swing / scale
        )
        centre = random.normal(size=p)
        with way(name):
            found, same = minimise(model, centre / scale).point, minimise(plain, centre).point
        assert model.value(found) == pytest.approx(plain.value(scale * found), rel=1e-12)
        assert model.value(found) == pytest.approx(plain.value(same), rel=1e-6)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("scale", [[0.05, 0.2, 1.0], [1.0, 3.0, 20.0], [0.05, 1.0, 20.0]])
def test_a_bound_of_any_multipliers_is_that_of_the_model_in_those_units(
    norm: TransportNorm, scale: list[float]
) -> None:
    """And at most the least value: what of the slope the norm carries is measured in its units."""
    units, site = np.array(scale), np.repeat([0, 1, 2], 6)
    for seed in range(8):
        random = np.random.default_rng(seed)
        model = CutModel(
            np.array([0.5, 0.3, 0.2]), np.full(3, 0.1), site, random.uniform(0.1, 1.0, 18),
            random.normal(size=(18, 3)) * units, random.uniform(0, 0.1, 18), norm, 3, feature_scale=units,
        )
        plain = replace(model, slope=model.slope / units, feature_scale=None)
        multipliers, at = random.exponential(size=18), random.normal(size=3)
        found = lower_bound(model, multipliers, at / units)
        assert found == pytest.approx(lower_bound(plain, multipliers, at), rel=1e-6, abs=1e-9)
        assert found <= model.value(minimise(model, at / units).point) + 1e-9
