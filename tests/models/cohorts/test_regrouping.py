"""Cohorts of a run that follows another one: everybody is in one, who changed is among others, the rest stays."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.basics import ProblemError
from models.cohorts.dealing import deal
from models.cohorts.regrouping import kept_cohorts, regroup


@st.composite
def weeks(draw: Any) -> tuple[dict[str, tuple[str, ...]], list[str], set[str], int]:
    size = draw(st.integers(3, 5))
    names = [f"plant-{number:02d}" for number in range(draw(st.integers(size, 30)))]
    before = deal(names, size, draw(st.integers(0, 99)))
    gone = draw(st.sets(st.sampled_from(names), max_size=len(names) - size))
    new = [f"new-{number}" for number in range(draw(st.integers(0, 4)))]
    there = [name for name in names if name not in gone] + new
    changed = draw(st.sets(st.sampled_from(there), max_size=len(there)))
    return before, there, changed, size


@given(weeks(), st.integers(0, 99))
def test_cohorts_hold_everybody_once_and_are_large_enough(week: Any, seed: int) -> None:
    before, there, changed, size = week
    found = regroup(before, there, changed, size, seed)
    assert sorted(site for members in found.values() for site in members) == sorted(there)
    assert all(len(members) >= size for members in found.values())
    assert found == regroup(before, list(reversed(there)), changed, size, seed)


@given(weeks(), st.integers(0, 99))
def test_who_changed_is_among_others_that_did_and_never_with_plants_whose_cuts_count(week: Any, seed: int) -> None:
    before, there, changed, size = week
    fresh = {site for site in there if site in changed or site.startswith("new-")}
    found = regroup(before, there, changed, size, seed)
    shares = {site: 1.0 for site in there}
    kept = kept_cohorts(before, dict.fromkeys([*there, *(s for m in before.values() for s in m)], 1.0), found, shares,
                        set(there) - fresh)
    untouched = [frozenset(members) for members in before.values() if set(members) <= set(there) - fresh]
    again = [frozenset(members) for (members, place) in zip(found.values(), kept, strict=True) if place >= 0]
    assert set(again) <= set(untouched)
    if len(set(map(frozenset, found.values())) & set(untouched)) == 0:
        return  # dealt anew, all of them
    with_fresh = [set(members) & fresh for members in found.values() if set(members) & fresh]
    assert not any(set(each) & fresh for each in again)
    if len(fresh) < size:
        assert len(with_fresh) <= 1, "fewer than a cohort: all in one"
    else:
        assert all(len(each) >= size for each in with_fresh)
    assert len(untouched) - len(again) <= 1, "one whole cohort at most fills up the others"


def test_cuts_of_a_cohort_hold_for_the_same_plants_with_the_same_shares_and_digests_alone() -> None:
    before = {"cohort-1": ("a", "b", "c"), "cohort-2": ("d", "e", "f")}
    shares = dict.fromkeys("abcdef", 1 / 3)
    now = {"cohort-2": ("a", "b", "c"), "cohort-1": ("d", "e", "f")}
    assert kept_cohorts(before, shares, now, shares, set("abcdef")) == [0, 1]
    assert kept_cohorts(before, shares, now, shares, set("abdef")) == [-1, 1]
    assert kept_cohorts(before, shares, {"cohort-1": ("a", "b", "d")}, shares, set("abcdef")) == [-1]
    assert kept_cohorts(before, shares, {"cohort-1": ("a", "b", "c", "d")}, shares, set("abcdef")) == [-1]
    other = shares | {"a": 0.34, "b": 0.33, "c": 0.33}
    assert kept_cohorts(before, shares, now, other, set("abcdef")) == [-1, 1]
    with pytest.raises(ProblemError):
        regroup(before, ["a", "b"], (), 3)


def test_a_plant_that_is_left_alone_is_dealt_with_the_smallest_of_the_other_cohorts() -> None:
    before = {"cohort-1": ("a", "b", "c"), "cohort-2": ("d", "e", "f", "g", "h"), "cohort-3": ("i", "j", "k")}
    found = regroup(before, list("adefghijk"), (), 3)
    assert found["cohort-2"] == before["cohort-2"] and sorted(map(len, found.values())) == [4, 5]


@pytest.mark.parametrize(("off", "kept"), [(0.0, [0]), (1e-15, [0]), (1e-13, [-1]), (1e-9, [-1])])
def test_shares_are_the_same_but_for_the_rounding_of_one_division(off: float, kept: list[int]) -> None:
    before, shares = {"cohort-1": ("a", "b", "c")}, dict.fromkeys("abc", 1 / 3)
    assert kept_cohorts(before, shares, before, shares | {"b": (1 + off) / 3}, set("abc")) == kept
