"""Samples from outside, held to the feature contract and turned into arrays."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from numbers import Real
from operator import itemgetter

import numpy as np

from models.basics import FloatArray
from services.contracts.errors import InvalidInputError
from services.contracts.machines.asset_type import AssetType
from services.contracts.machines.same_unit import same_unit
from services.contracts.machines.value_range import Ranges

_PLAIN = frozenset({float, int})  # what JSON's numbers become; a truth value is no number


@dataclass(frozen=True)
class Batch:
    """Samples as arrays, n rows and P features in the contract's order.

    ``values`` as they were given (the middle of the range where imputed), ``scaled`` clipped to the sensor ranges and
    scaled to [0, 1]; ``clipped`` and ``imputed`` name the features of the rows that have any.
    """

    values: FloatArray
    scaled: FloatArray
    clipped: Mapping[int, tuple[str, ...]]
    imputed: Mapping[int, tuple[str, ...]]


class SampleReader:
    """Reads samples of one asset type. Errors name the sample's index and the feature, and never quote a value."""

    def __init__(self, asset_type: AssetType) -> None:
        self._features = asset_type.features
        self._names = asset_type.feature_names
        self._known = frozenset(self._names)
        self._ranges = Ranges(asset_type.features)
        self._middle = self._ranges.middle.tolist()
        # Of one key an itemgetter gives the value itself, of several a tuple of them.
        several = itemgetter(*self._names)
        self._pick: Callable[[Mapping[str, float]], tuple[object, ...]] = (
            several if len(self._names) > 1 else lambda sample: (several(sample),)
        )

    def _check_units(self, units: Mapping[str, str]) -> None:
        for name, unit in units.items():
            if name not in self._known:
                raise InvalidInputError(f"units: {self._unknown(name)}")
            wanted = self._features[self._names.index(name)].unit
            if not same_unit(unit, wanted):
                raise InvalidInputError(f"units: feature {name} must be in {wanted}, got {_shown(unit)}")

    def read(self, samples: Sequence[Mapping[str, float]], units: Mapping[str, str] | None = None) -> Batch:
        """Arrays of the samples; raise :class:`InvalidInputError` at the first that does not fit.

        So do units that are not the contract's; features that ``units`` leaves out are taken to be in theirs.
        """
        self._check_units(units or {})
        if not samples:
            raise InvalidInputError("samples: give at least one")
        whole = self._whole(samples)
        return self.checked(*(self._one_by_one(samples) if whole is None else (whole, {})))

    def _whole(self, samples: Sequence[Mapping[str, float]]) -> FloatArray | None:
        """Values (n, P) where each sample has every feature, nothing else, and plain numbers; None for any others."""
        width = len(self._names)
        if set(map(len, samples)) != {width}:
            return None
        try:
            rows = [self._pick(sample) for sample in samples]
        except KeyError:
            return None
        if not set(map(type, chain.from_iterable(rows))) <= _PLAIN:
            return None
        try:
            return np.fromiter(chain.from_iterable(rows), np.float64, len(rows) * width).reshape(len(rows), width)
        except OverflowError:
            return None

    def _one_by_one(self, samples: Sequence[Mapping[str, float]]) -> tuple[FloatArray, dict[int, tuple[str, ...]]]:
        """Values (n, P) and what is imputed, sample by sample; says what does not fit."""
        imputed: dict[int, tuple[str, ...]] = {}
        rows = []
        for index, sample in enumerate(samples):
            row = [sample.get(name) for name in self._names]
            if None in row or len(sample) != len(row):
                imputed[index] = self._fill(index, sample, row)
            rows.append([_number(value, index, name) for value, name in zip(row, self._names, strict=True)])
        return np.array(rows), {index: names for index, names in imputed.items() if names}

    def checked(self, values: FloatArray, imputed: Mapping[int, tuple[str, ...]]) -> Batch:
        """Batch of values (n, P) in the contract's order and units; ``InvalidInputError`` for one that does not fit."""
        if not np.isfinite(values).all():
            index, column = (int(at[0]) for at in np.nonzero(~np.isfinite(values)))
            raise InvalidInputError(f"{_at(index, self._names[column])} must be a finite number, got NaN or infinity")
        outside = self._ranges.outside(values)
        clipped = self._clipped(outside) if outside.any() else {}
        scaled = self._ranges.scale(self._ranges.clip(values))
        return Batch(values, scaled, clipped, imputed)

    def _fill(self, index: int, sample: Mapping[str, float], row: list[float | None]) -> tuple[str, ...]:
        """Set missing optional features to the middle of their range; name them, or say what does not fit."""
        for name in sample:
            if name not in self._known:
                raise InvalidInputError(f"sample {index}: {self._unknown(name)}")
        missing = [column for column, name in enumerate(self._names) if name not in sample]
        required = [self._names[column] for column in missing if self._features[column].required]
        if required:
            raise InvalidInputError(f"sample {index}: missing required feature {', '.join(required)}")
        for column in missing:
            row[column] = self._middle[column]
        return tuple(self._names[column] for column in missing)

    def _clipped(self, outside: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> dict[int, tuple[str, ...]]:
        refused = self._ranges.first_refused(outside)
        if refused is not None:
            index, column = refused
            feature = self._features[column]
            bounds = f"{feature.low:g} to {feature.high:g} {feature.unit}"
            raise InvalidInputError(
                f"{_at(index, feature.name)} is outside its sensor range {bounds}, which the contract refuses"
            )
        rows = np.nonzero(outside.any(axis=1))[0].tolist()
        return {row: tuple(self._names[column] for column in np.nonzero(outside[row])[0].tolist()) for row in rows}

    def _unknown(self, name: str) -> str:
        near = difflib.get_close_matches(str(name)[:63], self._names, n=1)
        hint = f", did you mean {near[0]}" if near else f", the features are {', '.join(self._names)}"
        return f"unknown feature {_shown(name)}{hint}"


def _number(value: object, index: int, name: str) -> float:
    if type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        got = "text" if isinstance(value, str) else "nothing" if value is None else type(value).__name__
        raise InvalidInputError(f"{_at(index, name)} must be a number, got {got}")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _at(index: int, name: str) -> str:
    return f"sample {index}, feature {name}"


def _shown(text: object) -> str:
    return repr(str(text)[:60])
