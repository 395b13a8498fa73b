"""What every data source gives, before it is held to the contract's ranges and classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from services.contracts.errors import BallastError
from services.contracts.machines.asset_type import AssetType
from services.contracts.wire.messages import RefusalCode
from services.site_agent.settings import TableSource
from services.site_agent.vault.held_out import by_machine, by_time, held_by_machine, held_by_time, seconds


class VaultError(BallastError):
    """The site's data cannot be used. The text names columns, rows and units and stays in the plant."""

    def __init__(self, message: str, code: RefusalCode = "bad_data") -> None:
        super().__init__(message, code=code)
        self.refusal_code: RefusalCode = code


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
    alike for rows of one machine, or of one block of time; None where the source tells neither.
    """

    values: FloatArray
    labels: tuple[str, ...] | None
    split: NDArray[np.bool_] | HoldOut
    row_name: Callable[[int], str]
    targets: FloatArray | None = None
    together: NDArray[np.intp] | None = None


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
        words = cells.words(label_at, gaps=asset_type.target is not None)
        labels = tuple(source.labels.get(word, word) for word in words)
    if target_at is not None and asset_type.target is not None:
        _check_unit(cells, target_at, asset_type.target.name, source, asset_type)
        targets = cells.numbers(target_at, gaps=True)
    split, together = _split(cells, split_at, source)
    return RawTable(values, labels, split, cells.row_name, targets, together)


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
    found = np.empty(len(words))
    for row, word in enumerate(words):
        try:
            found[row] = seconds(word)
        except ValueError:
            where = f"{source.path.name}, {row_name(row)}: column {column!r}"
            raise VaultError(f"{where} must hold a number, or a time as ISO 8601 has it") from None
    return found


def read_features(cells: Cells, source: TableSource, asset_type: AssetType) -> FloatArray:
    """Values (N, P) of the features, NaN in the whole column of an optional one that is not there."""
    positions = resolve_columns(cells.header, source, asset_type)
    values = np.full((len(cells), len(positions)), np.nan)
    for number, position in enumerate(positions):
        if position is not None:
            _check_unit(cells, position, asset_type.feature_names[number], source, asset_type)
            values[:, number] = cells.numbers(position)
    return values


def _check_unit(cells: Cells, position: int, name: str, source: TableSource, asset_type: AssetType) -> None:
    if (unit := cells.unit(position)) is not None:
        check_units({name: unit}, asset_type, source.path.name)


def check_units(units: dict[str, str], asset_type: AssetType, where: str) -> None:
    """Hold units of features and target to the contract; :class:`VaultError` for an unknown name or another unit."""
    wanted = {feature.name: feature.unit for feature in asset_type.features}
    goal = asset_type.target
    for name, unit in units.items():
        is_target = goal is not None and name == goal.name
        if name not in wanted and not is_target:
            raise VaultError(f"{where}: the unit of {name!r} is given, but the contract has no such feature")
        right = goal.unit if goal is not None and is_target else wanted[name]
        if unit != right:
            what = "target" if is_target else "feature"
            raise VaultError(f"{where}: {what} {name} is in {unit!r}, the contract wants {right!r}")


def resolve_columns(header: list[str], source: TableSource, asset_type: AssetType) -> list[int | None]:
    """Position of each feature's column; a header may carry the unit, as in ``pressure_mean [bar]``.

    None stands for an optional feature whose column is not there; :class:`VaultError` where another one is missing.
    """
    unknown = sorted(set(source.columns) - set(asset_type.feature_names))
    if unknown:
        raise VaultError(f"settings map a column to {unknown[0]!r}, but the contract has no such feature")
    check_units(source.units, asset_type, "settings")
    positions: list[int | None] = []
    for feature in asset_type.features:
        column = source.columns.get(feature.name, feature.name)
        position, unit = _find(header, column)
        if unit is not None:
            check_units({feature.name: unit}, asset_type, source.path.name)
        if position is None and (feature.required or feature.name in source.columns):
            raise VaultError(
                f"{source.path.name} has no column {column!r} for feature {feature.name}; it has: {', '.join(header)}"
            )
        if position is not None and position in positions:
            other = asset_type.feature_names[positions.index(position)]
            raise VaultError(f"column {header[position]!r} would be both {other} and {feature.name}: [data.columns]")
        positions.append(position)
    return positions


def find_column(header: list[str], column: str, source: TableSource, purpose: str) -> int:
    """Position of a column that must be there, or :class:`VaultError`."""
    position, _ = _find(header, column)
    if position is None:
        raise VaultError(f"{source.path.name} has no column {column!r} for {purpose}; it has: {', '.join(header)}")
    return position


def find_outcomes(header: list[str], source: TableSource, asset_type: AssetType) -> tuple[int | None, int | None]:
    """Positions of the columns of class names and of the target; :class:`VaultError` where neither is there."""
    label_at, target_at = _find_label(header, source, asset_type), _find_target(header, source, asset_type)
    if label_at is None and target_at is None and asset_type.target is not None:
        raise VaultError(
            f"{source.path.name} has neither a column {source.label_column!r} for the class nor a column "
            f"{asset_type.target.name!r} for the target; it has: {', '.join(header)}"
        )
    return label_at, target_at


def _find_label(header: list[str], source: TableSource, asset_type: AssetType) -> int | None:
    """Position of the column of class names; None where the asset type, or a source with targets, has no classes."""
    if not asset_type.fault_classes:
        return None
    if asset_type.target is not None and _find(header, source.label_column)[0] is None:
        return None
    return find_column(header, source.label_column, source, "the label")


def _find_target(header: list[str], source: TableSource, asset_type: AssetType) -> int | None:
    """Position of the column of the target, its unit checked; None where there is no target to read.

    The column must be there where the settings name it, and where the asset type has no fault classes.
    """
    goal = asset_type.target
    if goal is None:
        if source.target_column is not None:
            raise VaultError(f"settings name a target_column, but asset type {asset_type.name} has no target")
        return None
    column = source.target_column or goal.name
    position, unit = _find(header, column)
    if unit is not None:
        check_units({goal.name: unit}, asset_type, source.path.name)
    if position is None and (source.target_column is not None or not asset_type.fault_classes):
        return find_column(header, column, source, f"the target {goal.name}")
    return position


def _find(header: list[str], column: str) -> tuple[int | None, str | None]:
    """Position of a column and the unit in its heading; the column is called with that unit or without it."""
    whole = [position for position, text in enumerate(header) if text == column]
    found = whole or [position for position, text in enumerate(header) if _heading(text)[0] == column]
    if len(found) > 1:
        raise VaultError(f"column {column!r} is there {len(found)} times; which one is meant?")
    return (found[0], _heading(header[found[0]])[1]) if found else (None, None)


def _heading(text: str) -> tuple[str, str | None]:
    """``flow_mean [L/min]`` as a name and a unit, None where it has none."""
    name, bracket, rest = text.rpartition(" [")
    return (name, rest[:-1]) if bracket and rest.endswith("]") else (text, None)


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
