"""Which rows of a table a run may see, so that rows come and go by groups and never by one or two.

What is told of a table before and after one row came differs by that row. Here all rows that were seen in the same
versions of the table are a group of ``least`` rows or more, and a group is in a version whole or not at all. So the
rows in which any two versions differ are groups, and so are those of any comparison of more versions.

- Rows that are new wait until there are ``least`` of their stratum (a part and a class, whose counts are told apart).
- Where rows of a group are gone, so many others of it are left out with them that the group falls in two of ``least``
  rows or more, or is left out whole. They come back when all that left with them is there again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

Groups = Mapping[int, int]
"""Group of each row that was seen, by the row's number."""
Stratum = tuple[bool, int, bool]
"""Of a row: whether it is held out, its class (-1: none), and whether it has a target."""


def next_version(groups: Groups, rows: Mapping[int, Stratum], least: int) -> tuple[dict[int, int], set[int]]:
    """Groups that are new or changed, by row, and the rows that the next version of the table has.

    ``rows``: the stratum of each row that is there, by its number. Numbers must say nothing of the rows but to those
    who have a secret: of a group that loses some, those with the least numbers are left out with them.
    """
    members: defaultdict[int, list[int]] = defaultdict(list)
    for row, group in groups.items():
        members[group].append(row)
    changed: dict[int, int] = {}
    inside: set[int] = set()
    last = max(members, default=0)
    for own in members.values():
        here = sorted(row for row in own if row in rows)
        gone = len(own) - len(here)
        left_out = max(gone, least) if gone else 0
        if len(own) - left_out < least:
            continue
        inside.update(here[left_out - gone :])
        if gone:
            last += 1
            changed |= dict.fromkeys({*own} - {*here[left_out - gone :]}, last)
    for waiting in _by_stratum(groups, rows, least):
        if len(waiting) >= least:
            last += 1
            changed |= dict.fromkeys(waiting, last)
            inside.update(waiting)
    return changed, inside


def _by_stratum(groups: Groups, rows: Mapping[int, Stratum], least: int) -> list[list[int]]:
    """Rows that were never seen, by stratum; in the first version, beside which nothing was told, no small ones."""
    new: defaultdict[Stratum, list[int]] = defaultdict(list)
    for row, stratum in rows.items():
        if row not in groups:
            new[stratum].append(row)
    return list(new.values()) if groups else _without_small(new, least)


def _without_small(new: Mapping[Stratum, list[int]], least: int) -> list[list[int]]:
    """Strata of ``least`` rows or more of each part; smaller ones are one, with a large one where they are fewer."""
    found: list[list[int]] = []
    for held_out in (False, True):
        own = [rows for stratum, rows in new.items() if stratum[0] == held_out]
        large = [rows for rows in own if len(rows) >= least]
        small = [row for rows in own if len(rows) < least for row in rows]
        if large and len(small) < least:
            large[-1] = [*large[-1], *small]
        elif small:
            large.append(small)
        found += large
    return found
