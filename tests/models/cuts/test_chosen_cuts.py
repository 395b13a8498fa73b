"""Which cuts a program begins with, which it takes in, and when it is near enough: each by going through all cuts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.basics import FloatArray
from models.cuts import working_set
from models.cuts.cut_model import CutModel
from models.cuts.working_set import first_cuts, missed_cuts
from models.site_ambiguity.ball import MixtureBall

SITES, CUTS = 3, 12


def drawn(seed: int, idle: FloatArray | None = None, radius: float = 0.0) -> CutModel:
    """Twelve cuts of each of three sites, in drawn order."""
    random = np.random.default_rng(seed)
    site = random.permutation(np.repeat(np.arange(SITES), CUTS))
    return CutModel(
        np.array([0.7, 0.2, 0.1]), np.array([0.3, 0.0, 0.1]), site, random.normal(size=36),
        random.normal(size=(36, 2)), random.uniform(0.0, 0.1, 36), "l2", 2, MixtureBall("l2", radius), idle=idle,
    )


def highest(model: CutModel, point: FloatArray, among: FloatArray, count: int) -> set[int]:
    """The ``count`` highest cuts of each site at a point, of those among which they are."""
    heights, found = model.heights(point[None])[0], set[int]()
    for g in range(SITES):
        own = [j for j in np.flatnonzero(among) if model.site[j] == g]
        found |= set(sorted(own, key=lambda j: -heights[j])[:count])
    return found


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working_set, "FEW", 20)


@pytest.mark.parametrize("seed", range(4))
def test_a_program_begins_with_the_newest_the_highest_and_those_that_counted(seed: int) -> None:
    """Two and two of each site, of the distinct ones; those that counted in the last two exchanges; as many as asked
    by how lately they counted."""
    random = np.random.default_rng(seed + 10)
    idle = random.permutation(36).astype(float)
    model, centre, distinct = drawn(seed, idle), random.normal(size=2), random.random(36) < 0.8
    expected = highest(model, centre, distinct, 2)
    for g in range(SITES):
        expected |= set(np.flatnonzero(distinct & (model.site == g))[-2:].tolist())
    without = first_cuts(replace(model, idle=None), centre, distinct)
    assert without is not None and set(np.flatnonzero(without).tolist()) == expected
    expected |= set(np.flatnonzero(distinct & (idle <= 2)).tolist())
    found = first_cuts(model, centre, distinct)
    assert found is not None and set(np.flatnonzero(found).tolist()) == expected
    rest = sorted(set(np.flatnonzero(distinct).tolist()) - expected, key=lambda j: idle[j])
    more = first_cuts(model, centre, distinct, least=len(expected) + 3)
    assert more is not None and set(np.flatnonzero(more).tolist()) == expected | set(rest[:3])


def test_of_few_cuts_all_are_taken() -> None:
    """Of few at all, or of few beside the sites; copies do not count."""
    model, centre = drawn(0), np.zeros(2)
    some = np.arange(36) < 24
    assert first_cuts(model, centre, some) is None
    assert first_cuts(model, centre, np.arange(36) < 25) is not None


@pytest.mark.parametrize("seed", range(4))
def test_what_is_missed_are_the_highest_above_what_is_chosen(seed: int) -> None:
    """Four of each site at most, above its floor and its chosen cuts; copies of others are none."""
    random = np.random.default_rng(seed + 20)
    model, point = drawn(seed), random.normal(size=2)
    chosen, distinct = random.random(36) < 0.2, random.random(36) < 0.8
    heights, norm = model.heights(point[None])[0], float(np.linalg.norm(point))
    tops = [max([norm * model.floor[g], *heights[chosen & (model.site == g)]]) for g in range(SITES)]
    above = distinct & ~chosen & (heights > np.array(tops)[model.site])
    missed, near = missed_cuts(model, point, chosen, distinct, 0.0)
    assert set(np.flatnonzero(missed).tolist()) == highest(model, point, above, 4) and not near
    everything = missed_cuts(model, point, np.ones(36, dtype=bool), distinct, 0.0)
    assert not everything[0].any() and everything[1]


def test_it_is_near_enough_by_what_all_cuts_may_add_in_any_mixture() -> None:
    """The excess of each site by its weight; over a ball by as much more as a mixture may give it, at most 1."""
    point = np.array([0.4, -0.3])
    for radius in (0.0, 0.25, 5.0):
        model = drawn(1, radius=radius)
        chosen = np.arange(36) % 6 == 0
        heights = model.heights(point[None])[0]
        tops = 0.5 * model.floor
        np.maximum.at(tops, model.site[chosen], heights[chosen])
        whole = 0.5 * model.floor
        np.maximum.at(whole, model.site, heights)
        most = float(np.minimum(model.site_weights + radius, 1.0) @ (whole - tops))
        assert most > 0.1
        for share, near in ((0.999, False), (1.001, True)):
            assert missed_cuts(model, point, chosen, np.ones(36, dtype=bool), share * most)[1] is near


def test_a_site_that_told_nothing_makes_nothing_nearer() -> None:
    """Nor one all of whose cuts lie below its floor: what others may add is not set off against it."""
    point, whole = np.array([0.4, -0.3]), drawn(1)
    silent = whole.of_cuts(whole.site != 2)
    low = replace(whole, offset=np.where(whole.site == 2, -50.0, whole.offset))
    for model in (silent, low):
        count = len(model.site)
        chosen = (np.arange(count) % 6 == 0) & (model.site != 2)
        heights = model.heights(point[None])[0]
        tops, top = 0.5 * model.floor, 0.5 * model.floor
        np.maximum.at(tops, model.site[chosen], heights[chosen])
        np.maximum.at(top, model.site, heights)
        most = float(model.site_weights @ (top - tops))
        assert most > 0.1 and top[2] == tops[2]
        for share, near in ((0.999, False), (1.001, True)):
            assert missed_cuts(model, point, chosen, np.ones(count, dtype=bool), share * most)[1] is near
