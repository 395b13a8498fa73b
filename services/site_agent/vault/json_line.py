"""One measurement as a line of NDJSON: an object with the columns of the plant's table and a number in each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.basics import FloatArray
from services.contracts.machines.asset_type import AssetType
from services.contracts.repeated_keys import RepeatedKeyError, said_twice, without_repeats
from services.site_agent.settings import TableSource
from services.site_agent.vault.dataset import ContractedFeatures, apply_contract
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.sources.table import read_features

LONGEST_LINE = 64 * 1024
"""Bytes of a line, as the OEM's API has it: some thousand features."""


@dataclass(frozen=True)
class _LineCells:
    """The table of one row that a line is."""

    values: dict[str, Any]
    name: str

    @property
    def header(self) -> list[str]:
        """Names of the columns."""
        return list(self.values)

    def __len__(self) -> int:
        return 1

    def row_name(self, row: int) -> str:
        """The line."""
        return self.name

    def unit(self, position: int) -> str | None:
        """None: what stands beside a name is part of it."""
        return None

    def words(self, position: int, *, gaps: bool = False) -> list[str]:
        """Text of a column."""
        return [str(self.values[self.header[position]])]

    def numbers(self, position: int, *, gaps: bool = False) -> FloatArray:
        """Number of a column; :class:`VaultError` where it is none, or not finite."""
        column = self.header[position]
        value = self.values[column]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise VaultError(f"{self.name}: {column!r} must hold a number")
        try:
            number = float(value)
        except OverflowError:
            number = np.inf
        if not np.isfinite(number):
            raise VaultError(f"{self.name}: {column!r} must hold a finite number")
        return np.array([number])


def scaled_line(line: bytes, name: str, source: TableSource, asset_type: AssetType) -> ContractedFeatures:
    """Features (1, P) in [0, 1] of a line, what was clipped and what is absent; ``source`` has the plant's columns.

    ``VaultError`` with the line's ``name`` where it is too long, no object, has a key twice, or does not fit the
    contract.
    """
    if len(line) > LONGEST_LINE:
        raise VaultError(f"{name}: it has {len(line)} bytes, {LONGEST_LINE} are the most")
    try:
        values = json.loads(line, object_pairs_hook=_said_once)
    except RepeatedKeyError as error:
        raise VaultError(f"{name}: {said_twice(str(error))}") from None
    except (ValueError, RecursionError):
        raise VaultError(f"{name}: it is not JSON") from None
    if not isinstance(values, dict):
        raise VaultError(f"{name}: a JSON object is needed, with a number for each feature")
    cells = _LineCells(values, name)
    try:
        features = read_features(cells, source, asset_type)
    except VaultError as error:
        raise VaultError(str(error) if str(error).startswith(name) else f"{name}: {error}") from None
    return apply_contract(features, cells.row_name, asset_type)


def _said_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these members. A key that UTF-8 has no form for could not be told of: ``ValueError``."""
    for key, _ in pairs:
        key.encode()
    return without_repeats(pairs)
