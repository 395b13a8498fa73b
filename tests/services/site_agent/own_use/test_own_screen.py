"""What `ballast-site check` says of the data: how many, which do not serve, and what looks like a mistake."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.contracts.machines.asset_type import AssetType
from services.contracts.machines.target import Target
from services.site_agent.own_use.own_screen import data_summary, drift_account
from services.site_agent.rules.policy import Refusal, SitePolicy
from services.site_agent.settings import CsvSource, SiteSettings
from services.site_agent.vault.drift import DriftRecord
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.records.exposure_record import ExposureRecordError
from tests.services.site_agent.conftest import TWO_CLASSES, table

Data = Callable[[list[list[Any]]], CsvSource]


@pytest.fixture
def data(write_csv: Callable[..., Path]) -> Data:
    return lambda rows: CsvSource(kind="csv", path=write_csv(rows))


def policy_of(**changes: Any) -> SitePolicy:
    return SitePolicy(methods=("level-bundle",), asset_types=("pump",), **changes)


def test_rows_are_counted_by_part_and_class(data: Data, asset_type: AssetType) -> None:
    found = data_summary(data(table(80)), asset_type, policy_of())
    assert found[1] == "training: 60 rows (healthy 30, leak 30)"
    assert found[2] == "held out: 20 rows (healthy 10, leak 10)"


def test_a_plant_of_one_class_takes_part_where_its_policy_says_so(data: Data, asset_type: AssetType) -> None:
    rows = data(table(80, classes=("healthy",)))
    with pytest.raises((VaultError, Refusal)):
        data_summary(rows, asset_type, policy_of())
    allowed = data_summary(rows, asset_type, policy_of(one_class=True))
    assert "all rows of the training part are healthy: other classes are learnt from other plants alone" in allowed
    both = data_summary(data(table(80)), asset_type, policy_of(one_class=True))
    assert not any(line.startswith("all rows of the training part") for line in both)


@pytest.mark.parametrize("limits", [{"min_samples": 61}, {"min_test_samples": 21}])
def test_too_few_rows_for_the_policy_are_said_of_either_part(
    data: Data, asset_type: AssetType, limits: dict[str, int]
) -> None:
    source = data(table(80))
    data_summary(source, asset_type, policy_of(**{name: limit - 1 for name, limit in limits.items()}))
    with pytest.raises(Refusal):
        data_summary(source, asset_type, policy_of(**limits))


def test_a_sensor_that_fills_little_of_its_range_is_named_whatever_single_rows_read(
    data: Data, asset_type: AssetType
) -> None:
    header, *rows = table(400)
    for number, row in enumerate(rows):
        row[1] = 1.0 + number % 3
        row[0] = number % 100  # the whole range
    rows[7][1], rows[8][1] = 10.0, -10.0  # single readings make no range
    found = data_summary(data([header, *rows]), asset_type, policy_of())
    (told,) = [line for line in found if "a narrower range" in line]
    assert told.startswith("ripple: 98 of 100 rows read 1 to 3 bar, 10% of the sensor range (-10 to 10)")


def test_a_sensor_that_is_not_measured_is_named_once_and_not_for_a_narrow_range(
    data: Data, asset_type: AssetType
) -> None:
    found = data_summary(data([[*row[:2], row[3]] for row in table(80)]), asset_type, policy_of())
    assert [line for line in found if "oil" in line] == ["optional features that are not measured: oil"]
    assert not [line for line in data_summary(data(table(80)), asset_type, policy_of()) if "not measured" in line]


@pytest.mark.parametrize("name", ["Oil", "OIL (1)", "oil[1]", "o-i_l"])
def test_a_column_that_may_be_a_sensor_that_is_not_measured_is_named_and_not_taken_for_it(
    data: Data, asset_type: AssetType, name: str
) -> None:
    """Nothing else would say that the middle of the range stands for readings that are there."""
    rows = table(80)
    rows[0][2] = name
    source = data(rows)
    found = [line for line in data_summary(source, asset_type, policy_of()) if "is not read" in line]
    said = f'say oil = "{name}" under [data.columns]'
    assert found == [f"column {name!r} is not read: if it is oil, in the contract's unit, {said}"]
    taken = source.model_copy(update={"columns": {"oil": name}})
    assert not [line for line in data_summary(taken, asset_type, policy_of()) if "not read" in line]
    other = source.model_copy(update={"columns": {"flow": name}})
    assert not [line for line in data_summary(other, asset_type, policy_of()) if "not read" in line]


def test_a_column_is_named_in_signs_that_print(data: Data, asset_type: AssetType) -> None:
    rows = table(80)
    rows[0][2] = "oil (\x9b2J\u202e)"
    (found,) = [line for line in data_summary(data(rows), asset_type, policy_of()) if "is not read" in line]
    assert found.isprintable() and tomllib.loads(found.partition("say ")[2].partition(" under")[0]) == {
        "oil": rows[0][2]
    }


def test_a_column_that_may_be_the_target_is_named(data: Data, asset_type: AssetType) -> None:
    gapped = asset_type.model_copy(update={"target": Target(name="gap", unit="mm", low=0.0, high=8.0)})
    rows = [[*row, "Gap (mm)" if at == 0 else at % 8] for at, row in enumerate(table(80))]
    found = [line for line in data_summary(data(rows), gapped, policy_of()) if "is not read" in line]
    said = "if it is gap, in the contract's unit, say target_column = \"Gap (mm)\" under [data]"
    assert found == [f"column 'Gap (mm)' is not read: {said}"]


def test_readings_outside_a_range_are_counted_and_a_sensor_that_has_none_inside_is_told_by_itself(
    data: Data, asset_type: AssetType
) -> None:
    header, *rows = table(80)
    for row in rows[:3]:
        row[0] = 250.0
    found = data_summary(data([header, *rows]), asset_type, policy_of())
    assert [line for line in found if "flow" in line] == ["flow: 3 values outside the sensor range were clipped to it"]
    for row in rows:
        row[0] = 250.0
    (told,) = [line for line in data_summary(data([header, *rows]), asset_type, policy_of()) if "flow" in line]
    assert told.startswith("flow: every value is outside the sensor range (0 to 100 L/min)")


@pytest.fixture
def with_target(tmp_path: Path) -> AssetType:
    path = tmp_path / "target.toml"
    path.write_text(TWO_CLASSES + '[target]\nname = "gap"\nunit = "mm"\nlow = 0.0\nhigh = 8.0\n')
    return AssetType.from_toml(path)


def test_rows_that_serve_one_task_of_two_are_enough_and_the_other_is_said(data: Data, with_target: AssetType) -> None:
    header, *rows = table(80, classes=("healthy",))
    for number, row in enumerate(rows):
        row.append(float(number % 10))  # eight of the 80 are beyond the target's range
        if number % 4 == 3:
            row[3] = ""  # a row with a value of the target alone
    source = data([[*header, "gap"], *rows])
    found = data_summary(source, with_target, policy_of())
    (lacking,) = [line for line in found if line.startswith("no ")]
    assert lacking.startswith("no classification: ")
    assert "gap: 8 values outside the range were clipped to it" in found
    assert [line for line in found if line.startswith("all rows of the training part are healthy")]
    with pytest.raises((VaultError, Refusal)):
        data_summary(source, with_target, policy_of(min_samples=81))


def test_the_record_of_the_first_rows_is_let_go_whatever_happens(
    data: Data, asset_type: AssetType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[DriftRecord] = []
    close = DriftRecord.close

    def closes(self: DriftRecord) -> None:
        closed.append(self)
        close(self)

    def fails(*_: object, **__: object) -> None:
        raise ExposureRecordError("the disk is full")

    monkeypatch.setattr(DriftRecord, "close", closes)
    settings = SiteSettings(site_id="p", servers=("nats://a:1",), data=data(table(80)), exposure=tmp_path / "e.sqlite")
    drift_account(settings, asset_type)
    monkeypatch.setattr(DriftRecord, "begin", fails)
    with pytest.raises(ExposureRecordError):
        drift_account(settings, asset_type)
    assert len(closed) == 2
