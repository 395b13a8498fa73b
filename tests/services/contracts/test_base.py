"""What every contract is made of: names, moments, and records that are taken over by their names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from services.contracts.base import TABLE, WORD, Contract, Moment, Slug, place_of

SLUG: TypeAdapter[str] = TypeAdapter(Slug)
MOMENT: TypeAdapter[datetime] = TypeAdapter(Moment)


class Pair(Contract):
    """Two numbers."""

    one: int
    two: int = 2


@pytest.mark.parametrize("name", ["a", "7", "plant-7", "a" * 40, "a--b"])
def test_what_is_a_name(name: str) -> None:
    assert SLUG.validate_python(name) == name


@pytest.mark.parametrize("name", [
    "", "-a", "a-", "A", "plant_7", "plant 7", "plant.7", "a*", "a>", "a/b", "é", "a" * 41, "a\n", "\u0661",
])
def test_what_is_none(name: str) -> None:
    """In a subject of NATS a dot would begin another part, and a star or an arrow would stand for others' names."""
    with pytest.raises(ValidationError):
        SLUG.validate_python(name)


def test_a_moment_is_held_in_utc_whatever_its_zone() -> None:
    eastern = datetime(2031, 5, 6, 1, tzinfo=timezone(timedelta(hours=2)))
    found = MOMENT.validate_python(eastern)
    assert found == eastern and found.tzinfo == UTC and found.isoformat() == "2031-05-05T23:00:00+00:00"
    with pytest.raises(ValidationError, match="timezone"):
        MOMENT.validate_python("2031-05-06T01:00:00")


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_moment_that_utc_does_not_have_does_not_fit(text: str) -> None:
    with pytest.raises(ValidationError, match="in no year from 1 to 9999 in UTC"):
        MOMENT.validate_python(text)


def test_tags_of_kinds_are_no_part_of_a_place() -> None:
    assert place_of(("spec", "loss", TABLE, "name", WORD, 0)) == ("spec", "loss", "name", 0)
    assert place_of(("query", "status", "literal['pending','running']")) == ("query", "status")


def test_a_record_is_taken_by_name_and_what_is_given_beside_it_counts() -> None:
    record = SimpleNamespace(one=7, two=8, three=9)
    assert Pair.of_record(record) == Pair(one=7, two=8)
    assert Pair.of_record(record, one=1) == Pair(one=1, two=8), "what is given, not what the record has"
    with pytest.raises(AttributeError, match="two"):
        Pair.of_record(SimpleNamespace(one=7))
    with pytest.raises(ValidationError):
        Pair.of_record(record, four=4)


def test_a_contract_takes_no_other_field_and_does_not_change() -> None:
    with pytest.raises(ValidationError, match="three"):
        Pair.model_validate({"one": 1, "three": 3})
    made: Any = Pair(one=1)
    with pytest.raises(ValidationError, match="frozen"):
        made.one = 2
