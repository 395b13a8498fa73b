"""Cuts that a site told more than once: the newest of each stays, whatever stands between the two."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from models.cuts.distinct import FEW, distinct_cuts


@pytest.mark.parametrize("swings", [False, True])
def test_of_each_cut_of_a_site_the_newest_stays(swings: bool) -> None:
    """Cuts of the same numbers in another order are others, and so are those that differ in one number alone."""
    random = np.random.default_rng(0)
    orders = np.array(list(permutations([0.1, 0.2, 0.4, 0.7, 0.9])))
    kinds = np.hstack([orders, np.zeros((len(orders), 2 if swings else 0))])
    kinds = np.vstack([kinds, kinds[:40] + 1e-9 * np.eye(kinds.shape[1])[np.arange(40) % kinds.shape[1]]])
    kind, site = random.integers(0, len(kinds), 3 * FEW), random.integers(0, 3, 3 * FEW)
    cuts = kinds[kind] * (1.0 + 1e-15 * random.integers(-2, 3, (3 * FEW, kinds.shape[1])))
    swing = cuts[:, 5:] if swings else None
    found = distinct_cuts(site, cuts[:, 0], cuts[:, 1], cuts[:, 2:5], swing)
    newest = {pair: number for number, pair in enumerate(zip(site.tolist(), kind.tolist(), strict=True))}
    assert sorted(newest.values()) == np.flatnonzero(found).tolist()


def test_of_few_cuts_all_are_taken() -> None:
    same = np.zeros(FEW)
    assert distinct_cuts(np.zeros(FEW, dtype=np.intp), same, same, np.zeros((FEW, 2)), None).all()
    more = np.zeros(FEW + 1)
    kept = distinct_cuts(np.zeros(FEW + 1, dtype=np.intp), more, more, np.zeros((FEW + 1, 2)), None)
    assert np.flatnonzero(kept).tolist() == [FEW]
