"""A norm in other units than the weights: the minimum of a model is that of the model in weights of those units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.basics import TransportNorm
from models.cuts.cut_model import CutModel
from models.cuts.cut_program import minimise
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
