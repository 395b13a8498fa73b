"""Reads a CSV file: a header line, then one measurement a line."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray
from services.contracts.delimiters import other_delimiter
from services.contracts.machines.asset_type import AssetType
from services.site_agent.settings import CsvSource
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.sources.table import RawTable, check_finite, read_columns, read_features


@dataclass(frozen=True)
class _CsvCells:
    """Header, rows, and the line in the file of each row; blank lines are passed over."""

    source: CsvSource
    header: list[str]
    rows: list[list[str]]
    lines: list[int]

    def __len__(self) -> int:
        return len(self.rows)

    def row_name(self, row: int) -> str:
        return f"line {self.lines[row]}"

    def unit(self, position: int) -> str | None:
        return None

    def words(self, position: int, *, gaps: bool = False) -> list[str]:
        return [row[position].strip() for row in self.rows]

    def numbers(self, position: int, *, gaps: bool = False) -> FloatArray:
        name, column = self.source.path.name, self.header[position]
        cells = self.words(position)
        if self.source.decimal == ",":
            for row, cell in enumerate(cells):
                if "." in cell:
                    where = f"{name}, {self.row_name(row)}: column {column!r}"
                    raise VaultError(f'{where} holds a point; with decimal = "," a number has none')
            cells = [cell.replace(",", ".") for cell in cells]
        empty = np.array([gaps and not cell for cell in cells])
        try:
            numbers = np.array([0.0 if gap else _number(cell) for cell, gap in zip(cells, empty, strict=True)])
        except ValueError:
            row = next(row for row, cell in enumerate(cells) if not (empty[row] or _is_number(cell)))
            what = _no_number(cells[row])
            raise VaultError(f"{name}, {self.row_name(row)}: column {column!r} holds {what}") from None
        check_finite(numbers, column, name, self.row_name)
        return np.where(empty, np.nan, numbers)


def read(source: CsvSource, asset_type: AssetType) -> RawTable:
    """Read the file; :class:`VaultError` names the column and the line of what does not fit."""
    return read_columns(_read_cells(source), source, asset_type)


def read_measurements(source: CsvSource, asset_type: AssetType) -> tuple[FloatArray, Callable[[int], str]]:
    """Features alone, (N, P) in the contract's units, and how a row is called: no label is needed."""
    cells = _read_cells(source)
    return read_features(cells, source, asset_type), cells.row_name


def _read_cells(source: CsvSource) -> _CsvCells:
    try:
        with source.path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=source.delimiter, strict=True)
            header = [column.strip() for column in next(reader, [])]
            _check_delimiter(source, header)
            rows, lines = [], []
            for row in reader:
                if not row:
                    continue
                if len(row) != len(header):
                    first = "" if sum(map(bool, header)) > 1 else "; the header must be the first line of the file"
                    raise VaultError(
                        f"{source.path.name}, line {reader.line_num}: {len(row)} cells, the header has {len(header)}"
                        f"{first}"
                    )
                rows.append(row)
                lines.append(reader.line_num)
    except FileNotFoundError:
        raise VaultError(f"no data file at {source.path}", "no_data") from None
    except OSError as error:
        raise VaultError(f"{source.path} cannot be read: {error.strerror}", "no_data") from None
    except UnicodeDecodeError:
        raise VaultError(f"{source.path.name} is not UTF-8 text; save it as CSV in UTF-8") from None
    except csv.Error as error:
        raise VaultError(f"{source.path.name} is not a CSV file, line {reader.line_num}: {error}") from None
    if not header:
        raise VaultError(f"{source.path.name} is empty; a header line and rows are needed", "no_data")
    if not rows:
        raise VaultError(f"{source.path.name} has a header but no rows", "no_data")
    return _CsvCells(source, header, rows, lines)


def _check_delimiter(source: CsvSource, header: list[str]) -> None:
    """Refuse a header of one cell that holds what other files divide their cells by."""
    other = other_delimiter(header, source.delimiter)
    if other is None:
        return
    decimal = "" if other == "," else ', and decimal = "," where numbers are written with a comma'
    raise VaultError(
        f"{source.path.name}: cells are divided by {json.dumps(other)}, not by {json.dumps(source.delimiter)}: "
        f"say delimiter = {json.dumps(other)} under [data]{decimal}"
    )


def _number(cell: str) -> float:
    """The number in a cell; ``float`` alone would pass over underscores, as in source code."""
    if "_" in cell:
        raise ValueError(cell)
    return float(cell)


def _no_number(cell: str) -> str:
    """What a cell holds that is no number."""
    if not cell:
        return "an empty cell"
    if "," in cell and _is_number(cell.replace(",", "")):
        return (
            'a number with a comma: one before decimals needs decimal = "," under [data], and another delimiter; those '
            "between thousands are to be left out"
        )
    return "text where a number must be"


def _is_number(cell: str) -> bool:
    try:
        _number(cell)
    except ValueError:
        return False
    return True
