"""Answers of predictors as JSON: of diagnosis and of estimation, whole or by the line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import orjson

from services.contracts.evaluation.diagnosis import DiagnoseRequest
from services.contracts.evaluation.estimate import GUARANTEE, EstimateRequest
from services.contracts.evaluation.scores import COVERAGE_CONFIDENCE
from services.predictor.cache import PredictorCache, Served, a_predictor, an_estimator
from services.predictor.estimator import Estimator
from services.predictor.predictor import Predictor

Samples = Sequence[Mapping[str, float]]
_ANY = {"sample": {"any": 0.0}}
"""In the place of samples that are read elsewhere, for the contract to check what stands beside them."""


class Kind(Protocol):
    """One of the two kinds of prediction."""

    @property
    def plain(self) -> DiagnoseRequest:
        """A request that says nothing beside its samples."""

    @property
    def in_query(self) -> tuple[str, ...]:
        """What of it stands in the query where the samples are lines."""

    def asked(self, beside: Mapping[str, object]) -> DiagnoseRequest:
        """What a request says beside its samples; ``ValidationError`` where that does not fit."""

    def served(self, predictors: PredictorCache, name: str, alias: str) -> Served:
        """What serves a version; ``NotFoundError``, or ``ConflictError`` for a model of the other kind."""

    def checked(self, served: Served, name: str) -> Any:
        """The same of this kind; ``ConflictError`` for a model of the other kind."""

    def by_row(self, served: Any, asked: DiagnoseRequest, samples: Samples) -> list[bytes]:
        """Answer to each sample; ``InvalidInputError`` where one does not fit."""

    def whole(self, served: Any, name: str, asked: DiagnoseRequest, samples: Samples) -> bytes:
        """One answer to all samples."""


class Diagnoses:
    """Diagnoses of classes, as ``DiagnoseResponse`` has them."""

    in_query = ("alias", "coverage")

    @cached_property
    def plain(self) -> DiagnoseRequest:
        """A request that says nothing beside its samples."""
        return self.asked({})

    def asked(self, beside: Mapping[str, object]) -> DiagnoseRequest:
        """What a request says beside its samples."""
        return DiagnoseRequest.model_validate({**beside, **_ANY})

    def served(self, predictors: PredictorCache, name: str, alias: str) -> Predictor:
        """Predictor of a version."""
        return predictors.diagnoser(name, alias)

    def checked(self, served: Served, name: str) -> Predictor:
        """The same, where it tells classes."""
        return a_predictor(served, name)

    def by_row(self, served: Predictor, asked: DiagnoseRequest, samples: Samples) -> list[bytes]:
        """Diagnosis of each sample."""
        return served.written(served.read(samples, asked.units), asked.coverage)

    def whole(self, served: Predictor, name: str, asked: DiagnoseRequest, samples: Samples) -> bytes:
        """All diagnoses, with which version they are by."""
        return _object(
            _version(served, name), diagnoses=_list(self.by_row(served, asked, samples)), calibration=served.facts
        )


class Estimates:
    """Estimates of a target, as ``EstimateResponse`` has them."""

    in_query = (*Diagnoses.in_query, "confidence")

    @cached_property
    def plain(self) -> EstimateRequest:
        """A request that says nothing beside its samples."""
        return self.asked({})

    def asked(self, beside: Mapping[str, object]) -> EstimateRequest:
        """What a request says beside its samples."""
        return EstimateRequest.model_validate({**beside, **_ANY})

    def served(self, predictors: PredictorCache, name: str, alias: str) -> Estimator:
        """Estimator of a version."""
        return predictors.estimator(name, alias)

    def checked(self, served: Served, name: str) -> Estimator:
        """The same, where it estimates a target."""
        return an_estimator(served, name)

    def by_row(self, served: Estimator, asked: DiagnoseRequest, samples: Samples) -> list[bytes]:
        """Estimate of each sample."""
        confidence = asked.confidence if isinstance(asked, EstimateRequest) else COVERAGE_CONFIDENCE
        return served.written(served.read(samples, asked.units), confidence, asked.coverage)

    def whole(self, served: Estimator, name: str, asked: DiagnoseRequest, samples: Samples) -> bytes:
        """All estimates, with which version they are by."""
        target = {"target": served.target.name, "unit": served.target.unit}
        return _object(
            _version(served, name) | target, estimates=_list(self.by_row(served, asked, samples)),
            guarantee=orjson.dumps(GUARANTEE), held_out_confidence=orjson.dumps(COVERAGE_CONFIDENCE),
            held_out_coverage=orjson.dumps(served.version.coverage), calibration=served.facts,
        )


KINDS: Mapping[str, Kind] = {"diagnose": Diagnoses(), "estimate": Estimates()}
"""By the last word of their address."""


def _version(served: Served, name: str) -> dict[str, str]:
    return {"model": name, "model_version": served.version.version, "run_id": served.version.run_id}


def _list(rows: Sequence[bytes]) -> bytes:
    return b"[" + b",".join(rows) + b"]"


def _object(head: Mapping[str, str], **members: bytes) -> bytes:
    """An object with texts first and members that are JSON already."""
    parts = [orjson.dumps(head)[:-1], *(b',"' + name.encode() + b'":' + text for name, text in members.items()), b"}"]
    return b"".join(parts)
