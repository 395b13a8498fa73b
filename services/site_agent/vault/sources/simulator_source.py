"""Reads a plant folder of raw signals (format ``ballast-plant-signals``, version 1) and computes the indicators."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from models.basics import FloatArray
from models.features.condition_indicators import INDICATOR_NAMES, INDICATOR_UNITS, condition_indicators
from services.contracts.array_files import UNREADABLE, opened_arrays
from services.contracts.machines.asset_type import AssetType
from services.contracts.machines.same_unit import same_unit
from services.contracts.reading import explain
from services.site_agent.settings import SimulatorSource
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.sources.columns import check_units
from services.site_agent.vault.sources.parquet_source import read_table
from services.site_agent.vault.sources.table import RawTable

FLOW_UNIT = "L/min"
SPLITS = ("train", "test")
MANIFEST = "plant.json"


class _Manifest(BaseModel):
    """What is needed of ``plant.json``; the rest of it is for people."""

    model_config = ConfigDict(frozen=True)

    format: str = Field(pattern="^ballast-plant-signals$")
    version: int = Field(ge=1, le=1)
    asset_type: str
    also_fits: tuple[str, ...] = ()
    sampling_rate_hz: float = Field(gt=0, allow_inf_nan=False)
    units: dict[str, str]
    files: dict[str, str]


def files(source: SimulatorSource) -> list[Path]:
    """Files whose change means new data: the manifest, and the parts that it names as it is now."""
    folder = source.path
    try:
        named = _manifest(folder).files
    except VaultError:  # who reads says what is wrong with it
        return [folder / MANIFEST]
    return [folder / MANIFEST, *(folder / named[split] for split in SPLITS)]


def read(source: SimulatorSource, asset_type: AssetType) -> RawTable:
    """Read both parts and compute the indicators of each flow signal; :class:`VaultError` says what does not fit."""
    manifest = _manifest(source.path)
    if asset_type.name not in (manifest.asset_type, *manifest.also_fits):
        raise VaultError(
            f"{source.path / MANIFEST}: the signals are of asset type {manifest.asset_type}, not {asset_type.name}"
        )
    if manifest.units.get("flow") != FLOW_UNIT:
        raise VaultError(
            f"{source.path / MANIFEST}: the unit of flow is {manifest.units.get('flow')!r}, "
            f"the indicators want {FLOW_UNIT!r}"
        )
    columns, goal = _indicator_columns(asset_type), _target_array(manifest, asset_type)
    values, labels, targets, is_test, names = [], [], [], [], []
    for split in SPLITS:
        flow, words, numbers = _signals(source.path / manifest.files[split], goal)
        try:
            indicators = condition_indicators(flow, manifest.sampling_rate_hz)
        except ValueError as error:
            raise VaultError(f"{manifest.files[split]}: {error}") from None
        part = np.full((len(flow), len(columns)), np.nan)
        for number, column in enumerate(columns):
            if column is not None:
                part[:, number] = indicators[:, column]
        _refuse_not_finite(part, columns, manifest.files[split])
        values.append(part)
        labels += words
        targets.append(numbers)
        is_test += [split == "test"] * len(flow)
        names += [f"{manifest.files[split]}, record {row + 1}" for row in range(len(flow))]
    if not labels:
        raise VaultError(f"{source.path} holds no measurements", "no_data")
    return RawTable(
        np.concatenate(values), tuple(labels) if asset_type.fault_classes else None, np.array(is_test),
        names.__getitem__, np.concatenate(targets) if goal else None,
    )


def _target_array(manifest: _Manifest, asset_type: AssetType) -> str:
    """Name of the array that holds the target, its unit checked; empty where the asset type has none."""
    goal = asset_type.target
    if goal is None:
        return ""
    if goal.name not in manifest.units:
        raise VaultError(f"{MANIFEST} gives no unit for the target {goal.name}: the signals have no array of that name")
    if not same_unit(manifest.units[goal.name], goal.unit):
        raise VaultError(
            f"{MANIFEST}: target {goal.name} is in {manifest.units[goal.name]!r}, the contract wants {goal.unit!r}"
        )
    return goal.name


def _manifest(folder: Path) -> _Manifest:
    path = folder / MANIFEST
    if path.exists() and not path.is_file():  # a pipe would hold up who reads it
        raise VaultError(f"{path} is no file", "no_data")
    try:
        manifest = _Manifest.model_validate(json.loads(path.read_text(encoding="utf-8-sig")))
    except FileNotFoundError:
        table = "; of a table the file is named, not its folder" if folder.is_dir() else ""
        raise VaultError(f"no plant folder at {folder}: {MANIFEST} is not there{table}", "no_data") from None
    except OSError as error:
        raise VaultError(f"{path} cannot be read: {error.strerror}", "no_data") from None
    except ValidationError as error:
        raise VaultError(f"{path}: {explain(error)}") from None
    except (ValueError, RecursionError):
        raise VaultError(f"{path} is not JSON") from None
    for split in SPLITS:
        name = manifest.files.get(split, "")
        if not name or Path(name).name != name:
            raise VaultError(f"{path}: files.{split} must name a file of the folder")
    return manifest


def _indicator_columns(asset_type: AssetType) -> list[int | None]:
    """Column of each feature among the indicators; None for an optional feature that is not an indicator."""
    for feature in asset_type.features:
        if feature.required and feature.name not in INDICATOR_NAMES:
            raise VaultError(
                f"feature {feature.name} is not among the indicators of a signal: {', '.join(INDICATOR_NAMES)}"
            )
    known = {n: u for n, u in zip(INDICATOR_NAMES, INDICATOR_UNITS, strict=True) if n in asset_type.feature_names}
    check_units(known, asset_type, "indicators of the flow signal")
    return [INDICATOR_NAMES.index(name) if name in INDICATOR_NAMES else None for name in asset_type.feature_names]


def _signals(path: Path, target: str) -> tuple[FloatArray, list[str], FloatArray]:
    """Flow signals, shape (n, T), labels, and values of the target (zeros where it has no name) of one part."""
    if not path.is_file():
        raise VaultError(f"no file {path}, which {MANIFEST} names", "no_data")
    wanted = ("flow", "label", target) if target else ("flow", "label")
    arrays = _from_parquet(path, wanted) if path.suffix == ".parquet" else _from_npz(path, wanted)
    flow, labels = arrays["flow"], arrays["label"]
    if flow.ndim != 2 or flow.dtype.kind not in "fiu" or flow.shape[1] < 2:
        raise VaultError(f"{path.name}: flow must be numbers of shape (records, samples), got {flow.shape}")
    if labels.shape != (len(flow),) or labels.dtype.kind != "U":
        raise VaultError(f"{path.name}: label must hold one text for each of the {len(flow)} records of flow")
    rows = np.flatnonzero(~np.isfinite(flow).all(axis=1))
    if len(rows):
        raise VaultError(f"{path.name}, record {rows[0] + 1}: flow holds NaN or an infinite value")
    numbers = arrays[target] if target else np.zeros(len(flow))
    if numbers.shape != (len(flow),) or numbers.dtype.kind not in "fiu" or not np.isfinite(numbers).all():
        raise VaultError(f"{path.name}: {target} must hold one finite number for each of the {len(flow)} records")
    return flow.astype(np.float64), [str(label) for label in labels], numbers.astype(np.float64)


def _from_npz(path: Path, wanted: tuple[str, ...]) -> dict[str, Any]:
    try:
        with path.open("rb") as file, opened_arrays(file) as arrays:
            missing = sorted(set(wanted) - set(arrays))
            if missing:
                raise VaultError(f"{path.name} has no array {missing[0]!r}; it has: {', '.join(arrays)}")
            return {name: arrays[name] for name in wanted}
    except UNREADABLE:
        raise VaultError(f"{path.name} cannot be read as an NPZ file of plain arrays") from None


def _from_parquet(path: Path, wanted: tuple[str, ...]) -> dict[str, Any]:
    table = read_table(path)
    missing = sorted(set(wanted) - set(table.column_names))
    if missing:
        raise VaultError(f"{path.name} has no column {missing[0]!r}; it has: {', '.join(table.column_names)}")
    arrays: dict[str, Any] = {}
    for name in wanted:
        try:
            kind = np.str_ if name == "label" else np.float64
            arrays[name] = np.array(table.column(name).to_pylist(), dtype=kind)
        except (TypeError, ValueError):
            what = "a list of equally many numbers" if name == "flow" else "a number"
            raise VaultError(f"{path.name}: column {name!r} must hold {what} in each row") from None
    return arrays


def _refuse_not_finite(part: FloatArray, columns: list[int | None], file_name: str) -> None:
    measured = [number for number, column in enumerate(columns) if column is not None]
    rows = np.flatnonzero(~np.isfinite(part[:, measured]).all(axis=1))
    if len(rows):
        raise VaultError(f"{file_name}, record {rows[0] + 1}: the indicators of this flow signal are not finite")
