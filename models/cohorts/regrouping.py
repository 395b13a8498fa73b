r"""Cohorts of a run that follows another one: whose cuts still hold, and who is dealt with whom.

A cut of a cohort is one of ``r_c = sum_{g in c} s_g r_g`` with ``s_g = a_g / A_c``. It holds in a later run where the
cohort has the same plants, none of which changed, with the same shares. So cohorts without a change stay as they are.
Plants that changed leave their cohorts and are put together, at least ``size`` in a cohort; where fewer changed, plants
that did not fill up theirs. What is left of the cohorts that they came from is dealt in the order of those, so
that who was together stays so.

**Why changed plants go together.** The sums of two runs over the same plants at nearly the same weights differ by what
changed. With one plant that changed in a cohort the difference is of that plant; with ``size`` of them it is of a sum
over so many. The sum over all cohorts is known in both runs whoever is dealt with whom, so where fewer than ``size``
plants changed no dealing hides them better than the sum over all does, and the new cohorts say no more than that one.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from models.cohorts.dealing import Cohorts, deal

SAME_SHARE = 1e-14
"""Relative: rounding of a weight over a cohort's weight; a sum of words is coarser than that."""


def regroup(
    before: Cohorts, site_ids: Sequence[str], changed: Collection[str], size: int, seed: int = 0
) -> dict[str, tuple[str, ...]]:
    """Cohorts of ``site_ids`` after those of the run ``before``; ``changed`` are plants whose cuts hold no more.

    A plant that was not there before counts as changed. Where every cohort has a change they are dealt by the seed.

    Raises
    ------
    ProblemError
        As :func:`models.cohorts.dealing.deal`.
    """
    known = {site for members in before.values() for site in members}
    fresh = sorted(site for site in site_ids if site in changed or site not in known)
    whole = {
        name: tuple(members) for name, members in before.items()
        if len(members) >= size and set(members) <= set(site_ids) - set(fresh)
    }
    staying = {site for members in whole.values() for site in members}
    left = [site for members in before.values() for site in members if site in site_ids]
    left = [site for site in left if site not in staying and site not in fresh]
    if not whole or len(site_ids) < size:
        return deal(site_ids, size, seed)
    drawn = [fresh[k] for k in np.random.default_rng(seed).permutation(len(fresh))]
    while 0 < len(drawn) + len(left) < size:  # too few for a cohort: the smallest of the others is dealt with them
        smallest = min(sorted(whole), key=lambda name: len(whole[name]))
        left += whole.pop(smallest)
    if len(drawn) < size:
        parts = _parts([*drawn, *left], size)  # the first has all that changed
    elif len(left) < size:
        parts = _parts(drawn, size)
        parts[-1] += left
    else:
        parts = [*_parts(drawn, size), *_parts(left, size)]
    free = (f"cohort-{k}" for k in range(1, len(site_ids) + 1) if f"cohort-{k}" not in whole)
    return whole | {name: tuple(sorted(part)) for name, part in zip(free, parts, strict=False)}


def kept_cohorts(
    before: Cohorts, shares_before: Mapping[str, float], cohorts: Cohorts, shares: Mapping[str, float],
    unchanged: Collection[str],
) -> list[int]:
    """Place of each cohort in the run ``before`` where its risk is the same function, else -1."""
    places = {frozenset(members): place for place, members in enumerate(before.values())}
    kept = []
    for members in cohorts.values():
        same = set(members) <= set(unchanged) and all(
            abs(shares[site] - shares_before.get(site, np.inf)) <= SAME_SHARE * shares[site] for site in members
        )
        kept.append(places.get(frozenset(members), -1) if same else -1)
    return kept


def _parts(sites: Sequence[str], size: int) -> list[list[str]]:
    """Runs of ``size`` to ``2 size - 1`` sites, in order."""
    count = len(sites) // size
    ends = [round(k * len(sites) / count) for k in range(count + 1)] if count else []
    return [list(sites[low:high]) for low, high in itertools.pairwise(ends)]
