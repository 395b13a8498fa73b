"""What the plant's own screen and commands are told of its data: nothing of this is sent."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from models.losses.base import Task as LearningTask
from services.contracts.machines.asset_type import AssetType
from services.contracts.machines.value_range import Ranges
from services.site_agent.rules.policy import Refusal, SitePolicy
from services.site_agent.settings import CsvSource, DataSource, SiteSettings
from services.site_agent.vault.dataset import ContractedFeatures, Dataset, Part, all_clipped_lines, apply_contract
from services.site_agent.vault.drift import BEFORE_ANY_JOIN, DriftRecord, by_chance, distances, drift, drift_lines
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.reader import Vault
from services.site_agent.vault.records.exposure_words import exposure_lines, exposure_summary
from services.site_agent.vault.sources.csv_source import read_measurements

_MOST_ROWS = (0.01, 0.99)
_NARROW = 0.2
"""Quantiles between which a sensor reads mostly, and the share of its range below which that is said."""


def exposure_account(path: Path, policy: SitePolicy) -> tuple[dict[str, Any], list[str]]:
    """What the answers so far isolate, as figures and in plain words, for the plant's own screen.

    Raises
    ------
    ExposureRecordError
        The record at ``path`` cannot be read.
    """
    summary = exposure_summary(path, policy)
    return summary, exposure_lines(summary)


def drift_account(
    settings: SiteSettings, asset_type: AssetType, *, anew: bool = False, looking: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """How far the readings have moved since the first join, or ``anew`` from now on, for the plant's own screen.

    Who is only ``looking`` writes nothing: before the first join there is no figure then.

    Raises
    ------
    VaultError
        Something does not fit the contract.
    ExposureRecordError
        The record cannot be read or written.
    """
    rows = Vault(settings.data, asset_type).current().train.features
    record, former = DriftRecord(settings.exposure, looking=looking), asset_type.fingerprint
    sensors = asset_type.sensors_fingerprint
    try:
        first = record.first(sensors, former) if looking else record.begin(sensors, rows, former, anew=anew)
    finally:
        record.close()
    if first is None:
        return {"since": None, "rows": len(rows), "drift": None, "chance": None, "sensors": {}}, [BEFORE_ANY_JOIN]
    by_sensor = dict(zip(asset_type.feature_names, distances(first, rows).tolist(), strict=True))
    return {
        "since": first.began, "rows": len(rows), "drift": drift(first, rows),
        "chance": by_chance(first, len(rows)), "sensors": by_sensor,
    }, drift_lines(first, rows, asset_type.feature_names)


def data_summary(source: DataSource, asset_type: AssetType, policy: SitePolicy) -> list[str]:
    """What the data hold, for the plant's own screen.

    ``VaultError`` where something does not fit the contract, or the rows serve nothing that the asset type is for;
    ``Refusal`` where there are fewer rows than the policy asks for.
    """
    dataset = Vault(source, asset_type).current()
    lines = [f"asset type {asset_type.name}: {len(asset_type.features)} features, all that are required are there"]
    lines += [_part_line("training", dataset.train, asset_type), _part_line("held out", dataset.test, asset_type)]
    for name, count in dataset.clipped.items():
        which = "sensor range" if name in asset_type.feature_names else "range"
        if name not in dataset.all_clipped:
            lines.append(_clipped_line(name, count, which))
    lines += all_clipped_lines(dataset, asset_type)
    lines += _one_class_lines(dataset, asset_type)
    lines += _narrow_lines(dataset, asset_type)
    if dataset.absent:
        lines.append(f"optional features that are not measured: {', '.join(dataset.absent)}")
    lines += dataset.unread
    both: tuple[LearningTask, ...] = ("classification", "regression")
    tasks = [task for task in both if not asset_type.missing_for_task(task)]
    problems: list[VaultError | Refusal] = []
    for task in tasks:
        try:
            _check_task(dataset, task, policy)
        except (VaultError, Refusal) as error:
            problems.append(error)
            lines.append(f"no {task}: {error}")
    if len(problems) == len(tasks):
        raise problems[0]
    return lines


def _one_class_lines(dataset: Dataset, asset_type: AssetType) -> list[str]:
    """Where the policy lets a plant without a fault take part: its labels may also not be what they should be."""
    present = np.unique(dataset.train.classes[dataset.train.known("classification")])
    if not asset_type.fault_classes or len(present) != 1:
        return []
    name = asset_type.class_names[int(present[0])]
    return [f"all rows of the training part are {name}: other classes are learnt from other plants alone"]


def _narrow_lines(dataset: Dataset, asset_type: AssetType) -> list[str]:
    """Sensors whose readings fill little of their range: a mistyped value in a contract's range squeezes the others."""
    lines = []
    for feature, readings in zip(asset_type.features, dataset.train.features.T, strict=True):
        if feature.name in (*dataset.absent, *dataset.all_clipped) or not readings.size:
            continue
        least, most = np.quantile(readings, _MOST_ROWS)
        if most - least < _NARROW:
            low, high = Ranges([feature]).unscale(np.array([[least], [most]]))[:, 0]
            unit = "" if feature.unit == "1" else f" {feature.unit}"
            lines.append(
                f"{feature.name}: 98 of 100 rows read {low:.4g} to {high:.4g}{unit}, {most - least:.0%} of the sensor "
                f"range ({feature.low:g} to {feature.high:g}); where no plant reads further, a narrower range, which "
                "the OEM sets in the asset type, makes a better model"
            )
    return lines


def _check_task(dataset: Dataset, task: LearningTask, policy: SitePolicy) -> None:
    rows = dataset.rows_for(task)
    if task == "classification" and not policy.one_class:
        rows.refuse_one_class()
    policy.check_samples(len(rows.train), len(rows.test), "evaluate")


def scaled_measurements(source: CsvSource, asset_type: AssetType) -> ContractedFeatures:
    """Features (N, P) in [0, 1] of measurements without labels, for diagnoses inside the plant, and what was clipped.

    ``VaultError`` where something does not fit the contract.
    """
    return apply_contract(*read_measurements(source, asset_type), asset_type)


def measured_lines(found: ContractedFeatures) -> list[str]:
    """What was made of measurements before they were diagnosed: what lay out of range, and what nothing measures."""
    lines = [_clipped_line(name, count) for name, count in found.clipped.items()]
    if found.absent:
        lines.append(
            f"no column for {', '.join(found.absent)} (optional): the middle of the sensor range stands for each"
        )
    return lines


def _clipped_line(name: str, count: int, which: str = "sensor range") -> str:
    return f"{name}: {count} values outside the {which} were clipped to it"


def _part_line(name: str, part: Part, asset_type: AssetType) -> str:
    counts = Counter(part.classes.tolist())
    held = [f"{class_name} {counts[number]}" for number, class_name in enumerate(asset_type.class_names)]
    if asset_type.target is not None:
        held.append(f"values of the target {asset_type.target.name} {int(part.known('regression').sum())}")
    return f"{name}: {len(part)} rows ({', '.join(held)})"
