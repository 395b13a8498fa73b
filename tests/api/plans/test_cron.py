from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.plans.cron import check_cron
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
        "1/-2 * * * *", "1.5 * * * *", "\u0663 * * * *",
    ],
)
def test_schedules_that_are_none(text: str) -> None:
    with pytest.raises(InvalidInputError, match="^cron: ") as found:
        check_cron(text)
    assert found.value.code == "bad_cron"


def terms(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high).map(str)
    span = st.tuples(st.integers(low, high), st.integers(low, high)).map(lambda two: f"{min(two)}-{max(two)}")
    plain = st.one_of(st.just("*"), number, span)
    stepped = st.tuples(st.one_of(st.just("*"), span), st.integers(1, high)).map(lambda two: f"{two[0]}/{two[1]}")
    return st.lists(st.one_of(plain, stepped), min_size=1, max_size=3).map(",".join)


@settings(deadline=None)  # the first call imports Prefect
@given(st.tuples(terms(0, 59), terms(0, 23), terms(1, 31), terms(1, 12), terms(0, 7)))
def test_prefect_reads_whatever_is_accepted(fields: tuple[str, ...]) -> None:
    """The flows process hands the text to Prefect: nothing that passes here may fail there."""
    from prefect.client.schemas.schedules import CronSchedule

    text = " ".join(fields)
    try:
        check_cron(text)
    except InvalidInputError:
        assert "none of these months" in _reason(text)
        return
    assert CronSchedule(cron=text).cron == text


def _reason(text: str) -> str:
    with pytest.raises(InvalidInputError) as found:
        check_cron(text)
    return str(found.value)
