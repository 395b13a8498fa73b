"""Measurements from a form or from CSV text, and what the model says of them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from api.backend.wiring import Backend
from models.basics import TransportNorm
from services.contracts.delimiters import other_delimiter
from services.contracts.documents import to_plain
from services.contracts.errors import InvalidInputError
from services.contracts.evaluation.calibrated import UNLIKE
from services.contracts.evaluation.diagnosis import ContributingSensor, Diagnosis
from services.contracts.evaluation.estimate import Estimate
from services.contracts.machines.asset_type import AssetType, Feature
from services.predictor.predictor import Predictor

MOST_ROWS: Final = 500
"""Rows of CSV text that a page shows."""
_SHARE: Final = {"l1": 1.0, "l2": 0.5, "linf": 0.0}
"""Moves of P readings, all of one size, are P to this power times as long as one of them."""


@dataclass(frozen=True)
class Margin:
    """How far one reading may be off, all others right, before the answer changes; in the sensor's own unit."""

    feature: Feature
    value: float
    by: float


@dataclass(frozen=True)
class Result:
    """What the model says of one measurement: a diagnosis or an estimate.

    ``together``: by which share of its range every reading may be off at once, all others too; None: by any.
    """

    diagnosis: Diagnosis | None
    estimate: Estimate | None
    margins: tuple[Margin, ...]
    together: float | None = None

    @property
    def sensors(self) -> tuple[ContributingSensor, ...]:
        """Sensors that push the answer most."""
        found = self.diagnosis or self.estimate
        return () if found is None else found.contributing_sensors

    @property
    def parts(self) -> Mapping[str, Any]:
        """The answer as JSON knows it, for the parts that only some versions give: class sets, other intervals."""
        found = self.diagnosis or self.estimate
        return {} if found is None else dict(to_plain(found))

    @property
    def is_unlike(self) -> bool:
        """Whether the measurement is unlike the held-out ones, of whose like alone a coverage is promised."""
        return UNLIKE in (self.parts.get("reason") or "")

    @property
    def clipped(self) -> tuple[str, ...]:
        """Readings that were outside their range."""
        found = self.diagnosis or self.estimate
        return () if found is None else found.clipped


def asset_type_of(backend: Backend, name: str, alias: str) -> AssetType:
    """Kind of machine that a served version is for."""
    return backend.predictors.get(name, alias).version.asset_type


def ask(
    backend: Backend, name: str, alias: str, samples: Sequence[Mapping[str, float]], confidence: float
) -> tuple[Result, ...]:
    """What the version says of measurements; ``InvalidInputError`` where one does not fit the feature contract."""
    served = backend.predictors.get(name, alias)
    if isinstance(served, Predictor):
        features, norm = served.version.asset_type.features, served.version.spec.transport_norm
        return tuple(
            Result(
                found, None, _margins(features, sample, found.robustness_radius),
                _together(len(features), norm, found.robustness_radius),
            )
            for sample, found in zip(samples, served.diagnose(samples), strict=True)
        )
    return tuple(Result(None, found, ()) for found in served.estimate(samples, None, confidence))


def _margins(features: Sequence[Feature], sample: Mapping[str, float], radius: float | None) -> tuple[Margin, ...]:
    """By how much each reading alone may move: the radius is of features scaled to [0, 1], in any of the norms."""
    if radius is None or not math.isfinite(radius):
        return ()
    return tuple(
        Margin(each, sample[each.name], _move(each, sample[each.name], radius)) for each in features
        if each.name in sample
    )


def _together(n_features: int, norm: TransportNorm, radius: float | None) -> float | None:
    """Share of its range by which every reading may move at once: together these moves are as long as the radius."""
    return None if radius is None or not math.isfinite(radius) else radius / n_features ** _SHARE[norm]


def _move(feature: Feature, reading: float, radius: float) -> float:
    """The scaled move in the unit; of a sensor that is scaled by logarithms the way down, which is the shorter one."""
    if not feature.is_log:
        return radius * feature.width
    return max(reading, feature.low) * -math.expm1(-radius * math.log(feature.high / feature.low))


def sample_of(asset_type: AssetType, form: Mapping[str, str]) -> dict[str, float]:
    """Measurement that a form holds; an empty optional reading is left out. ``InvalidInputError`` names the reading."""
    sample = {}
    for feature in asset_type.features:
        text = form.get(f"reading-{feature.name}", "").strip()
        if text or feature.required:
            sample[feature.name] = _number(text, feature.name)
    return sample


def samples_of(text: str) -> list[dict[str, float]]:
    """Measurements in CSV text, a line of names first; ``InvalidInputError`` with the line that does not fit."""
    try:
        # A line may end as in any system's files, and some editors write a mark in front.
        lines = list(enumerate(csv.reader(io.StringIO(text.strip().removeprefix("\ufeff"), newline=None)), start=1))
    except csv.Error:
        raise InvalidInputError("CSV: a value is longer than any number") from None
    if len(lines) < 2:
        raise InvalidInputError("CSV: a line with the names of the readings is needed, and a line for each measurement")
    names = [name.strip() for name in lines[0][1]]
    if other := other_delimiter(names, ","):
        raise InvalidInputError(f"CSV: values are divided by {other!r}, commas are needed, and points in numbers")
    rows = [(number, row) for number, row in lines[1:] if any(cell.strip() for cell in row)]
    if len(set(names)) != len(names):
        raise InvalidInputError("CSV: the first line has a name twice")
    if len(rows) > MOST_ROWS:
        raise InvalidInputError(f"CSV: {len(rows)} measurements; this page takes {MOST_ROWS}, the API takes more")
    found = []
    for number, row in rows:
        if len(row) != len(names):
            raise InvalidInputError(f"CSV, line {number}: {len(row)} values for {len(names)} names")
        found.append({name: _number(cell, f"{name}, line {number}") for name, cell in zip(names, row, strict=True)})
    return found


def _number(text: str, where: str) -> float:
    try:
        value = float(text if "_" not in text else "")  # float alone passes over underscores, as source code has them
    except ValueError:
        raise InvalidInputError(f"{where}: a number is needed") from None
    if not math.isfinite(value):
        raise InvalidInputError(f"{where}: a finite number is needed")
    return value
