"""Moments are stored in UTC, and one without a zone is none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy.dialects import postgresql, sqlite

from services.round_store.tables.columns import UtcDateTime

THERE = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=timezone(timedelta(hours=-5)))
HERE = datetime(2030, 1, 2, 8, 4, 5, 678901, tzinfo=UTC)


def test_a_moment_of_another_zone_is_the_same_one_in_utc() -> None:
    kind, lite, full = UtcDateTime(), sqlite.dialect(), postgresql.dialect()
    assert kind.process_bind_param(THERE, lite) == HERE.replace(tzinfo=None)
    assert kind.process_bind_param(THERE, full) == HERE
    for value, dialect in ((HERE.replace(tzinfo=None), lite), (THERE, full)):
        found = kind.process_result_value(value, dialect)
        assert found == HERE and found is not None and found.utcoffset() == timedelta(0)
    assert kind.process_bind_param(None, lite) is None is kind.process_result_value(None, full)


def test_a_time_without_a_zone_is_not_stored() -> None:
    for dialect in (sqlite.dialect(), postgresql.dialect()):
        with pytest.raises(ValueError, match="without a zone"):
            UtcDateTime().process_bind_param(datetime(2030, 1, 1), dialect)
