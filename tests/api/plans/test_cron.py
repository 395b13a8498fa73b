from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from prefect.server.schemas.schedules import CronSchedule

from api.plans.cron import SKIPPED_COMES_LATER, check_cron, next_times
from services.contracts.errors import InvalidInputError


@pytest.mark.parametrize(
    "text",
    [
        "* * * * *", "0 2 * * *", "*/15 0-6,22,23 1,15 jan-mar MON-FRI", "0 0 29 2 *", "59 23 31 12 7", "5/10 * * * 0",
        "0 0 31 1,2 *", "0 0 31 2 1",
    ],
)
def test_schedules_that_come(text: str) -> None:
    check_cron(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "* * * *", "* * * * * *", "@daily", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *",
        "* * * * 8", "*/0 * * * *", "5-1 * * * *", "1,,2 * * * *", "a * * * *", "* * * mond *", "-1 * * * *",
        "* * 30 2 *", "* * 31 4,6,9,11 *", "* * L * *", "* * * * 1#2", "R * * * *", "H * * * *", "* * * * *-5",
        "1/-2 * * * *", "1.5 * * * *", "\u0663 * * * *", "3-3 * * * *", "59/5 * * * *", "* * * dec-12 *", "* * * * 7/2",
    ],
)
def test_schedules_that_are_none(text: str) -> None:
    with pytest.raises(InvalidInputError, match="^cron: ") as found:
        check_cron(text)
    assert found.value.code == "bad_cron"


def test_digits_that_make_no_number_are_no_schedule() -> None:
    for text in (f"*/{'9' * 5000}", "9" * 5000, "0" * 5000, f"0-{'9' * 5000}", "1" * 10, f"*/{'1' * 10}"):
        with pytest.raises(InvalidInputError, match="is no minute"):
            check_cron(f"{text} * * * *")
    check_cron("000000059 */000000059 * * *")


def terms(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high).map(str)
    span = st.tuples(st.integers(low, high), st.integers(low, high)).map(lambda two: f"{min(two)}-{max(two)}")
    plain = st.one_of(st.just("*"), number, span)
    stepped = st.tuples(st.one_of(st.just("*"), span), st.integers(1, high)).map(lambda two: f"{two[0]}/{two[1]}")
    return st.lists(st.one_of(plain, stepped), min_size=1, max_size=3).map(",".join)


@given(st.tuples(terms(0, 59), terms(0, 23), terms(1, 31), terms(1, 12), terms(0, 7)))
def test_prefect_reads_whatever_is_accepted(fields: tuple[str, ...]) -> None:
    """The flows process hands the text to Prefect: nothing that passes here may fail there."""
    text = " ".join(fields)
    try:
        check_cron(text)
    except InvalidInputError as error:
        assert "none of these months" in str(error) or "range of one" in str(error)
        return
    assert CronSchedule(cron=text).cron == text


@settings(max_examples=40)
@given(st.tuples(terms(0, 59), terms(0, 23), terms(1, 31), terms(1, 12), terms(0, 7)))
@example(("0", "0", "*/2", "*", "1"))
@example(("0", "0", "5,*", "*", "1"))
@example(("0", "0", "*/1", "*", "*/3"))
@example(("0", "0", "*", "feb,oct", "1/2"))
@example(("0", "0", "*", "*", "5-7/2"))
@example(("59/5", "3-3", "*", "*", "7/2"))
def test_what_is_announced_is_when_prefect_starts_it(fields: tuple[str, ...]) -> None:
    """Of ranges that begin where they end too, which older plans may have."""
    text, start = " ".join(fields), datetime(2026, 3, 23, 12, 0, tzinfo=UTC)
    found = next_times(text, "UTC", start, 3)
    assume(found)
    dates = asyncio.run(CronSchedule(cron=text, timezone="UTC").get_dates(n=len(found) + 1, start=start))
    assert found == sorted({date.astimezone(UTC) for date in dates} - {start})[: len(found)]


SKIPPED = "2026-03-29T01:30" if SKIPPED_COMES_LATER else "2026-03-29T00:30"
MONDAY = datetime(2026, 3, 23, 12, 0, tzinfo=UTC)  # Berlin's clocks go forward on Sunday, 29 March, at 2:00


@pytest.mark.parametrize(
    ("text", "zone", "after", "expected"),
    [
        ("0 3 * * 1", "UTC", MONDAY, ["2026-03-30T03:00", "2026-04-06T03:00"]),
        ("30 4 24 3 *", "UTC", MONDAY, ["2026-03-24T04:30", "2027-03-24T04:30"]),
        ("0 5 * * *", "Europe/Berlin", MONDAY.replace(day=28), ["2026-03-29T03:00", "2026-03-30T03:00"]),
        ("30 2 * * *", "Europe/Berlin", MONDAY.replace(day=28), [SKIPPED, "2026-03-30T00:30"]),
        ("0 0 25 * 2", "UTC", MONDAY, ["2026-03-24T00:00", "2026-03-25T00:00"]),
        ("*/20 12 * * *", "UTC", MONDAY, ["2026-03-23T12:20", "2026-03-23T12:40"]),
        ("0 0 * * 0", "UTC", MONDAY, ["2026-03-29T00:00", "2026-04-05T00:00"]),
        ("0 0 * * 7", "UTC", MONDAY, ["2026-03-29T00:00", "2026-04-05T00:00"]),
        ("0 0 1 may,NOV *", "UTC", MONDAY, ["2026-05-01T00:00", "2026-11-01T00:00"]),
        ("0 5/9 * * *", "UTC", MONDAY, ["2026-03-23T14:00", "2026-03-23T23:00"]),
        ("0 8 * * *", "Pacific/Kiritimati", MONDAY, ["2026-03-23T18:00", "2026-03-24T18:00"]),
        ("0 18 * * *", "Pacific/Niue", MONDAY.replace(hour=3), ["2026-03-23T05:00", "2026-03-24T05:00"]),
    ],
)
def test_when_a_schedule_comes_next(text: str, zone: str, after: datetime, expected: list[str]) -> None:
    found = next_times(text, zone, after, 2)
    assert [moment.isoformat()[:16] for moment in found] == expected


@pytest.mark.parametrize("text", ["30 2 * * *", "0 2 * * *", "30 1 * * *", "0 0 * * *", "0 */6 * * *", "*/20 * * * *"])
@pytest.mark.parametrize(("zone", "before"), [
    ("Europe/Berlin", "2027-03-27"), ("Europe/Berlin", "2027-10-30"), ("America/New_York", "2027-03-13"),
    ("America/New_York", "2027-11-06"), ("Africa/Cairo", "2027-04-29"), ("Australia/Lord_Howe", "2027-10-02"),
    ("Australia/Lord_Howe", "2027-04-03"), ("Asia/Kathmandu", "2027-03-27"),
])
def test_what_is_announced_is_when_prefect_starts_it_also_where_clocks_change(
    text: str, zone: str, before: str
) -> None:
    """Clocks that skip an hour, half an hour, midnight, and that show an hour twice."""
    start = datetime.fromisoformat(f"{before}T12:00").replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    dates = asyncio.run(CronSchedule(cron=text, timezone=zone).get_dates(n=100, start=start))
    wanted = sorted({date.astimezone(UTC) for date in dates} - {start})
    assert next_times(text, zone, start, len(wanted)) == wanted
