"""Figures, shares, times and durations as every page writes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from math import inf, nan

import pytest

from api.console.formats import UNKNOWN, duration, figure, percent, plural, shown, unit, when

THIN = "\u202f"


@pytest.mark.parametrize(("value", "text"), [
    (None, UNKNOWN), (nan, UNKNOWN), (inf, "∞"), (-inf, "-∞"), (0.0, "0"), (1234567, "1 234 567"), (47400.0, "47 400"),
    (9999.0, "9999"), (9999.6, "10 000"), (-9999.6, "-10 000"), (0.000012345, "1.234e-05"), (1e9, "1e+09"),
])
def test_a_figure_has_four_digits_and_no_exponent_where_it_can_be_read(value: float | None, text: str) -> None:
    assert figure(value).replace(THIN, " ") == text


def test_shares_are_of_a_hundred() -> None:
    assert [percent(share) for share in (None, nan)] == [UNKNOWN] * 2
    assert [percent(share) for share in (0.1234, 1.0, 9.999)] == [f"12.3{THIN}%", f"100{THIN}%", f"1{THIN}000{THIN}%"]


@pytest.mark.parametrize(("seconds", "text"), [
    (None, UNKNOWN), (0.0, "0 ms"), (0.0123, "12.3 ms"), (0.9999, "1 000 ms"), (1.0, "1 s"), (59.0, "59 s"),
    (60.0, "1 min"), (3599.0, "60 min"), (3600.0, "1 h"), (3.6e6, "1 000 h"),
])
def test_a_duration_has_the_largest_unit_that_it_fills(seconds: float | None, text: str) -> None:
    assert duration(seconds).replace(THIN, " ") == text


def test_a_moment_is_written_in_utc() -> None:
    moment = datetime(2031, 1, 2, 1, 30, 59, tzinfo=timezone(timedelta(hours=2)))
    assert when(moment) == '<time datetime="2031-01-01T23:30:59+00:00">2031-01-01 23:30 UTC</time>'
    assert when(moment.astimezone(UTC)) == when(moment) and when(None) == UNKNOWN


def test_words_from_outside_are_escaped() -> None:
    assert "<b>" not in shown("<b>") and "<b>" not in shown({"<b>": ["<b>"]}) and "not set" in shown(None)
    assert (unit("1"), unit("bar")) == ("", f"{THIN}bar")
    assert (plural(1, "plant"), plural(2, "plant")) == ("1 plant", "2 plants")
    assert plural(2, "entry", "entries") == "2 entries"
