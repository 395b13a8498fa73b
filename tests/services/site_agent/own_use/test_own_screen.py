"""What `ballast-site check` says of the data: how many, which do not serve, and what looks like a mistake."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.contracts.machines.asset_type import AssetType
from services.site_agent.own_use.own_screen import data_summary
from services.site_agent.rules.policy import Refusal, SitePolicy
from services.site_agent.settings import CsvSource
from services.site_agent.vault.errors import VaultError
from tests.services.site_agent.conftest import table

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
