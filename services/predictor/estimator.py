"""Estimates of one model version of a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from models.multiclass import predict_scores
from services.contracts.errors import ConflictError
from services.contracts.estimate import Estimate, Interval
from services.contracts.model_version import ModelVersion
from services.contracts.scores import COVERAGE_CONFIDENCE
from services.predictor.samples import SampleReader
from services.predictor.sensors import SensorReader


class Estimator:
    """Estimates the target with plain arrays; keeps nothing between calls, so threads may share it."""

    def __init__(self, version: ModelVersion) -> None:
        target = version.asset_type.target
        if version.task != "regression" or target is None:
            raise ConflictError(f"model {version.name} tells classes; it has no target to estimate")
        self.version = version
        self.target = target
        self._lift = version.lift
        self._reader = SampleReader(version.asset_type)
        self._sensors = SensorReader(version.asset_type)

    def estimate(
        self,
        samples: Sequence[Mapping[str, float]],
        units: Mapping[str, str] | None = None,
        confidence: float = COVERAGE_CONFIDENCE,
    ) -> tuple[Estimate, ...]:
        """Estimates in the order of the samples, each a mapping of feature name to value in the contract's unit.

        Samples are read as for a diagnosis. The interval around each estimate follows from the version's worst-case
        risk at ``confidence`` in (0, 1); nothing is clipped to the target's range. ``InvalidInputError`` with one line
        that names the sample's index and the feature, when any sample does not fit; ``ConflictError`` where the
        version's risk has no finite bound, so there is no interval.
        """
        batch = self._reader.read(samples, units)
        seen = self.version.lifted(batch.scaled)
        values = self.target.unscale(predict_scores(self.version.weights, seen)[:, 0]).tolist()
        slopes = np.broadcast_to(self.version.weights[:1, :-1], (len(seen), seen.shape[1]))
        gradients = slopes if self._lift is None else self._lift.gradient(batch.scaled, slopes)
        sensors = self._sensors.strongest(batch.values, self.target.width * gradients * (batch.scaled - 0.5))
        around = self.version.error_interval_at(confidence)
        return tuple(
            Estimate(
                value=value,
                unit=self.target.unit,
                interval=Interval(low=value - around.below, high=value + around.above, confidence=confidence),
                contributing_sensors=pushing,
                clipped=batch.clipped.get(row, ()),
                imputed=batch.imputed.get(row, ()),
            )
            for row, (value, pushing) in enumerate(zip(values, sensors, strict=True))
        )
