"""Asset type: feature contract, fault classes and target of one kind of machine, read from a TOML file."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, Self, TypeVar

import numpy as np
from pydantic import Field, model_validator

from models.losses.base import Task
from services.contracts.base import CLASS_PATTERN, UNIT_PATTERN, Contract, Slug
from services.contracts.machines.target import Target
from services.contracts.machines.value_range import ValueRange
from services.contracts.reading import read_toml

AnyContract = TypeVar("AnyContract", bound=Contract)


class Feature(ValueRange):
    """One feature: its name, unit and sensor range, what to do with a value outside the range, and how it is scaled.

    ``scale``: "linear", or "log" for a sensor whose readings span decades and are all above 0: equal ratios of readings
    are equal steps then, for the planes, the lifts and the balls alike (``Ranges.scale``).
    """

    unit: str = Field(max_length=200, pattern=UNIT_PATTERN)
    required: bool = True
    # Left out where it says nothing, so that what was signed before there was a scale reads the same.
    scale: Literal["linear", "log"] = Field(default="linear", exclude_if=lambda scale: scale == "linear")

    @model_validator(mode="after")
    def _has_logarithms(self) -> Self:
        if self.is_log and self.low <= 0:
            raise ValueError(f"{self.name}: scale log needs a range above 0, low is {self.low:g}")
        if self.is_log and np.log(self.low) == np.log(self.high):
            raise ValueError(f"{self.name}: scale log needs ends of unlike logarithms, got {self.low!r}, {self.high!r}")
        return self

    @property
    def is_log(self) -> bool:
        """Whether readings are scaled by their logarithms."""
        return self.scale == "log"


class FaultClass(Contract):
    """One class: ``severity`` 0 is healthy, higher is worse."""

    name: str = Field(pattern=CLASS_PATTERN)
    severity: int = Field(ge=0, le=10)
    description: str = ""


def named_twice(names: Iterable[str]) -> list[str]:
    """Names that are there more than once, in order; the work grows as their number, also of some ten thousand."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def _sha256(essence: dict[str, object]) -> str:
    return hashlib.sha256(json.dumps(essence, sort_keys=True).encode()).hexdigest()


class AssetType(Contract):
    """A kind of machine. The first fault class is the healthy one.

    Fault classes are for classification, the target is for regression; a kind of machine has one of them or both.
    """

    name: Slug
    version: int = Field(default=1, ge=1)
    description: str = ""
    features: tuple[Feature, ...] = Field(min_length=1)
    fault_classes: tuple[FaultClass, ...] = ()
    target: Target | None = None

    @model_validator(mode="after")
    def _something_is_learnt(self) -> Self:
        if not self.fault_classes and self.target is None:
            raise ValueError("an asset type needs fault_classes (two or more), a target, or both")
        if len(self.fault_classes) == 1:
            raise ValueError("fault_classes must be two or more, the first of them the healthy one, got 1")
        return self

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        for kind, names in (("feature", self.feature_names), ("fault class", self.class_names)):
            if twice := named_twice(names):
                raise ValueError(f"{kind} named twice: {', '.join(twice)}")
        if self.target is not None and self.target.name in self.feature_names:
            raise ValueError(f"the target and a feature are both called {self.target.name}")
        return self

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Feature names in the order of the weights."""
        return tuple(feature.name for feature in self.features)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Class names in the order of the scores."""
        return tuple(fault.name for fault in self.fault_classes)

    def heads(self, task: Task) -> int:
        """Linear functions to train: one for a regression or two classes, else one for each class against the rest."""
        return 1 if task == "regression" or len(self.fault_classes) == 2 else len(self.fault_classes)

    def missing_for_task(self, task: Task) -> str:
        """What is missing for a task, on one line; empty where nothing is."""
        if task == "regression" and self.target is None:
            return f"asset type {self.name} has no target, which a regression loss needs"
        if task == "classification" and not self.fault_classes:
            return f"asset type {self.name} has no fault classes, which a classification loss needs"
        return ""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what training depends on: names, units, ranges, scales, treatment of outliers, classes, target."""
        essence = self._sensors | {"classes": list(self.class_names)}
        if self.target is not None:
            goal = self.target
            essence["target"] = [goal.name, goal.unit, goal.low, goal.high, goal.out_of_range]
        return _sha256(essence)

    @property
    def sensors_fingerprint(self) -> str:
        """SHA-256 of what scaled readings depend on: as :attr:`fingerprint`, without classes and target."""
        return _sha256(self._sensors)

    @property
    def _sensors(self) -> dict[str, object]:
        essence: dict[str, object] = {
            "features": [[f.name, f.unit, f.low, f.high, f.required, f.out_of_range] for f in self.features],
        }
        if any(f.is_log for f in self.features):
            essence["log"] = [f.name for f in self.features if f.is_log]
        return essence

    @classmethod
    def from_toml(cls, path: Path) -> Self:
        """Read an asset type; raise :class:`InvalidInputError` with one line for each thing that does not fit."""
        return read_toml(cls, path, "asset type")
