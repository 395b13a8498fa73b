"""The vault: what fits is read right, and what does not is said precisely, on the plant's side alone."""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.contracts.machines.asset_type import AssetType
from services.contracts.machines.target import Target
from services.site_agent.settings import CsvSource, ParquetSource
from services.site_agent.vault.dataset import Dataset
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.reader import Vault

Rows = list[list[Any]]


@pytest.fixture
def load(asset_type: AssetType, write_csv: Callable[..., Path]) -> Callable[..., Dataset]:
    def load(rows: Rows, delimiter: str = ",", **source: Any) -> Dataset:
        path = write_csv(rows, delimiter=delimiter)
        return Vault(CsvSource(kind="csv", path=path, delimiter=delimiter, **source), asset_type).current()

    return load


@pytest.fixture
def rows(make_table: Callable[..., Rows]) -> Rows:
    return make_table(40)


def test_features_are_scaled_by_the_sensor_ranges_and_columns_may_stand_in_any_order(load: Any) -> None:
    rows = [["note", "label", "ripple", "flow", "oil"], ["x", "healthy", -10, 25, 1], ["y", "leak", 5, 100, 4]]
    dataset = load(rows, test_fraction=0.1)
    np.testing.assert_allclose(dataset.train.features, [[0.25, 0.0, 0.25], [1.0, 0.75, 1.0]])
    np.testing.assert_array_equal(dataset.train.classes, [0, 1])
    assert len(dataset.test) == 0 and not dataset.clipped and not dataset.absent


def test_columns_labels_and_the_european_way_of_writing_numbers(load: Any) -> None:
    rows = [["Durchfluss", "ripple [bar]", "Zustand"], ["50,0", "1,5", "gut"], ["75,0", "0", "undicht"]]
    dataset = load(
        rows, delimiter=";", decimal=",", columns={"flow": "Durchfluss"}, label_column="Zustand",
        labels={"gut": "healthy", "undicht": "leak"}, units={"flow": "L/min"}, test_fraction=0.1,
    )
    np.testing.assert_allclose(dataset.train.features[:, :2], [[0.5, 0.575], [0.75, 0.5]])
    assert dataset.absent == ("oil",)
    np.testing.assert_array_equal(dataset.train.features[:, 2], 0.5)


@pytest.mark.parametrize(("there", "stated"), [(";", ","), ("\t", ","), (",", ";"), ("|", ",")])
def test_a_file_whose_cells_are_divided_by_another_mark_says_which_line_of_the_settings_is_wrong(
    asset_type: AssetType, write_csv: Callable[..., Path], rows: Rows, there: str, stated: str
) -> None:
    source = CsvSource(kind="csv", path=write_csv(rows, delimiter=there), delimiter=stated)
    with pytest.raises(VaultError, match="cells are divided by") as caught:
        Vault(source, asset_type).current()
    assert f"say delimiter = {json.dumps(there)} under [data]" in str(caught.value)
    assert Vault(source.model_copy(update={"delimiter": there}), asset_type).current()


def test_a_split_column_is_obeyed(load: Any, rows: Rows) -> None:
    for number, row in enumerate(rows):
        row.append("split" if number == 0 else "test" if number <= 10 else "train")
    dataset = load(rows, split_column="split")
    assert (len(dataset.train), len(dataset.test)) == (30, 10)


def test_the_held_out_part_is_stratified_and_does_not_depend_on_the_order(load: Any, make_table: Any) -> None:
    rows = make_table(200)
    one, other = load(rows), load([rows[0], *reversed(rows[1:])])
    assert (len(one.train), len(one.test)) == (150, 50)
    np.testing.assert_array_equal(np.bincount(one.test.classes), [25, 25])
    np.testing.assert_array_equal(np.unique(one.test.features, axis=0), np.unique(other.test.features, axis=0))
    assert not np.array_equal(np.unique(load(rows, seed=1).test.features, axis=0), np.unique(one.test.features, axis=0))


def test_a_value_outside_its_range_is_clipped_or_refused_as_the_contract_says(load: Any, rows: Rows) -> None:
    rows[3][0] = 1e9
    dataset = load(rows)
    assert dataset.clipped == {"flow": 1}
    assert max(dataset.train.features.max(), dataset.test.features.max()) == 1.0
    rows[4][1] = 10.5
    with pytest.raises(VaultError, match=r"line 5: feature ripple is outside its sensor range \[-10, 10\] bar"):
        load(rows)


def put(row: int, column: int | slice, value: Any) -> Callable[[Rows], None]:
    def change(rows: Rows) -> None:
        rows[row][column] = value

    return change


def drop_column(rows: Rows) -> None:
    for row in rows:
        del row[0]


def drop_cell(rows: Rows) -> None:
    del rows[7][1]


def keep_header(rows: Rows) -> None:
    del rows[1:]


def clear(rows: Rows) -> None:
    rows.clear()


MISFITS: dict[str, tuple[Callable[[Rows], None], dict[str, Any], str]] = {
    "missing column": (drop_column, {}, "no column 'flow' for feature flow; it has: ripple, oil, label"),
    "missing mapped column": (put(0, 0, "q"), {"columns": {"flow": "Q"}}, "no column 'Q' for feature flow"),
    "missing label column": (put(0, 3, "state"), {}, "no column 'label' for the label"),
    "missing split column": (put(0, 0, "flow"), {"split_column": "part"}, "no column 'part' for the split"),
    "unknown feature in the mapping": (put(0, 0, "flow"), {"columns": {"flwo": "q"}}, "no such feature"),
    "unknown feature in the units": (put(0, 0, "flow"), {"units": {"flwo": "q"}}, "no such feature"),
    "wrong unit in the settings": (
        put(0, 0, "flow"), {"units": {"flow": "m3/h"}}, "flow is in 'm3/h', the contract wants 'L/min'",
    ),
    "wrong unit in the header": (put(0, 0, "flow [gpm]"), {}, "flow is in 'gpm', the contract wants 'L/min'"),
    "text": (put(5, 1, "high"), {}, "line 6: column 'ripple' holds text where a number must be"),
    "empty cell": (put(5, 1, ""), {}, "line 6: column 'ripple' holds an empty cell"),
    "NaN": (put(9, 0, "nan"), {}, "line 10: column 'flow' holds NaN"),
    "infinity": (put(9, 0, "-inf"), {}, "line 10: column 'flow' holds an infinite value"),
    "overflow": (put(9, 0, "1e999"), {}, "line 10: column 'flow' holds an infinite value"),
    "unknown class": (
        put(9, 3, "melted"), {}, "line 10: label 'melted' is not a class of pump; its classes are healthy, leak; a "
        r'word of the plant\'s own goes under \[data.labels\], as "melted" = CLASS',
    ),
    "wrong split": (put(0, 0, "flow"), {"split_column": "label"}, "must hold 'train' or 'test'"),
    "short row": (drop_cell, {}, "line 8: 3 cells, the header has 4"),
    "column twice": (put(0, 2, "flow"), {}, "column 'flow' is there 2 times"),
    "column twice, with its unit": (
        put(0, slice(0, 3, 2), ["flow [L/min]", "flow [L/min]"]), {}, "column 'flow' is there 2 times",
    ),
    "wrong unit in a mapped column's heading": (
        put(0, 0, "Q [m3/h]"), {"columns": {"flow": "Q [m3/h]"}}, "flow is in 'm3/h', the contract wants 'L/min'",
    ),
    "one column for two features": (
        put(0, 0, "flow"), {"columns": {"ripple": "flow"}}, "column 'flow' would be both flow and ripple",
    ),
    "point at thousands": (
        put(1, 0, "1.234"), {"decimal": ",", "delimiter": ";"}, "line 2: column 'flow' holds a point",
    ),
    "underscore": (put(9, 0, "1_0"), {}, "line 10: column 'flow' holds text where a number must be"),
    "header only": (keep_header, {}, "has a header but no rows"),
    "empty": (clear, {}, "is empty"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_what_does_not_fit_is_said_precisely(load: Any, rows: Rows, name: str) -> None:
    change, source, expected = MISFITS[name]
    change(rows)
    with pytest.raises(VaultError, match=expected) as caught:
        load(rows, **source)
    assert "\n" not in str(caught.value)
    assert caught.value.refusal_code == ("no_data" if name in ("header only", "empty") else "bad_data")


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


def test_one_class_only_is_refused(load: Any, make_table: Any) -> None:
    dataset = load(make_table(40, classes=("leak",)))
    with pytest.raises(VaultError, match="one class only.*one_class = true") as caught:
        dataset.refuse_one_class()
    assert caught.value.refusal_code == "one_class_only"


def test_a_line_without_cells_is_no_row_and_counts_as_a_line(load: Any, rows: Rows) -> None:
    whole = load(rows)
    assert len(load([*rows[:5], [], *rows[5:], []]).train) == len(whole.train)
    with pytest.raises(VaultError, match=", line 7: "):
        load([*rows[:5], [], rows[5][:-1]])


def write_parquet(rows: Rows, path: Path, units: dict[str, str] | None = None) -> None:
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


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_said(asset_type: AssetType, write_csv: Any, rows: Rows) -> None:
    path = write_csv(rows)
    path.chmod(0)
    with pytest.raises(VaultError, match="cannot be read: Permission denied"):
        Vault(CsvSource(kind="csv", path=path), asset_type).current()
