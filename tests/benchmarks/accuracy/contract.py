"""The contract of a table: sensor ranges and scales as drafted from the training rows; classes, or a target."""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray
from models.features.likely_range import likely_range, range_for_classes
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.machines.likely_scale import likely_log_range, speaks_for_logarithms
from services.contracts.machines.target import Target
from services.contracts.machines.value_range import Ranges
from tests.benchmarks.accuracy.deal import Part

TYPE = "table"


def contract_of(train: Part) -> AssetType:
    """The contract: sensor ranges by the training rows, and the classes, or the target, that these have."""
    features = tuple(_feature(f"f{j}", readings, train) for j, readings in enumerate(train.features.T))
    if train.outcomes.dtype.kind == "f":
        low, high = _apart(float(train.outcomes.min()), float(train.outcomes.max()))
        return AssetType(name=TYPE, features=features, target=Target(name="target", unit="1", low=low, high=high))
    classes = tuple(
        FaultClass(name=f"c{k}", severity=int(k > 0)) for k in range(len(np.unique(train.outcomes)))
    )
    return AssetType(name=TYPE, features=features, fault_classes=classes)


def _feature(name: str, readings: FloatArray, train: Part) -> Feature:
    """A sensor by its readings, as ``ballast asset-type draft`` proposes it but for the rounding of the ends."""
    is_for_target = train.outcomes.dtype.kind == "f"
    if is_for_target and speaks_for_logarithms(readings):
        low, high = likely_log_range(readings)
        return Feature(name=name, unit="1", low=low, high=high, scale="log")
    low, high = likely_range(readings) if is_for_target else range_for_classes(readings)
    low, high = _apart(low, high)
    return Feature(name=name, unit="1", low=low, high=high)


def _apart(low: float, high: float) -> tuple[float, float]:
    """Ends of a range that readings of one value have too; a 1 more is lost in a large one."""
    return (low, high) if high > low else (low, low + max(1.0, abs(low)))


def in_shares(features: FloatArray, asset_type: AssetType) -> FloatArray:
    """Readings (N, P) as a vault makes them: cut to their ranges, in [0, 1]."""
    ranges = Ranges(asset_type.features)
    return ranges.scale(ranges.clip(features))
