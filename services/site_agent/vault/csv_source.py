"""Reads a CSV file: a header line, then one measurement a line."""

from __future__ import annotations

import csv
from collections.abc import Callable

import numpy as np

from models.basics import FloatArray
from services.contracts.asset_type import AssetType
from services.site_agent.settings import CsvSource
from services.site_agent.vault.table import (
    RawTable,
    VaultError,
    check_finite,
    find_column,
    find_outcomes,
    read_split,
    resolve_columns,
    translate_labels,
)


def read(source: CsvSource, asset_type: AssetType) -> RawTable:
    """Read the file; :class:`VaultError` names the column and the line of what does not fit."""
    header, rows, lines = _read_rows(source)
    label_at, target_at = find_outcomes(header, source, asset_type)
    split_at = find_column(header, source.split_column, source, "the split") if source.split_column else None

    def row_name(row: int) -> str:
        return f"line {lines[row]}"

    values = _values(header, rows, source, asset_type, row_name)
    labels = None if label_at is None else translate_labels([row[label_at].strip() for row in rows], source)
    targets = None if target_at is None else _with_gaps(header, rows, target_at, source, row_name)
    words = [row[split_at].strip() for row in rows] if split_at is not None else None
    return RawTable(values, labels, read_split(words, source, row_name), row_name, targets)


def read_measurements(source: CsvSource, asset_type: AssetType) -> tuple[FloatArray, Callable[[int], str]]:
    """Features alone, (N, P) in the contract's units, and how a row is called: no label is needed."""
    header, rows, lines = _read_rows(source)

    def row_name(row: int) -> str:
        return f"line {lines[row]}"

    return _values(header, rows, source, asset_type, row_name), row_name


def _values(
    header: list[str], rows: list[list[str]], source: CsvSource, asset_type: AssetType, row_name: Callable[[int], str]
) -> FloatArray:
    positions = resolve_columns(header, source, asset_type)
    values = np.full((len(rows), len(positions)), np.nan)
    for feature, position in enumerate(positions):
        if position is not None:
            values[:, feature] = _numbers(rows, position, header[position], source, row_name)
    return values


def _read_rows(source: CsvSource) -> tuple[list[str], list[list[str]], list[int]]:
    """Header, rows, and the line in the file of each row; blank lines are passed over."""
    try:
        with source.path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=source.delimiter, strict=True)
            header = [column.strip() for column in next(reader, [])]
            rows, lines = [], []
            for row in reader:
                if not row:
                    continue
                if len(row) != len(header):
                    raise VaultError(
                        f"{source.path.name}, line {reader.line_num}: {len(row)} cells, the header has {len(header)}"
                    )
                rows.append(row)
                lines.append(reader.line_num)
    except FileNotFoundError:
        raise VaultError(f"no data file at {source.path}", "no_data") from None
    except OSError as error:
        raise VaultError(f"{source.path} cannot be read: {error.strerror}", "no_data") from None
    except UnicodeDecodeError:
        raise VaultError(f"{source.path.name} is not UTF-8 text; save it as UTF-8") from None
    except csv.Error as error:
        raise VaultError(f"{source.path.name} is not a CSV file, line {reader.line_num}: {error}") from None
    if not header:
        raise VaultError(f"{source.path.name} is empty; a header line and rows are needed", "no_data")
    if not rows:
        raise VaultError(f"{source.path.name} has a header but no rows", "no_data")
    return header, rows, lines


def _numbers(
    rows: list[list[str]], position: int, column: str, source: CsvSource, row_name: Callable[[int], str]
) -> FloatArray:
    cells = [row[position] for row in rows]
    if source.decimal == ",":
        cells = [cell.replace(",", ".") for cell in cells]
    try:
        numbers = np.array([float(cell) for cell in cells])
    except ValueError:
        row = next(row for row, cell in enumerate(cells) if not _is_number(cell))
        what = "text where a number must be" if cells[row].strip() else "an empty cell"
        raise VaultError(f"{source.path.name}, {row_name(row)}: column {column!r} holds {what}") from None
    check_finite(numbers, column, source.path.name, row_name)
    return numbers


def _with_gaps(
    header: list[str], rows: list[list[str]], position: int, source: CsvSource, row_name: Callable[[int], str]
) -> FloatArray:
    """Numbers of a column in which a cell may be empty; NaN stands for that."""
    gaps = np.array([not row[position].strip() for row in rows])
    filled = [[*row[:position], "0", *row[position + 1 :]] if gap else row for row, gap in zip(rows, gaps, strict=True)]
    numbers = _numbers(filled, position, header[position], source, row_name)
    return np.where(gaps, np.nan, numbers)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
