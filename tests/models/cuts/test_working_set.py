"""Cuts that are told twice count once: the newest, and only where all their numbers are equal but for rounding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from models.cuts import distinct
from models.cuts.cut_model import CutModel
from models.cuts.cut_program import minimise, project
from tests.models.cuts.test_cut_program import MODELS, drawn


def told_again(model: CutModel, random: np.random.Generator) -> tuple[CutModel, np.ndarray]:
    """The cuts of a model, each up to four times in drawn order, with which of the old ones each is."""
    which = random.permutation(np.repeat(np.arange(model.site.size), random.integers(1, 5, model.site.size)))
    slope = model.slope[which] + 1e-15 * random.choice([-1.0, 0.0, 1.0], size=(which.size, model.slope.shape[1]))
    swing = None if model.swing is None else model.swing[which]
    return replace(
        model, site=model.site[which], offset=model.offset[which], slope=slope, norm_weight=model.norm_weight[which],
        swing=swing,
    ), which


@settings(max_examples=40)
@given(**MODELS)
def test_one_of_each_cut_is_left_and_it_is_the_newest(**kind: object) -> None:
    model, centre = drawn(**kind)  # type: ignore[arg-type]
    again, which = told_again(model, np.random.default_rng(int(str(kind["seed"]))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distinct, "FEW", 0)
        left = np.flatnonzero(again.distinct)
        assert sorted(which[left]) == list(range(model.site.size))
        assert all(j == np.flatnonzero(which == which[j])[-1] for j in left)
        found = minimise(again, centre)
        level = again.value(found.point) + 0.3 * (again.value(centre) - again.value(found.point))
        near = project(again, centre, level)
    assert not found.multipliers[np.setdiff1d(np.arange(which.size), left)].any()
    assert model.value(found.point) == pytest.approx(model.value(minimise(model, centre).point), abs=1e-9)
    assert near.point == pytest.approx(project(model, centre, level).point, abs=1e-4)  # the root of its tolerance


@pytest.mark.parametrize("name", ["site", "offset", "slope", "norm_weight", "swing"])
def test_cuts_that_differ_in_one_number_are_two(name: str) -> None:
    model = drawn(3, 2, 4, False, "l2", True, None)[0]
    twice = model.of_cuts(np.array([0, 0, *range(model.site.size)]))
    changed = getattr(twice, name).copy()
    changed[1] = (changed[1] + 1) % 2 if name == "site" else changed[1] + 1e-9
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distinct, "FEW", 0)
        both = replace(twice, **{name: changed})
        assert np.count_nonzero(twice.distinct) == model.site.size
        assert np.count_nonzero(both.distinct) == model.site.size + 1
