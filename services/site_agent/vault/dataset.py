"""The dataset a local solve sees: scaled features, classes and targets, held to the contract, split in two parts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.losses.base import Task
from services.contracts.machines.asset_type import AssetType, Feature
from services.contracts.machines.target import Target
from services.contracts.machines.value_range import Ranges
from services.contracts.toml_text import quoted
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.isolation.other_versions import row_marks
from services.site_agent.vault.sources.table import HoldOut, RawTable

MIDDLE = 0.5
"""Scaled value of an optional feature that a site does not measure: the middle of its sensor range."""

IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class Part:
    """Rows of one part. features : (N, P) in [0, 1]. classes : (N,) index of the fault class, -1 where a row has none.

    targets : (N,) in [0, 1], NaN where a row has none. together : (N,) alike for rows that may be near copies of one
    another, as of one machine; None where nobody says. raw : (N,) numbers of the rows by their readings as they are
    (``other_versions.row_marks``), whatever the ranges that they are scaled to.
    """

    features: FloatArray
    classes: IntArray
    targets: FloatArray
    together: IntArray | None = None
    raw: NDArray[np.uint64] | None = None

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.classes)

    def known(self, task: Task) -> NDArray[np.bool_]:
        """Rows that a task can learn from, (N,)."""
        return ~np.isnan(self.targets) if task == "regression" else self.classes >= 0

    def outcomes(self, task: Task) -> FloatArray | IntArray:
        """What a task learns, (N,): targets or classes."""
        return self.targets if task == "regression" else self.classes

    def chosen(self, rows: NDArray[np.bool_]) -> Part:
        """Part of the chosen rows."""
        together = None if self.together is None else self.together[rows]
        raw = None if self.raw is None else self.raw[rows]
        return Part(self.features[rows], self.classes[rows], self.targets[rows], together, raw)

    def followed_by(self, other: Part) -> Part:
        """These rows, then those of another part of the same table."""
        return Part(
            np.concatenate([self.features, other.features]), np.concatenate([self.classes, other.classes]),
            np.concatenate([self.targets, other.targets]),
            _both(self.together, other.together), _both(self.raw, other.raw),
        )

    @property
    def marks(self) -> NDArray[np.uint64]:
        """``raw``, or where nobody made it the same of the scaled features."""
        if self.raw is not None:
            return self.raw
        return row_marks(self.features, [str(column) for column in range(self.features.shape[1])])


def _both(first: NDArray[Any] | None, second: NDArray[Any] | None) -> NDArray[Any] | None:
    return None if first is None or second is None else np.concatenate([first, second])


@dataclass(frozen=True)
class ContractedFeatures:
    """Features (N, P) in [0, 1], how many values of each feature were clipped, and the features not measured."""

    features: FloatArray
    clipped: Mapping[str, int]
    absent: tuple[str, ...]


@dataclass(frozen=True)
class Dataset:
    """A site's rows, ready for training. Row-level: never leaves the vault.

    ``clipped`` counts, by feature, the values that were outside their sensor range and were set to its wall; ``absent``
    names the optional features that the site does not measure. ``by_hash``: which rows are held out follows from a hash
    of the rows, and the source does not say it. ``unread``: what is to be told of columns that may be meant to be read.
    """

    train: Part
    test: Part
    clipped: Mapping[str, int]
    absent: tuple[str, ...]
    by_hash: bool = False
    unread: tuple[str, ...] = ()

    @property
    def all_clipped(self) -> tuple[str, ...]:
        """Names of which every value of the table was clipped."""
        rows = len(self.train) + len(self.test)
        return tuple(name for name, count in self.clipped.items() if count >= rows)

    def rows_for(self, task: Task) -> Dataset:
        """The rows that have a class, or a target, as the task needs; the same object at every call.

        ``VaultError`` where no row of the training part has one.
        """
        chosen = self._with_target if task == "regression" else self._with_class
        if not len(chosen.train):
            what = "a value of the target" if task == "regression" else "a class"
            raise VaultError(f"no row of the training part has {what}", "no_labels")
        return chosen

    @cached_property
    def _with_class(self) -> Dataset:
        return self._chosen("classification")

    @cached_property
    def _with_target(self) -> Dataset:
        return self._chosen("regression")

    def _chosen(self, task: Task) -> Dataset:
        train, test = self.train.known(task), self.test.known(task)
        if train.all() and test.all():
            return self
        return Dataset(self.train.chosen(train), self.test.chosen(test), self.clipped, self.absent)

    def refuse_one_class(self) -> None:
        """Raise :class:`VaultError` when the training rows are all of one class."""
        if len(np.unique(self.train.classes)) < 2:
            raise VaultError(
                "the training part holds one class only; a classifier needs rows of at least two (a plant that never "
                "had a fault sets one_class = true in its policy)", "one_class_only",
            )


def all_clipped_lines(dataset: Dataset, asset_type: AssetType) -> list[str]:
    """Sensors of which no reading is in its range: they say nothing then, and most likely stand in another unit."""
    return [
        f"{feature.name}: every value is outside the sensor range ({feature.low:g} to {feature.high:g} {feature.unit}) "
        "and was clipped to an end of it, so the sensor tells nothing: does the column hold another unit?"
        for feature in asset_type.features if feature.name in dataset.all_clipped
    ]


def build_dataset(raw: RawTable, asset_type: AssetType) -> Dataset:
    """Hold a raw table to the contract: classes, target, sensor ranges (clipped or refused), scaling, held-out part.

    :class:`VaultError` names the first row that does not fit.
    """
    classes = _class_indices(raw, asset_type)
    targets, outside = _scaled_targets(raw, asset_type)
    bare = np.flatnonzero((classes < 0) & np.isnan(targets))
    if len(bare):
        raise VaultError(f"{raw.row_name(int(bare[0]))}: the row has neither a class nor a value of the target")
    held = apply_contract(raw.values, raw.row_name, asset_type)
    features = held.features
    by_hash = isinstance(raw.split, HoldOut)
    is_test = hold_out(features, classes, raw.split) if isinstance(raw.split, HoldOut) else raw.split
    if is_test.all():
        raise VaultError("no row is in the training part", "no_data")
    whole = Part(features, classes, targets, raw.together, row_marks(raw.values, asset_type.feature_names))
    clipped = {**held.clipped, **outside}
    return Dataset(whole.chosen(~is_test), whole.chosen(is_test), clipped, held.absent, by_hash, raw.unread)


def apply_contract(values: FloatArray, row_name: Callable[[int], str], asset_type: AssetType) -> ContractedFeatures:
    """Clip or refuse values outside the sensor ranges as the contract says, scale, and fill what is not measured."""
    features, clipped = _held(values, asset_type.features, "feature {} is outside its sensor range", row_name)
    is_absent = np.asarray(np.isnan(features).all(axis=0))
    features[:, is_absent] = MIDDLE
    absent = tuple(name for name, gone in zip(asset_type.feature_names, is_absent, strict=True) if gone)
    return ContractedFeatures(features, clipped, absent)


def _class_indices(raw: RawTable, asset_type: AssetType) -> IntArray:
    if raw.labels is None:
        return np.full(len(raw.values), -1, dtype=np.intp)
    index = {name: number for number, name in enumerate(asset_type.class_names)}
    known = index if asset_type.target is None else {**index, "": -1}
    for row, label in enumerate(raw.labels):
        if not label and label not in known:
            raise VaultError(f"{raw.row_name(row)}: the cell of the class is empty; leave out the row or say its class")
        if label not in known:
            raise VaultError(
                f"{raw.row_name(row)}: label {label!r} is not a class of {asset_type.name}; "
                f"its classes are {', '.join(index)}; a word of the plant's own goes under [data.labels], "
                f"as {quoted(label)} = CLASS"
            )
    return np.array([known[label] for label in raw.labels], dtype=np.intp)


def _scaled_targets(raw: RawTable, asset_type: AssetType) -> tuple[FloatArray, dict[str, int]]:
    """Targets (N,) in [0, 1], NaN where a row has none, and how many had to be clipped to their range."""
    goal = asset_type.target
    if goal is None or raw.targets is None:
        return np.full(len(raw.values), np.nan), {}
    scaled, clipped = _held(raw.targets[:, np.newaxis], (goal,), "target {} is outside its range", raw.row_name)
    return scaled[:, 0], clipped


def _held(
    values: FloatArray, quantities: Sequence[Feature | Target], what: str, row_name: Callable[[int], str]
) -> tuple[FloatArray, dict[str, int]]:
    """Values (N, P) inside their ranges, scaled to [0, 1], and how many of each quantity had to be clipped.

    ``what`` is what an error calls the quantities and their range.
    """
    ranges = Ranges(quantities)
    outside = ranges.outside(values)
    refused = ranges.first_refused(outside)
    if refused is not None:
        row, column = refused
        wrong = quantities[column]
        raise VaultError(
            f"{row_name(row)}: {what.format(wrong.name)} [{wrong.low:g}, {wrong.high:g}] {wrong.unit} "
            f"({int(outside[:, column].sum())} of {len(values)} rows), and the contract refuses such values"
        )
    counts = {each.name: int(count) for each, count in zip(quantities, outside.sum(axis=0), strict=True) if count}
    return ranges.scale(ranges.clip(values)), counts


def hold_out(features: FloatArray, classes: IntArray, rule: HoldOut) -> NDArray[np.bool_]:
    """Choose the held-out rows, the same share of each class, by a seeded hash of each row's content.

    The order of the rows does not matter, and a row that is held out stays so when the file is written anew in another
    order. At least one row of each class stays in the training part.
    """
    salt = rule.seed.to_bytes(8, "little")
    keys = [hashlib.blake2b(salt + row.tobytes(), digest_size=8).digest() for row in np.ascontiguousarray(features)]
    order = np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)
    is_test = np.zeros(len(classes), dtype=np.bool_)
    for number in np.unique(classes):
        members = order[classes[order] == number]
        is_test[members[: min(round(rule.fraction * len(members)), len(members) - 1)]] = True
    return is_test
