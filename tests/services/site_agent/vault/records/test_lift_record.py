"""Lifts are written down for each version of the data and each kind, whole or not at all, and are never forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.site_agent.vault.records.exposure_record import ExposureRecordError
from services.site_agent.vault.records.lift_record import LiftRecord


def test_the_same_lift_is_told_of_each_version_of_the_data_and_each_kind(tmp_path: Path) -> None:
    """Or rows that were new would have no lift against them."""
    for path in (None, tmp_path / "exposure.sqlite"):
        record = LiftRecord(path)
        record.add("first", "fourier", {"a": 30, "b": 8})
        record.add("second", "fourier", {"a": 30})
        record.add("first", "spline", {"a": 5})
        assert record.told("first", "fourier") == {"a": 30, "b": 8}
        assert record.told("second", "fourier") == {"a": 30} and record.told("first", "spline") == {"a": 5}
        assert record.told("third", "fourier") == {} == record.told("second", "spline")
        record.close()


def test_what_was_told_stays_whatever_comes_later_and_who_opens_the_file(tmp_path: Path) -> None:
    path = tmp_path / "exposure.sqlite"
    record = LiftRecord(path)
    record.add("first", "fourier", {"a": 30})
    record.add("first", "fourier", {"a": 1, "b": 2})
    record.close()
    again = LiftRecord(path)
    assert again.told("first", "fourier") == {"a": 30, "b": 2}, "the numbers that were told first"
    again.close()


def test_of_lines_of_which_one_does_not_fit_none_is_written(tmp_path: Path) -> None:
    record = LiftRecord(tmp_path / "exposure.sqlite")
    statement = "INSERT INTO lift VALUES (?, ?, ?, ?)"
    with pytest.raises(ExposureRecordError, match=r"the record of lifts, .*exposure\.sqlite, fails"):
        record.write(statement, [("first", "fourier", "a", 3), ("first", "fourier", "b", None)])
    record.write(statement, [("first", "fourier", "c", 3)])
    assert record.told("first", "fourier") == {"c": 3}
    record.close()
    with pytest.raises(ExposureRecordError, match="the record of lifts"):
        record.told("first", "fourier")


def test_a_file_that_is_no_record_is_said_to_be_none(tmp_path: Path) -> None:
    path = tmp_path / "exposure.sqlite"
    path.write_bytes(b"nothing of the kind" * 100)
    with pytest.raises(ExposureRecordError, match="the record of lifts"):
        LiftRecord(path)
