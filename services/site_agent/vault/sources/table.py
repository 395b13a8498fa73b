"""What every data source gives, before it is held to the contract's ranges and classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from services.contracts.machines.asset_type import AssetType
from services.site_agent.settings import CsvSource, TableSource
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.sources.columns import (
    check_units,
    find_column,
    find_outcomes,
    resolve_columns,
    unread_lines,
)
from services.site_agent.vault.sources.held_out import by_machine, by_time, held_by_machine, held_by_time, seconds


@dataclass(frozen=True)
class HoldOut:
    """The source does not say which rows are held out: choose a fraction of each class by a seeded hash of the rows."""

    fraction: float
    seed: int


@dataclass(frozen=True)
class RawTable:
    """Rows as a source holds them, columns in the order of the contract.

    values : (N, P) finite, in the contract's units; NaN in the whole column of an optional feature that is not there.
    labels : N class names, "" where a row has none; None where the source has no classes. targets : (N,) in the
    contract's unit, NaN where a row has none; None where the source has no target. split : (N,), True where the row is
    held out, or how to choose those rows. row_name : how the plant finds row i again, e.g. ``line 17``. together : (N,)
    alike for rows of one machine, or of one block of time; None where the source tells neither. unread : what is to be
    told of columns that may be meant to be read, a line each.
    """

    values: FloatArray
    labels: tuple[str, ...] | None
    split: NDArray[np.bool_] | HoldOut
    row_name: Callable[[int], str]
    targets: FloatArray | None = None
    together: NDArray[np.intp] | None = None
    unread: tuple[str, ...] = ()


class Cells(Protocol):
    """A table by its columns, each by its position in the header."""

    @property
    def header(self) -> list[str]:
        """Names of the columns."""

    def __len__(self) -> int:
        """Number of rows."""

    def row_name(self, row: int) -> str:
        """How the plant finds row i again."""

    def unit(self, position: int) -> str | None:
        """Unit that is written beside a column; None where there is none."""

    def words(self, position: int, *, gaps: bool = False) -> list[str]:
        """Texts of a column; with ``gaps`` a cell may be empty."""

    def numbers(self, position: int, *, gaps: bool = False) -> FloatArray:
        """Finite numbers of a column; with ``gaps`` a cell may be empty, for which NaN stands."""


def read_columns(cells: Cells, source: TableSource, asset_type: AssetType) -> RawTable:
    """Rows of a table with a column for each feature; :class:`VaultError` names what does not fit."""
    label_at, target_at = find_outcomes(cells.header, source, asset_type)
    split_at = find_column(cells.header, source.split_column, source, "the split") if source.split_column else None
    values, labels, targets = read_features(cells, source, asset_type), None, None
    if label_at is not None:
        _check_labels(source, asset_type)
        words = cells.words(label_at, gaps=asset_type.target is not None)
        labels = tuple(source.labels.get(word, word) for word in words)
    if target_at is not None and asset_type.target is not None:
        _check_unit(cells, target_at, asset_type.target.name, source, asset_type)
        targets = cells.numbers(target_at, gaps=True)
    split, together = _split(cells, split_at, source)
    unread = unread_lines(cells.header, source, asset_type)
    return RawTable(values, labels, split, cells.row_name, targets, together, unread)


def _check_labels(source: TableSource, asset_type: AssetType) -> None:
    """Hold the classes that the settings make of the plant's words to the contract, also of words that no row has."""
    known = {*asset_type.class_names, *([] if asset_type.target is None else [""])}
    for word, name in source.labels.items():
        if name not in known:
            classes = ", ".join(asset_type.class_names)
            said = f"settings make the class {name!r} of {word!r}, but {asset_type.name} has no such class"
            raise VaultError(f"{said}; its classes are {classes}")


def _split(
    cells: Cells, split_at: int | None, source: TableSource
) -> tuple[NDArray[np.bool_] | HoldOut, NDArray[np.intp] | None]:
    """Which rows are held out, and which belong together, by the columns that the settings name."""
    split = read_split(None if split_at is None else cells.words(split_at), source, cells.row_name)
    column = source.machine_column or source.time_column
    if column is None:
        return split, None
    words = cells.words(find_column(cells.header, column, source, "holding out"))
    if "" in words:
        row = cells.row_name(words.index(""))
        raise VaultError(f"{source.path.name}, {row}: column {column!r} holds an empty cell")
    try:
        if source.machine_column is not None:
            own, together = partial(held_by_machine, words, source.test_fraction, source.seed), by_machine(words)
        else:
            times = _times(words, source, column, cells.row_name)
            own, together = partial(held_by_time, times, source.test_fraction), by_time(times)
        return own() if isinstance(split, HoldOut) else split, together
    except ValueError as error:
        raise VaultError(f"{source.path.name}, column {column!r}: {error}") from None


def _times(words: list[str], source: TableSource, column: str, row_name: Callable[[int], str]) -> FloatArray:
    """Numbers that grow with time: the cells' own, or seconds; of both in one column nobody knows which is later."""
    comma = isinstance(source, CsvSource) and source.decimal == ","
    found, are_numbers = np.empty(len(words)), np.empty(len(words), dtype=np.bool_)
    for row, word in enumerate(words):
        try:
            found[row], are_numbers[row] = seconds(word.replace(",", ".") if comma else word)
        except ValueError:
            where = f"{source.path.name}, {row_name(row)}: column {column!r}"
            raise VaultError(f"{where} must hold a number, or a time as ISO 8601 has it") from None
    others = np.flatnonzero(are_numbers != are_numbers[0])
    if len(others):
        where = f"{source.path.name}, {row_name(int(others[0]))}: column {column!r}"
        kinds = ("times of ISO 8601", "a number") if are_numbers[others[0]] else ("numbers", "a time of ISO 8601")
        raise VaultError(f"{where} holds {kinds[1]}, the rows before it {kinds[0]}: nothing says which is later")
    return found


def read_features(cells: Cells, source: TableSource, asset_type: AssetType) -> FloatArray:
    """Values (N, P) of the features, NaN in the whole column of an optional one that is not there, or has no cell."""
    positions = resolve_columns(cells.header, source, asset_type)
    values = np.full((len(cells), len(positions)), np.nan)
    for feature, position, column in zip(asset_type.features, positions, values.T, strict=True):
        if position is not None:
            _check_unit(cells, position, feature.name, source, asset_type)
            column[:] = cells.numbers(position, gaps=not feature.required)
            if 0 < np.isnan(column).sum() < len(column):
                cells.numbers(position)  # names the row whose cell is empty
    return values


def _check_unit(cells: Cells, position: int, name: str, source: TableSource, asset_type: AssetType) -> None:
    if (unit := cells.unit(position)) is not None:
        check_units({name: unit}, asset_type, source.path.name)


def read_split(
    words: list[str] | None, source: TableSource, row_name: Callable[[int], str]
) -> NDArray[np.bool_] | HoldOut:
    """Column of ``train`` and ``test`` as True for test; without the column, the hold-out of the settings.

    :class:`VaultError` for another word.
    """
    if words is None:
        return HoldOut(source.test_fraction, source.seed)
    for row, word in enumerate(words):
        if word not in ("train", "test"):
            raise VaultError(
                f"{source.path.name}, {row_name(row)}: column {source.split_column!r} must hold 'train' or 'test'"
            )
    return np.array([word == "test" for word in words], dtype=np.bool_)


def check_finite(numbers: FloatArray, column: str, file_name: str, row_name: Callable[[int], str]) -> None:
    """Refuse NaN and infinity with :class:`VaultError`, naming the first row that holds one."""
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if len(wrong):
        what = "NaN" if np.isnan(numbers[wrong[0]]) else "an infinite value"
        raise VaultError(f"{file_name}, {row_name(int(wrong[0]))}: column {column!r} holds {what}")
