"""Parts of pages: every text stays a text, moments are in UTC, and figures have their units."""

from __future__ import annotations

import html
import math
from datetime import UTC, datetime, timedelta, timezone

import pytest

from services.looks import parts

HOSTILE = '"><script>alert(1)</script>'


def test_whatever_is_put_into_a_part_stays_a_text() -> None:
    made = [
        parts.page(HOSTILE, "owner", parts.Html(""), [("/", "Overview")], "/", HOSTILE),
        parts.page("title", HOSTILE, parts.Html("")), parts.page("t", "o", parts.Html(""), [(HOSTILE, HOSTILE)]),
        parts.table(HOSTILE, ["name"], []), parts.table("label", [HOSTILE], []),
        parts.table("label", ["name", "value"], [(HOSTILE, HOSTILE)]), parts.tile(HOSTILE, HOSTILE, HOSTILE),
        parts.badge(HOSTILE, HOSTILE), parts.notice(HOSTILE, HOSTILE, HOSTILE), parts.empty(HOSTILE),
        parts.head(HOSTILE, HOSTILE), parts.card(HOSTILE, HOSTILE), parts.facts([(HOSTILE, HOSTILE)]),
        parts.api(HOSTILE), parts.paging(HOSTILE, 2, 3), parts.joined([HOSTILE]),
    ]
    for text in made:
        assert "<script" not in text and html.escape(HOSTILE) in text


def test_a_moment_is_told_in_utc_wherever_it_was_noted() -> None:
    moment = datetime(2026, 3, 4, 1, 30, tzinfo=timezone(timedelta(hours=5)))
    assert "2026-03-03 20:30 UTC" in parts.when(moment) and 'datetime="2026-03-03T20:30:00+00:00"' in parts.when(moment)
    assert parts.when(moment) == parts.when(moment.astimezone(UTC)) and parts.when(None) == parts.UNKNOWN


@pytest.mark.parametrize(("count", "told"), [
    (None, "–"), (0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1_234_000, "1.23 MB"), (2e9, "2 GB"),
    (999_499, "999 kB"), (999_500, "1 MB"), (999_999, "1 MB"), (999_999_999, "1 GB"), (2.5e12, "2.5 TB"),
])
def test_sizes_are_in_powers_of_a_thousand(count: float | None, told: str) -> None:
    assert parts.size(count) == told.replace(" ", "\u202f")


@pytest.mark.parametrize(("page", "pages", "newer", "older"), [
    (1, 1, False, False), (1, 3, False, True), (2, 3, True, True), (3, 3, True, False),
])
def test_a_list_leads_to_pages_that_are_there(page: int, pages: int, newer: bool, older: bool) -> None:
    made = parts.paging("/ledger", page, pages)
    assert (f'rel="prev" href="/ledger?page={page - 1}"' in made) == newer
    assert (f'rel="next" href="/ledger?page={page + 1}"' in made) == older
    assert ("<nav" in made) == (newer or older)


def test_a_bar_is_no_longer_than_its_place_and_none_where_there_is_no_figure() -> None:
    for share, width in ((0.25, "25.0"), (-0.5, "50.0"), (7.0, "100.0")):
        assert f'width="{width}"' in parts.bar(share)
    assert parts.bar(None) == parts.bar(math.nan) == parts.bar(math.inf) == ""
