"""Reads a Parquet table; needs pyarrow (the extra ``parquet``)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from models.basics import FloatArray
from services.contracts.machines.asset_type import AssetType
from services.site_agent.settings import ParquetSource
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.sources.table import RawTable, check_finite, read_columns


@dataclass(frozen=True)
class _ParquetCells:
    """Columns of a Parquet table, as pyarrow gives it. The unit of one may stand in its field metadata."""

    name: str
    table: Any

    @property
    def header(self) -> list[str]:
        return [name.strip() for name in self.table.column_names]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def row_name(self, row: int) -> str:
        return f"row {row + 1}"

    def unit(self, position: int) -> str | None:
        unit = (self.table.schema.field(position).metadata or {}).get(b"unit")
        return None if unit is None else str(unit.decode(errors="replace"))

    def words(self, position: int, *, gaps: bool = False) -> list[str]:
        import pyarrow

        column = self._column(position, gaps)
        if pyarrow.types.is_timestamp(column.type):  # Python's own have no nanoseconds, nor every year and zone
            column = column.cast(pyarrow.timestamp(column.type.unit)).cast("string")  # in UTC
        try:
            cells = column.to_pylist()
        except UnicodeDecodeError:  # it is decoded only now
            raise VaultError(
                f"{self.name}: column {self.header[position]!r} holds text that is not UTF-8"
            ) from None
        except (ValueError, OverflowError):  # dates and lengths of time beyond those of Python
            raise VaultError(
                f"{self.name}: column {self.header[position]!r} holds {column.type}, of which a value is too large"
            ) from None
        return ["" if word is None or _is_nan(word) else str(word).strip() for word in cells]

    def numbers(self, position: int, *, gaps: bool = False) -> FloatArray:
        import pyarrow.types as kinds

        name, column = self.header[position], self._column(position, gaps)
        if gaps and column.null_count == len(column):  # of whichever type
            return np.full(len(self), np.nan)
        if kinds.is_decimal(column.type):
            column = column.cast("double")
        if not (kinds.is_integer(column.type) or kinds.is_floating(column.type)):
            where = f"{self.name}, {self.row_name(0)}"
            raise VaultError(f"{where}: column {name!r} holds {column.type}, numbers are needed")
        numbers: FloatArray = column.fill_null(0).to_numpy().astype(np.float64)
        check_finite(numbers, name, self.name, self.row_name)
        return np.where(column.is_null().to_numpy(), np.nan, numbers)

    def _column(self, position: int, gaps: bool) -> Any:
        column = self.table.column(position)
        if column.null_count and not gaps:
            row = column.is_null().to_pylist().index(True)
            raise VaultError(f"{self.name}, {self.row_name(row)}: column {self.header[position]!r} holds an empty cell")
        return column


def _is_nan(word: object) -> bool:
    return isinstance(word, float) and math.isnan(word)


def read(source: ParquetSource, asset_type: AssetType) -> RawTable:
    """Read the table; :class:`VaultError` names the column and the row of what does not fit.

    The unit of a column may stand in its field metadata under ``unit``; it is then held to the contract.
    """
    cells = _ParquetCells(source.path.name, read_table(source.path))
    if not len(cells):
        raise VaultError(f"{source.path.name} has columns but no rows", "no_data")
    return read_columns(cells, source, asset_type)


def read_table(path: Path) -> Any:
    """Table of a Parquet file, as pyarrow gives it; :class:`VaultError` where there is none to read."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise VaultError(
            "reading Parquet needs pyarrow: pip install 'ballast-diagnosis[parquet]', or give the data as CSV"
        ) from None
    try:
        if path.is_dir():
            raise VaultError(f"{path} is a folder; one Parquet file is read: write its parts as one")
        if not path.is_file():
            raise VaultError(f"no data file at {path}", "no_data")
        table = pyarrow.parquet.read_table(path)
        _ = table.column_names
    except (OSError, pyarrow.ArrowException) as error:
        raise VaultError(f"{path.name} cannot be read as Parquet: {str(error).splitlines()[0]}") from None
    except UnicodeDecodeError:
        raise VaultError(f"{path.name} cannot be read as Parquet: the name of a column is not UTF-8") from None
    return table
