"""Answers inside the plant: a model's file and measurements in, fault classes or estimates out; nothing is sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from models.basics import FloatArray
from models.evaluation.robustness_radius import robustness_radius
from models.methods.local_sgd.objectives.network_answers import network_radius
from models.multiclass import class_of, predict_scores
from services.contracts.calibrated import calibrated_sets, novelty
from services.contracts.errors import ConflictError, InvalidInputError
from services.contracts.model_version import ModelVersion
from services.contracts.scores import COVERAGE_CONFIDENCE
from services.contracts.signed_documents import check_signature
from services.site_agent.own_screen import scaled_measurements
from services.site_agent.settings import CsvSource
from services.verification.bundle import read_files

HEADER = "row,fault_class,severity,robustness_radius"
SETS_HEADER = ",class_set,coverage,probability,abstained,reason"
ESTIMATE_HEADER = "row,value,unit,low,high,confidence"
CONFORMAL_HEADER = ",conformal_low,conformal_high,coverage,abstained,reason"


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


def diagnose(version: ModelVersion, source: CsvSource, coverage: float | None = None) -> Iterator[str]:
    """Lines of a CSV table: for each measurement its class, severity, and the smallest move that would change it.

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
    return answers(version, scaled_measurements(source, version.asset_type), coverage)


def answers(version: ModelVersion, features: FloatArray, coverage: float | None = None) -> Iterator[str]:
    """Lines of :func:`diagnose` for scaled features (N, P)."""
    if version.calibration is None and coverage is not None:
        raise ConflictError(f"model {version.name} carries no calibration, so it gives no answer of a stated coverage")
    if version.task == "regression":
        yield from _estimates(version, features, coverage)
        return
    heads, network, norm = version.head_scores(features), version.network, version.spec.transport_norm
    classes = class_of(heads)
    if network is None:
        radii = robustness_radius(version.weights, features, norm, version.lift)
    else:
        radii = network_radius(network, version.weights[0], features, norm)
    calibrated = [""] * len(features)
    if version.calibration is not None:
        names = version.asset_type.class_names
        found = calibrated_sets(version.calibration, names, heads, features, coverage)
        told = "" if found.coverage is None else f"{found.coverage:g}"
        columns = zip(classes.tolist(), found.sets, found.probabilities, found.reasons, strict=True)
        calibrated = [
            f",{' '.join(held or ())},{told},{_probability(likely, names[number])},{_trust(reason)}"
            for number, held, likely, reason in columns
        ]
    yield HEADER + ("" if version.calibration is None else SETS_HEADER)
    for row, (number, radius, more) in enumerate(zip(classes.tolist(), radii.tolist(), calibrated, strict=True), 1):
        fault = version.asset_type.fault_classes[number]
        yield f"{row},{fault.name},{fault.severity},{radius:.6g}{more}"


def _probability(likely: dict[str, float] | None, name: str) -> str:
    return "" if likely is None else f"{likely[name]:.4g}"


def _trust(reason: str) -> str:
    return f"{'yes' if reason else 'no'},{reason}"


def _estimates(version: ModelVersion, features: FloatArray, coverage: float | None) -> Iterator[str]:
    target, around = version.asset_type.target, version.error_interval_at(COVERAGE_CONFIDENCE)
    if target is None:
        raise InvalidInputError("the model names no target")
    found = version.calibration
    scaled = predict_scores(version.weights, version.lifted(features))[:, 0]
    chosen = None if found is None else found.check(coverage)
    reasons = [""] * len(features) if found is None else novelty(found, np.abs(scaled - 0.5), features)
    yield ESTIMATE_HEADER + ("" if found is None else CONFORMAL_HEADER)

    def cut(value: float) -> str:
        return f"{min(max(value, target.low), target.high):.6g}"

    around_each = None if found is None or chosen is None else target.unscale(found.interval(chosen, scaled))
    for row, (value, reason) in enumerate(zip(target.unscale(scaled).tolist(), reasons, strict=True), start=1):
        low, high, more = value - around.below, value + around.above, ""
        if found is not None:
            ends = ("", "", "")
            if around_each is not None:
                low_end, high_end = around_each[:, row - 1].tolist()
                ends = (cut(low_end), cut(high_end), f"{chosen:g}")
            more = f",{','.join(ends)},{_trust(reason)}"
        yield f"{row},{cut(value)},{target.unit},{cut(low)},{cut(high)},{around.confidence:g}{more}"
