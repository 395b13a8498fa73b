"""Parquet: what it gives beside CSV, and what of it does not fit."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.contracts.machines.asset_type import AssetType
from services.contracts.machines.target import Target
from services.site_agent.settings import ParquetSource
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.reader import Vault
from tests.services.site_agent.vault.misfits import Rows, keep_header, put


def write_parquet(rows: Rows, path: Path, units: Mapping[str, str | bytes] | None = None) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs the extra parquet")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {name: [row[number] for row in rows[1:]] for number, name in enumerate(rows[0])}
    arrays = {name: pyarrow.array(cells) for name, cells in columns.items()}
    fields = [
        pyarrow.field(name, array.type, metadata={"unit": units[name]} if units and name in units else None)
        for name, array in arrays.items()
    ]
    parquet.write_table(pyarrow.table(list(arrays.values()), schema=pyarrow.schema(fields)), path)


def test_parquet_gives_what_csv_gives(load: Any, rows: Rows, asset_type: AssetType, tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    write_parquet(rows, path, units={"flow": "L/min"})
    ours = Vault(ParquetSource(kind="parquet", path=path), asset_type).current()
    theirs = load(rows)
    np.testing.assert_array_equal(ours.train.features, theirs.train.features)
    np.testing.assert_array_equal(ours.test.classes, theirs.test.classes)


def test_a_folder_is_no_data_file_whatever_lies_in_it(rows: Rows, asset_type: AssetType, tmp_path: Path) -> None:
    """A reader of Parquet would take all files in it for one table: copies and files of before are among them.

    As Spark and Dask write a table.
    """
    folder = tmp_path / "measured.parquet"
    folder.mkdir()
    for name in ("a.parquet", "b.parquet"):
        write_parquet(rows, folder / name)
    with pytest.raises(VaultError, match="is a folder; one Parquet file is read: write its parts as one"):
        Vault(ParquetSource(kind="parquet", path=folder), asset_type).current()


def test_gaps_of_the_target_and_blanks_around_words_are_read_from_parquet_as_from_csv(
    load: Any, rows: Rows, asset_type: AssetType, tmp_path: Path
) -> None:
    rows[0].append("gap")
    for number, row in enumerate(rows[1:]):
        row[3] = f" {row[3]} "
        row.append(None if number % 5 == 0 else float(number % 8))
    write_parquet(rows, tmp_path / "data.parquet")
    goal = asset_type.model_copy(update={"target": Target(name="gap", unit="mm", low=0.0, high=8.0)})
    found = Vault(ParquetSource(kind="parquet", path=tmp_path / "data.parquet"), goal).current()
    known = [int(part.known("regression").sum()) for part in (found.train, found.test)]
    assert sum(known) == 32 and len(found.train) + len(found.test) == 40
    assert set(found.train.classes) == {0, 1}


def test_a_row_with_a_target_and_without_a_class_is_one_in_parquet_too(
    rows: Rows, asset_type: AssetType, tmp_path: Path
) -> None:
    rows[0].append("gap")
    for row in rows[1:]:
        row.append(4.0)
    rows[5][3] = None
    write_parquet(rows, tmp_path / "data.parquet")
    goal = asset_type.model_copy(update={"target": Target(name="gap", unit="mm", low=0.0, high=8.0)})
    found = Vault(ParquetSource(kind="parquet", path=tmp_path / "data.parquet"), goal).current()
    assert sum(int((part.classes < 0).sum()) for part in (found.train, found.test)) == 1
    with pytest.raises(VaultError, match="row 5: column 'label' holds an empty cell"):
        Vault(ParquetSource(kind="parquet", path=tmp_path / "data.parquet"), asset_type).current()


@pytest.mark.parametrize("typed", ["", "float32", "string", "timestamp[s]"])
def test_a_column_without_a_cell_is_an_optional_sensor_that_the_plant_has_not(
    rows: Rows, asset_type: AssetType, tmp_path: Path, typed: str
) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs the extra parquet")
    for row in rows[1:]:
        row[2] = None
    write_parquet(rows, tmp_path / "data.parquet")
    if typed:
        parquet = pytest.importorskip("pyarrow.parquet")
        table = parquet.read_table(tmp_path / "data.parquet")
        empty = pyarrow.nulls(len(table)).cast(typed)
        parquet.write_table(table.set_column(2, "oil", empty), tmp_path / "data.parquet")
    assert Vault(ParquetSource(kind="parquet", path=tmp_path / "data.parquet"), asset_type).current().absent == ("oil",)


@pytest.mark.parametrize(
    ("change", "units", "expected"),
    [
        (put(3, 1, None), None, "row 3: column 'ripple' holds an empty cell"),
        (put(3, 1, float("nan")), None, "row 3: column 'ripple' holds NaN"),
        (put(3, 3, "melted"), None, "row 3: label 'melted' is not a class"),
        (put(0, 0, "q"), None, "no column 'flow'"),
        (put(0, 0, "flow"), {"flow": "gpm"}, "flow is in 'gpm', the contract wants 'L/min'"),
        (keep_header, None, "has columns but no rows"),
    ],
)
def test_what_does_not_fit_in_parquet_is_said(
    rows: Rows, asset_type: AssetType, tmp_path: Path, change: Any, units: Any, expected: str
) -> None:
    change(rows)
    write_parquet(rows, tmp_path / "data.parquet", units)
    with pytest.raises(VaultError, match=expected):
        Vault(ParquetSource(kind="parquet", path=tmp_path / "data.parquet"), asset_type).current()


def test_decimals_of_a_database_are_numbers(rows: Rows, asset_type: AssetType, tmp_path: Path) -> None:
    found = []
    for kind in (float, lambda value: Decimal(str(value))):
        for row in rows[1:]:
            row[1] = kind(round(float(row[1]), 2))
        write_parquet(rows, tmp_path / "data.parquet")
        found.append(Vault(ParquetSource(kind="parquet", path=tmp_path / "data.parquet"), asset_type).current())
    assert found[0].train.features.tolist() == found[1].train.features.tolist()


def test_a_unit_in_another_encoding_is_one_that_does_not_fit(rows: Rows, asset_type: AssetType, tmp_path: Path) -> None:
    write_parquet(rows, tmp_path / "data.parquet", {"flow": "°C".encode("latin-1")})
    with pytest.raises(VaultError, match="flow is in '.C', the contract wants 'L/min'"):
        Vault(ParquetSource(kind="parquet", path=tmp_path / "data.parquet"), asset_type).current()


def test_text_in_a_number_column_of_parquet_and_a_broken_file(
    rows: Rows, asset_type: AssetType, tmp_path: Path
) -> None:
    path = tmp_path / "data.parquet"
    for row in rows[1:]:
        row[1] = str(row[1])
    write_parquet(rows, path)
    vault = Vault(ParquetSource(kind="parquet", path=path), asset_type)
    with pytest.raises(VaultError, match="column 'ripple' holds string, numbers are needed"):
        vault.current()
    for row in rows[1:]:
        row[1] = True
    write_parquet(rows, path)
    with pytest.raises(VaultError, match="column 'ripple' holds bool, numbers are needed"):
        vault.current()
    path.write_bytes(b"PAR1 not really")
    with pytest.raises(VaultError, match="cannot be read as Parquet"):
        vault.current()


def test_without_pyarrow_the_extra_is_named(
    rows: Rows, asset_type: AssetType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data.parquet"
    write_parquet(rows, path)
    real_import = builtins.__import__

    def no_pyarrow(name: str, *arguments: Any, **named: Any) -> Any:
        if name.split(".")[0] == "pyarrow":
            raise ModuleNotFoundError(name)
        return real_import(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", no_pyarrow)
    with pytest.raises(VaultError, match=r"ballast-diagnosis\[parquet\]"):
        Vault(ParquetSource(kind="parquet", path=path), asset_type).current()


@pytest.mark.parametrize(("place", "said"), [
    ("cell", r"^data\.parquet: column 'label' holds text that is not UTF-8"),
    ("gap", r"^data\.parquet, row 1: column 'label' holds an empty cell"),
    ("name", r"^data\.parquet cannot be read as Parquet: the name of a column is not UTF-8"),
])
def test_text_in_another_encoding_is_said_in_one_line(
    rows: Rows, asset_type: AssetType, tmp_path: Path, place: str, said: str
) -> None:
    """Parquet's own readers take it as it is, and it fails where the words are wanted."""
    path = tmp_path / "data.parquet"
    for number, row in enumerate(rows[1:]):
        row[3] = None if place == "gap" and number == 0 else "state-one"
    rows[0].append("state-two")
    for row in rows[1:]:
        row.append(1.0)
    write_parquet(rows, path)
    words = {"cell": b"state-one", "gap": b"state-one", "name": b"state-two"}
    path.write_bytes(path.read_bytes().replace(words[place], words[place].replace(b"-", b"\xe4")))
    with pytest.raises(VaultError, match=said):
        Vault(ParquetSource(kind="parquet", path=path), asset_type).current()


def test_a_number_that_is_none_names_no_machine(rows: Rows, asset_type: AssetType, tmp_path: Path) -> None:
    rows[0].append("pump")
    for number, row in enumerate(rows[1:]):
        row.append(float("nan") if number == 2 else 1.0 + number % 4)
    write_parquet(rows, tmp_path / "data.parquet")
    source = ParquetSource(kind="parquet", path=tmp_path / "data.parquet", machine_column="pump")
    with pytest.raises(VaultError, match="row 3: column 'pump' holds an empty cell"):
        Vault(source, asset_type).current()


def test_blanks_around_a_name_of_a_column_count_no_more_than_in_csv(
    rows: Rows, asset_type: AssetType, tmp_path: Path
) -> None:
    rows[0] = [f" {name} " for name in rows[0]]
    write_parquet(rows, tmp_path / "data.parquet")
    found = Vault(ParquetSource(kind="parquet", path=tmp_path / "data.parquet"), asset_type).current()
    assert not found.absent and len(found.train) == 30
