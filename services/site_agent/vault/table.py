"""What every data source gives, before it is held to the contract's ranges and classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.problem import FloatArray
from services.contracts.asset_type import AssetType
from services.contracts.errors import BallastError
from services.contracts.messages import RefusalCode
from services.site_agent.settings import TableSource


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
    labels : N class names. split : (N,), True where the row is held out, or how to choose those rows.
    row_name : how the plant finds row i again, e.g. ``line 17``.
    """

    values: FloatArray
    labels: tuple[str, ...]
    split: NDArray[np.bool_] | HoldOut
    row_name: Callable[[int], str]


def check_units(units: dict[str, str], asset_type: AssetType, where: str) -> None:
    """Hold the units of features to the contract; an unknown feature or another unit is refused."""
    wanted = {feature.name: feature.unit for feature in asset_type.features}
    for feature, unit in units.items():
        if feature not in wanted:
            raise VaultError(f"{where}: the unit of {feature!r} is given, but the contract has no such feature")
        if unit != wanted[feature]:
            raise VaultError(f"{where}: feature {feature} is in {unit!r}, the contract wants {wanted[feature]!r}")


def resolve_columns(header: list[str], source: TableSource, asset_type: AssetType) -> list[int | None]:
    """Position of each feature's column; a header may carry the unit, as in ``pressure_mean [bar]``.

    None stands for an optional feature whose column is not there.
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
        positions.append(position)
    return positions


def find_column(header: list[str], column: str, source: TableSource, purpose: str) -> int:
    """Position of a column that must be there."""
    position, _ = _find(header, column)
    if position is None:
        raise VaultError(f"{source.path.name} has no column {column!r} for {purpose}; it has: {', '.join(header)}")
    return position


def _find(header: list[str], column: str) -> tuple[int | None, str | None]:
    if column in header:
        if header.count(column) > 1:
            raise VaultError(f"column {column!r} is there {header.count(column)} times; which one is meant?")
        return header.index(column), None
    for position, text in enumerate(header):
        name, bracket, rest = text.rpartition(" [")
        if bracket and name == column and rest.endswith("]"):
            return position, rest[:-1]
    return None, None


def translate_labels(labels: list[str], source: TableSource) -> tuple[str, ...]:
    """The plant's own words for the classes, mapped where the settings do."""
    return tuple(source.labels.get(label, label) for label in labels)


def read_split(
    words: list[str] | None, source: TableSource, row_name: Callable[[int], str]
) -> NDArray[np.bool_] | HoldOut:
    """Column of ``train`` and ``test`` as True for test; without the column, the hold-out of the settings."""
    if words is None:
        return HoldOut(source.test_fraction, source.seed)
    for row, word in enumerate(words):
        if word not in ("train", "test"):
            raise VaultError(
                f"{source.path.name}, {row_name(row)}: column {source.split_column!r} must hold 'train' or 'test'"
            )
    return np.array([word == "test" for word in words], dtype=np.bool_)


def check_finite(numbers: FloatArray, column: str, file_name: str, row_name: Callable[[int], str]) -> None:
    """Refuse NaN and infinity, naming the first row that holds one."""
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if len(wrong):
        what = "NaN" if np.isnan(numbers[wrong[0]]) else "an infinite value"
        raise VaultError(f"{file_name}, {row_name(int(wrong[0]))}: column {column!r} holds {what}")
