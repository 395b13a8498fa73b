"""Rows come and go by groups: any two versions of a table, and any comparison of more, differ by so many at least."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.site_agent.vault.isolation.row_groups import Stratum, next_version

HEALTHY, LEAK = (False, 0, False), (False, 1, False)
TESTED = (True, 0, False)


def lived(tables: list[dict[int, Stratum]], least: int) -> list[set[int]]:
    """What runs saw of tables, one after the other."""
    groups: dict[int, int] = {}
    versions = []
    for rows in tables:
        changed, inside = next_version(groups, rows, least)
        groups |= changed
        assert inside <= rows.keys(), "a row that is not there is not seen"
        versions.append(inside)
    return versions


@st.composite
def histories(draw: st.DrawFn) -> list[dict[int, Stratum]]:
    """Tables of some forty rows in which rows come, go and come back by ones, by tens and all at once."""
    strata = {row: draw(st.sampled_from([HEALTHY, LEAK, TESTED])) for row in range(40)}
    there = set(range(draw(st.integers(0, 40))))
    tables = []
    for _ in range(draw(st.integers(2, 8))):
        there = there ^ draw(st.one_of(st.sets(st.integers(0, 39), max_size=3), st.sets(st.integers(0, 39))))
        tables.append({row: strata[row] for row in there})
    return tables


@settings(max_examples=300)
@given(histories(), st.integers(1, 7))
def test_rows_that_were_seen_alike_are_many_or_none(tables: list[dict[int, Stratum]], least: int) -> None:
    versions = lived(tables, least)
    strata = {row: stratum for rows in tables for row, stratum in rows.items()}
    for part in (False, True):
        rows = [row for row in set().union(*versions) if strata[row][0] == part]
        alike = Counter(tuple(row in seen for seen in versions) for row in rows)
        assert all(count >= least for count in alike.values())


@settings(max_examples=100)
@given(histories())
def test_a_least_of_one_is_the_table_as_it_is(tables: list[dict[int, Stratum]]) -> None:
    assert lived(tables, 1) == [set(rows) for rows in tables]


def test_new_rows_wait_for_as_many_of_their_part_and_class() -> None:
    first = {row: (HEALTHY, LEAK, TESTED)[row // 10] for row in range(30)}
    waiting = dict.fromkeys(range(40, 43), HEALTHY)
    grown = [first, *(first | waiting | dict.fromkeys(range(30, last), LEAK) for last in (33, 35))]
    assert lived(grown, 5) == [set(first), set(first), set(first) | set(range(30, 35))]


def test_in_the_first_version_nothing_waits_but_a_part_of_too_few_rows() -> None:
    few = dict.fromkeys(range(3), LEAK) | dict.fromkeys(range(3, 5), (False, 2, False))
    assert lived([few], 5) == [set(range(5))], "small strata together"
    changed, _ = next_version({}, few | dict.fromkeys(range(10, 20), HEALTHY), 5)
    assert {changed[row] for row in few}.isdisjoint(changed[row] for row in range(10, 20)), "many enough by themselves"
    beside = dict.fromkeys(range(2), LEAK) | dict.fromkeys(range(2, 12), HEALTHY)
    assert lived([beside | dict.fromkeys(range(12, 16), TESTED)], 5) == [set(range(12))]
    assert lived([beside, {row: stratum for row, stratum in beside.items() if row}], 5)[1] < set(range(1, 12))


@pytest.mark.parametrize(("gone", "left_out"), [(1, 5), (4, 5), (5, 5), (6, 6), (15, 15), (16, 20), (19, 20), (20, 20)])
def test_with_a_row_that_is_gone_others_are_left_out_until_all_are_back(gone: int, left_out: int) -> None:
    first = dict.fromkeys(range(20), HEALTHY) | dict.fromkeys(range(20, 40), LEAK)
    fewer = {row: stratum for row, stratum in first.items() if row >= gone}
    found = lived([first, fewer, fewer, {row: each for row, each in first.items() if row}, first], 5)
    assert len(found[0] - found[1]) == left_out and found[1] >= set(range(20, 40))
    assert found[2] == found[1], "nothing changed, nothing comes back"
    assert found[4] == set(first)
    assert len(found[0] - found[3]) >= 5, "one is still gone"


def test_a_table_that_was_cut_short_for_a_while_is_whole_again() -> None:
    first = dict.fromkeys(range(50), HEALTHY)
    assert lived([first, {}, first, dict.fromkeys(range(7), HEALTHY), first], 5)[2::2] == [set(first), set(first)]
