"""Answers inside the plant: a model's file and measurements in, fault classes or estimates out; nothing is sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from models.evaluation.robustness_radius import robustness_radius
from models.multiclass import predict_class, predict_scores
from services.contracts.errors import InvalidInputError
from services.contracts.model_version import ModelVersion
from services.contracts.scores import COVERAGE_CONFIDENCE
from services.contracts.signed_documents import check_signature
from services.site_agent.local_round import scaled_measurements
from services.site_agent.settings import CsvSource

HEADER = "row,fault_class,severity,robustness_radius"
ESTIMATE_HEADER = "row,value,unit,low,high,confidence"


def read_model(path: Path, key: str | None) -> ModelVersion:
    """Model version of a JSON file, as the OEM's registry writes it, signed by the OEM's ``key``.

    ``key`` None: whoever signed it, or nobody.

    Raises
    ------
    SignatureError
        The holder of the key did not sign it as it stands.
    InvalidInputError
        The file holds no version.
    """
    document = read_document(path)
    if key is not None:
        check_signature(document, key)
    return ModelVersion.from_document(document)


def read_document(path: Path) -> dict[str, Any]:
    """JSON object of a file; :class:`InvalidInputError` when it holds none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidInputError(f"no model file at {path}") from None
    except OSError as error:
        raise InvalidInputError(f"the model file {path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise InvalidInputError(f"{path} is not JSON") from None
    if not isinstance(document, dict):
        raise InvalidInputError(f"{path} is not a model version: a JSON object is needed")
    return document


def diagnose(version: ModelVersion, source: CsvSource) -> Iterator[str]:
    """Lines of a CSV table: for each measurement its class, severity, and the smallest move that would change it.

    The radius is in scaled features, in the model's transport norm; with a lifted model it is a lower bound. A model of
    a target gives its estimate and the interval that the worst-case risk implies, in the target's unit.
    """
    if version.task == "regression":
        yield from _estimates(version, source)
        return
    features = scaled_measurements(source, version.asset_type)
    classes = predict_class(version.weights, version.lifted(features))
    radii = robustness_radius(version.weights, features, version.spec.transport_norm, version.lift)
    yield HEADER
    for row, (number, radius) in enumerate(zip(classes.tolist(), radii.tolist(), strict=True), start=1):
        fault = version.asset_type.fault_classes[number]
        yield f"{row},{fault.name},{fault.severity},{radius:.6g}"


def _estimates(version: ModelVersion, source: CsvSource) -> Iterator[str]:
    target, around = version.asset_type.target, version.error_interval_at(COVERAGE_CONFIDENCE)
    if target is None:
        raise InvalidInputError("the model names no target")
    features = scaled_measurements(source, version.asset_type)
    scaled = predict_scores(version.weights, version.lifted(features))[:, 0]
    yield ESTIMATE_HEADER
    for row, value in enumerate(target.unscale(scaled).tolist(), start=1):
        low, high = value - around.below, value + around.above
        yield f"{row},{value:.6g},{target.unit},{low:.6g},{high:.6g},{around.confidence:g}"
