"""CSV as people and their programs write it: marks, quotes, lines, blanks, and files that cannot be read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.contracts.machines.asset_type import AssetType
from services.contracts.machines.target import Target
from services.site_agent.settings import CsvSource
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.reader import Vault
from services.site_agent.vault.sources.csv_source import read
from tests.services.site_agent.vault.misfits import Rows


@pytest.mark.parametrize(("there", "stated"), [(";", ","), ("\t", ","), (",", ";"), ("|", ",")])
def test_a_file_whose_cells_are_divided_by_another_mark_says_which_line_of_the_settings_is_wrong(
    asset_type: AssetType, write_csv: Callable[..., Path], rows: Rows, there: str, stated: str
) -> None:
    source = CsvSource(kind="csv", path=write_csv(rows, delimiter=there), delimiter=stated)
    with pytest.raises(VaultError, match="cells are divided by") as caught:
        Vault(source, asset_type).current()
    assert f"say delimiter = {json.dumps(there)} under [data]" in str(caught.value)
    assert Vault(source.model_copy(update={"delimiter": there}), asset_type).current()


def test_a_file_that_is_not_there_or_not_text_is_said(asset_type: AssetType, tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    vault = Vault(CsvSource(kind="csv", path=path), asset_type)
    with pytest.raises(VaultError, match="no data file at"):
        vault.current()
    path.write_bytes(b"flow,ripple\xff\xfe\n")
    with pytest.raises(VaultError, match="is not UTF-8 text"):
        vault.current()
    path.unlink()
    path.mkdir()
    with pytest.raises(VaultError, match="cannot be read: Is a directory"):
        vault.current()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_said(asset_type: AssetType, write_csv: Any, rows: Rows) -> None:
    path = write_csv(rows)
    path.chmod(0)
    with pytest.raises(VaultError, match="cannot be read: Permission denied"):
        Vault(CsvSource(kind="csv", path=path), asset_type).current()


def test_a_line_without_cells_is_no_row_and_counts_as_a_line(load: Any, rows: Rows) -> None:
    whole = load(rows)
    assert len(load([*rows[:5], [], *rows[5:], []]).train) == len(whole.train)
    with pytest.raises(VaultError, match=", line 7: "):
        load([*rows[:5], [], rows[5][:-1]])


HEADER = "flow,ripple,oil,label\n"


@pytest.fixture
def refused(asset_type: AssetType, tmp_path: Path) -> Callable[..., str]:
    """Why a file with a text after the header is not read; ``goal``: the asset type has a target too."""

    def refused(text: str, *, goal: bool = False) -> str:
        path = tmp_path / "data.csv"
        target = Target(name="gap", unit="mm", low=0.0, high=8.0)
        path.write_text((HEADER.replace("\n", ",gap\n") if goal else HEADER) + text)
        wanted = asset_type.model_copy(update={"target": target}) if goal else asset_type
        with pytest.raises(VaultError) as caught:
            read(CsvSource(kind="csv", path=path), wanted)
        return str(caught.value)

    return refused


def test_a_row_is_named_by_its_line_in_the_file_also_below_blank_lines_and_cells_of_several(
    refused: Callable[..., str]
) -> None:
    assert "line 4: column 'flow' holds NaN" in refused("1,1,1,leak\n\nnan,1,1,leak\n")
    assert "line 4: column 'flow' holds NaN" in refused('1,1,1,"le\nak"\nnan,1,1,leak\n')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("inf,1,1,leak\nnan,1,1,leak\n", "line 2: column 'flow' holds an infinite value"),
        ('1,1,1,"leak\n1,1,1,leak\n', "is not a CSV file, line 3"),
        ("1,,1,leak\n", "line 2: column 'ripple' holds an empty cell"),
        ('1,"2,5",1,leak\n', "column 'ripple' holds a number with a comma: one before decimals needs decimal = \",\""),
        ('1,"2,500.5",1,leak\n', "column 'ripple' holds a number with a comma"),
        ('1,"-,",1,leak\n', "column 'ripple' holds text where a number must be"),
        ("1,2,3\n", "line 2: 3 cells, the header has 4"),
    ],
)
def test_the_first_cell_that_does_not_fit_is_said(refused: Callable[..., str], text: str, said: str) -> None:
    assert said in refused(text)


@pytest.mark.parametrize("above", ["\n", "logger 5\n", "sep=;\n"])
def test_what_stands_above_the_header_is_said_to_be_in_its_place(
    rows: Rows, asset_type: AssetType, write_csv: Callable[..., Path], above: str
) -> None:
    path = write_csv(rows, delimiter=";")
    path.write_text(above + path.read_text())
    with pytest.raises(VaultError, match="cells, the header has [012]; the header must be the first line of the file"):
        read(CsvSource(kind="csv", path=path, delimiter=";"), asset_type)


def test_text_below_a_gap_of_the_target_is_no_gap(refused: Callable[..., str]) -> None:
    said = refused("1,1,1,leak,\n1,1,1,leak,wide\n", goal=True)
    assert "line 3: column 'gap' holds text where a number must be" in said


def test_a_byte_order_mark_blanks_in_the_header_and_brackets_in_a_name_are_read(
    asset_type: AssetType, tmp_path: Path
) -> None:
    path = tmp_path / "data.csv"
    path.write_text("flow, ripple [A] [bar] ,oil,label\n1,2,3,leak\n", encoding="utf-8-sig")
    found = read(CsvSource(kind="csv", path=path, columns={"ripple": "ripple [A]"}), asset_type)
    np.testing.assert_array_equal(found.values, [[1.0, 2.0, 3.0]])


def test_an_optional_feature_whose_column_the_settings_name_must_be_there(
    load: Callable[..., Any], rows: Rows
) -> None:
    rows[0][2] = "temperature"
    assert load(rows).absent == ("oil",)
    with pytest.raises(VaultError, match="no column 'oil temperature' for feature oil"):
        load(rows, columns={"oil": "oil temperature"})


def test_a_column_without_a_cell_is_an_optional_sensor_that_the_plant_has_not(
    load: Callable[..., Any], rows: Rows
) -> None:
    for row in rows[1:]:
        row[2] = ""
    assert load(rows).absent == ("oil",)
    rows[7][2] = 1.0
    with pytest.raises(VaultError, match="line 2: column 'oil' holds an empty cell"):
        load(rows)
    for row in rows[1:]:
        row[1], row[2] = "", 1.0
    with pytest.raises(VaultError, match="line 2: column 'ripple' holds an empty cell"):
        load(rows)


def test_of_a_thousand_columns_some_are_told_and_first_the_one_that_may_be_meant(
    load: Callable[..., Any], rows: Rows
) -> None:
    rows[0] = ["Flow (m3/h)", *rows[0][1:]]
    wide = [[*([f"tag {at}" for at in range(1000)] if row is rows[0] else [0] * 1000), *row] for row in rows]
    with pytest.raises(VaultError) as caught:
        load(wide)
    said = str(caught.value)
    assert "no column 'flow' for feature flow; it has: Flow (m3/h), tag 0, tag 1, " in said
    assert said.endswith(", tag 28 and 974 more")
