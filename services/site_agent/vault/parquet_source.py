"""Reads a Parquet table; needs pyarrow (the extra ``parquet``)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from models.basics import FloatArray
from services.contracts.asset_type import AssetType
from services.site_agent.settings import ParquetSource
from services.site_agent.vault.table import (
    RawTable,
    VaultError,
    check_finite,
    check_units,
    find_column,
    find_outcomes,
    read_split,
    resolve_columns,
    translate_labels,
)


def _row_name(row: int) -> str:
    return f"row {row + 1}"


def read(source: ParquetSource, asset_type: AssetType) -> RawTable:
    """Read the table; :class:`VaultError` names the column and the row of what does not fit.

    The unit of a column may stand in its field metadata under ``unit``; it is then held to the contract.
    """
    table = read_table(source.path)
    header = list(table.column_names)
    positions = resolve_columns(header, source, asset_type)
    label_at, target_at = find_outcomes(header, source, asset_type)
    split_at = find_column(header, source.split_column, source, "the split") if source.split_column else None
    if table.num_rows == 0:
        raise VaultError(f"{source.path.name} has columns but no rows", "no_data")
    values = np.full((table.num_rows, len(positions)), np.nan)
    for feature, position in enumerate(positions):
        if position is not None:
            _check_unit(table, position, asset_type.feature_names[feature], asset_type, source.path.name)
            values[:, feature] = _numbers(table, position, source.path.name)
    labels = targets = None
    if label_at is not None:
        words = _words(table, label_at, source.path.name, gaps=asset_type.target is not None)
        labels = translate_labels(words, source)
    if target_at is not None and asset_type.target is not None:
        _check_unit(table, target_at, asset_type.target.name, asset_type, source.path.name)
        targets = _numbers(table, target_at, source.path.name, gaps=True)
    parts = _words(table, split_at, source.path.name) if split_at is not None else None
    return RawTable(values, labels, read_split(parts, source, _row_name), _row_name, targets)


def read_table(path: Path) -> Any:
    """Table of a Parquet file, as pyarrow gives it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise VaultError(
            "reading Parquet needs pyarrow: pip install 'ballast-diagnosis[parquet]', or give the data as CSV"
        ) from None
    if not path.is_file():
        raise VaultError(f"no data file at {path}", "no_data")
    try:
        return pyarrow.parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise VaultError(f"{path.name} cannot be read as Parquet: {str(error).splitlines()[0]}") from None


def _check_unit(table: Any, position: int, name: str, asset_type: AssetType, file_name: str) -> None:
    unit = (table.schema.field(position).metadata or {}).get(b"unit")
    if unit is not None:
        check_units({name: unit.decode()}, asset_type, file_name)


def _numbers(table: Any, position: int, file_name: str, *, gaps: bool = False) -> FloatArray:
    """Numbers of a column; with ``gaps`` a cell may be empty, for which NaN stands."""
    import pyarrow.types as kinds

    name, column = table.column_names[position], table.column(position)
    if not gaps:
        _refuse_gaps(column, name, file_name, _row_name)
    if not (kinds.is_integer(column.type) or kinds.is_floating(column.type)):
        raise VaultError(f"{file_name}, {_row_name(0)}: column {name!r} holds {column.type}, numbers are needed")
    empty = column.is_null().to_numpy()
    numbers: FloatArray = column.fill_null(0).to_numpy().astype(np.float64)
    check_finite(numbers, name, file_name, _row_name)
    return np.where(empty, np.nan, numbers)


def _words(table: Any, position: int, file_name: str, *, gaps: bool = False) -> list[str]:
    """Texts of a column; with ``gaps`` a cell may be empty."""
    column = table.column(position)
    if not gaps:
        _refuse_gaps(column, table.column_names[position], file_name, _row_name)
    return ["" if word is None else str(word).strip() for word in column.to_pylist()]


def _refuse_gaps(column: Any, name: str, file_name: str, row_name: Callable[[int], str]) -> None:
    if column.null_count:
        row = next(index for index, cell in enumerate(column.to_pylist()) if cell is None)
        raise VaultError(f"{file_name}, {row_name(row)}: column {name!r} holds an empty cell")
