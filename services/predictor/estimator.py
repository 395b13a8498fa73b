"""Estimates of one model version of a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from models.basics import FloatArray
from models.multiclass import predict_scores
from services.contracts.errors import ConflictError
from services.contracts.evaluation.calibrated import novelty
from services.contracts.evaluation.estimate import Estimate
from services.contracts.evaluation.scores import COVERAGE_CONFIDENCE
from services.contracts.versions.model_version import ModelVersion
from services.predictor import written
from services.predictor.predictor import coverage_of
from services.predictor.samples import Batch, SampleReader
from services.predictor.sensors import SensorReader, Strongest
from services.predictor.tally import Tally


@dataclass(frozen=True)
class _Columns:
    """Estimates of n samples (n,), the ends of their intervals (2, n), cut to the range, and what goes with them."""

    values: FloatArray
    interval: FloatArray
    conformal: FloatArray | None
    coverage: float | None
    sensors: Strongest
    reasons: list[str]


class Estimator:
    """Estimates the target with plain arrays; keeps nothing of them between calls, so threads may share it.

    ``facts`` is what readers see of the version's calibration, as JSON. ``tally`` counts the answers.
    """

    def __init__(self, version: ModelVersion, *, tally: Tally | None = None) -> None:
        target = version.asset_type.target
        if version.task != "regression" or target is None:
            raise ConflictError(f"model {version.name} tells classes; it has no target to estimate")
        self.version = version
        self._tally = tally or Tally()
        self.target = target
        facts = version.calibration_facts
        self.facts = orjson.dumps(None if facts is None else facts.model_dump(mode="json"))
        self._lift = version.lift
        self._reader = SampleReader(version.asset_type)
        self._sensors = SensorReader(version.asset_type)

    def estimate(
        self,
        samples: Sequence[Mapping[str, float]],
        units: Mapping[str, str] | None = None,
        confidence: float = COVERAGE_CONFIDENCE,
        coverage: float | None = None,
    ) -> tuple[Estimate, ...]:
        """Estimates in the order of the samples, each a mapping of feature name to value in the contract's unit.

        Samples are read as for a diagnosis. The interval around each estimate follows from the version's worst-case
        risk at ``confidence`` in (0, 1), the conformal one from the held-out counts at ``coverage`` (None: the
        version's own). The target lies in its range, so values and intervals are cut to it. ``InvalidInputError`` with
        one line that names the sample's index and the feature, when any sample does not fit; ``ConflictError`` where
        the version's risk has no finite bound, so there is no interval, or its counts are too few for the coverage.
        """
        found = self.rows(self._reader.read(samples, units), confidence, coverage)
        return tuple(Estimate.model_validate(row) for row in found)

    def read(self, samples: Sequence[Mapping[str, float]], units: Mapping[str, str] | None = None) -> Batch:
        """Samples as arrays, held to the contract as :meth:`estimate` says."""
        return self._reader.read(samples, units)

    def batch(self, values: FloatArray) -> Batch:
        """Values (n, P) in the contract's order and units, held to the contract likewise."""
        return self._reader.checked(values, {})

    def values(self, batch: Batch) -> FloatArray:
        """Estimates (n,) in the target's unit, cut to its range."""
        self._tally.add(self.version.name, self.version.version, [None] * len(batch.scaled))
        scores = predict_scores(self.version.weights, self.version.lifted(batch.scaled))[:, 0]
        return self._cut(self.target.unscale(scores))

    def rows(
        self, batch: Batch, confidence: float = COVERAGE_CONFIDENCE, coverage: float | None = None
    ) -> list[dict[str, Any]]:
        """The fields of an ``Estimate`` for each sample, in its order."""
        found = self._columns(batch, confidence, coverage)
        columns = zip(
            found.values.tolist(), zip(*found.interval.tolist(), strict=True), found.sensors.rows(), found.reasons,
            [None] * len(found.values) if found.conformal is None else zip(*found.conformal.tolist(), strict=True),
            strict=True,
        )
        return [
            {
                "value": value, "unit": self.target.unit,
                "interval": {"low": low, "high": high, "confidence": confidence, "kind": "worst_case_markov"},
                "conformal": None if ends is None else {
                    "low": ends[0], "high": ends[1], "confidence": found.coverage, "kind": "conformal"
                },
                "contributing_sensors": pushing, "clipped": batch.clipped.get(row, ()),
                "imputed": batch.imputed.get(row, ()), "abstained": bool(reason), "reason": reason,
            }
            for row, (value, (low, high), pushing, reason, ends) in enumerate(columns)
        ]

    def written(
        self, batch: Batch, confidence: float = COVERAGE_CONFIDENCE, coverage: float | None = None
    ) -> list[bytes]:
        """The estimate of each sample as JSON: what :meth:`rows` says, without an object for each."""
        n = len(batch.values)
        if n <= written.FEW:
            return written.each(self.rows(batch, confidence, coverage))
        found = self._columns(batch, confidence, coverage)

        def interval(ends: FloatArray, of: float | None, kind: str) -> list[written.Part]:
            low, high = (written.numbers(end) for end in ends)
            return written.fields(low=[low], high=[high], confidence=[orjson.dumps(of)], kind=[orjson.dumps(kind)])

        conformal: list[written.Part] = [written.NOTHING]
        if found.conformal is not None:
            conformal = interval(found.conformal, found.coverage, "conformal")
        parts = written.fields(
            value=[written.numbers(found.values)],
            unit=[orjson.dumps(self.target.unit)],
            interval=interval(found.interval, confidence, "worst_case_markov"),
            conformal=conformal,
            contributing_sensors=written.sensors(found.sensors),
            clipped=[written.named(batch.clipped, n)],
            imputed=[written.named(batch.imputed, n)],
            abstained=[[b"true" if reason else b"false" for reason in found.reasons]],
            reason=[written.texts(found.reasons)],
        )
        return written.rows(parts, n)

    def _columns(self, batch: Batch, confidence: float, coverage: float | None) -> _Columns:
        seen = self.version.lifted(batch.scaled)
        scores = predict_scores(self.version.weights, seen)
        values = self.target.unscale(scores[:, 0])
        slopes = np.broadcast_to(self.version.weights[:1, :-1], (len(seen), seen.shape[1]))
        shares = slopes * (batch.scaled - 0.5) if self._lift is None else self._lift.shares(batch.scaled, slopes)
        sensors = self._sensors.strongest(batch.values, self.target.width * shares)
        around = self.version.error_interval_at(confidence)
        found, chosen = self.version.calibration, coverage_of(self.version, coverage)
        reasons = [""] * len(values)
        if found is not None:
            reasons = novelty(found, np.abs(scores[:, 0] - 0.5), batch.scaled)
        conformal = None
        if found is not None and chosen is not None:
            conformal = self._cut(self.target.unscale(found.interval(chosen, scores[:, 0])))
        interval = self._cut(np.stack([values - around.below, values + around.above]))
        self._tally.add(self.version.name, self.version.version, [None] * len(values), sum(map(bool, reasons)))
        return _Columns(self._cut(values), interval, conformal, chosen, sensors, reasons)

    def _cut(self, values: FloatArray) -> FloatArray:
        return np.clip(values, self.target.low, self.target.high)
