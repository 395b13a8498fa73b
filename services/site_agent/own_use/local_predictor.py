"""Answers inside the plant: a model's file and measurements in, fault classes or estimates out; nothing is sent."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from models.basics import FloatArray
from models.evaluation.robustness_radius import robustness_radius
from models.methods.local_sgd.objectives.network_answers import network_radius
from models.multiclass import class_of, predict_scores
from services.contracts.errors import ConflictError, InvalidInputError
from services.contracts.evaluation.calibrated import calibrated_sets, novelty
from services.contracts.evaluation.scores import COVERAGE_CONFIDENCE
from services.contracts.keys.signed_documents import check_signature
from services.contracts.versions.model_version import ModelVersion
from services.verification.bundle import read_files

HEADER = "row,fault_class,severity,robustness_radius"
SETS_HEADER = ",class_set,coverage,probability,abstained,reason"
ESTIMATE_HEADER = "row,value,unit,low,high,confidence"
CONFORMAL_HEADER = ",conformal_low,conformal_high,coverage,abstained,reason"
_ENDLESS = {"robustness_radius": "inf"}
"""What the table has for a number that JSON and the OEM's API have none for (null)."""
_DIGITS = {"probability": ".4g"}
"""How a number of the table is written where not with six digits."""


def read_model(path: Path, key: str | None) -> ModelVersion:
    """Model version of a JSON file, as the OEM's registry writes it, signed by the OEM's ``key`` or one of its line.

    The line of the OEM's keys is read from ``oem-keys.json`` beside the file, where it is there.

    ``key`` None: whoever signed it, or nobody.

    Raises
    ------
    SignatureError
        The holder of the key did not sign it as it stands.
    InvalidInputError
        The file holds no version.
    """
    if not path.exists():
        raise InvalidInputError(f"no model file at {path}")
    files = read_files(path)
    if key is not None:
        check_signature(files.document, key, files.line)
    return ModelVersion.from_document(files.document)


def diagnose(version: ModelVersion, features: FloatArray, coverage: float | None = None) -> Iterator[str]:
    """Lines of a CSV table of scaled features (N, P): class, severity, and the smallest move that would change it.

    The radius is in scaled features, in the model's transport norm; with a lifted model or a network it is a lower
    bound. A model of a target gives its estimate and the interval that the worst-case risk implies, in the target's
    unit, both cut to its range. A version with a calibration gives besides the set of classes, or the interval, of a
    ``coverage`` (None: its own), the probability of the class, and whether to trust it.

    Raises
    ------
    InvalidInputError
        The coverage is none between 0 and 1.
    ConflictError
        The version carries no calibration, or its counts are too few for the coverage.
    """
    found = answers(version, features, coverage)
    yield header(version)
    for row, answer in enumerate(found, start=1):
        yield ",".join((str(row), *(_word(name, value) for name, value in answer.items())))


def header(version: ModelVersion) -> str:
    """First line of the table."""
    first, more = (ESTIMATE_HEADER, CONFORMAL_HEADER) if version.task == "regression" else (HEADER, SETS_HEADER)
    return first if version.calibration is None else first + more


def answers(version: ModelVersion, features: FloatArray, coverage: float | None = None) -> Iterator[dict[str, Any]]:
    """Answers to scaled features (N, P), by the names of the table's columns; errors are those of :func:`diagnose`."""
    check_coverage(version, coverage)
    return (_estimates if version.task == "regression" else _classes)(version, features, coverage)


def check_coverage(version: ModelVersion, coverage: float | None) -> None:
    """Refuse a coverage before anything is written; errors are those of :func:`diagnose`.

    :class:`ConflictError` for a model without a calibration.
    """
    if version.calibration is not None:
        version.calibration.check(coverage)
    elif coverage is not None:
        raise ConflictError(f"model {version.name} carries no calibration, so it gives no answer of a stated coverage")


def _word(name: str, value: Any) -> str:
    match value:
        case None:
            return _ENDLESS.get(name, "")
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:{_DIGITS.get(name, '.6g')}}"
        case list():
            return " ".join(value)
        case _:
            return str(value)


def _classes(version: ModelVersion, features: FloatArray, coverage: float | None) -> Iterator[dict[str, Any]]:
    heads, network, norm = version.head_scores(features), version.network, version.spec.transport_norm
    classes, faults = class_of(heads).tolist(), version.asset_type.fault_classes
    if network is None:
        radii = robustness_radius(version.weights, features, norm, version.lift)
    else:
        radii = network_radius(network, version.weights[0], features, norm)
    more: list[dict[str, Any]] = [{}] * len(features)
    if version.calibration is not None:
        names = version.asset_type.class_names
        found = calibrated_sets(version.calibration, names, heads, features, coverage)
        columns = zip(classes, found.sets, found.probabilities, found.reasons, strict=True)
        more = [
            {
                "class_set": None if held is None else list(held), "coverage": found.coverage,
                "probability": None if likely is None else likely[names[number]], **_trust(reason),
            }
            for number, held, likely, reason in columns
        ]
    for number, radius, besides in zip(classes, radii.tolist(), more, strict=True):
        fault = faults[number]
        finite = radius if math.isfinite(radius) else None  # no move changes the class: null, as the OEM's API says it
        yield {"fault_class": fault.name, "severity": fault.severity, "robustness_radius": finite, **besides}


def _trust(reason: str) -> dict[str, Any]:
    return {"abstained": bool(reason), "reason": reason}


def _estimates(version: ModelVersion, features: FloatArray, coverage: float | None) -> Iterator[dict[str, Any]]:
    target, around = version.asset_type.target, version.error_interval_at(COVERAGE_CONFIDENCE)
    if target is None:
        raise InvalidInputError("the model names no target")
    found = version.calibration
    scaled = predict_scores(version.weights, version.lifted(features))[:, 0]
    chosen = None if found is None else found.check(coverage)
    reasons = [""] * len(features) if found is None else novelty(found, np.abs(scaled - 0.5), features)

    def cut(value: float) -> float:
        return min(max(value, target.low), target.high)

    around_each = None if found is None or chosen is None else target.unscale(found.interval(chosen, scaled))
    for row, (value, reason) in enumerate(zip(target.unscale(scaled).tolist(), reasons, strict=True)):
        told: dict[str, Any] = {
            "value": cut(value), "unit": target.unit, "low": cut(value - around.below),
            "high": cut(value + around.above), "confidence": around.confidence,
        }
        if found is not None:
            low, high = (None, None) if around_each is None else map(cut, around_each[:, row].tolist())
            told |= {"conformal_low": low, "conformal_high": high, "coverage": chosen, **_trust(reason)}
        yield told
