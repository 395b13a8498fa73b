"""Diagnoses of one model version."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.evaluation.robustness_radius import robustness_radius
from models.multiclass import predict_scores
from services.contracts.diagnosis import ContributingSensor, Diagnosis
from services.contracts.errors import ConflictError, InvalidInputError
from services.contracts.model_version import ModelVersion
from services.predictor.samples import Batch, SampleReader
from services.predictor.sensors import SensorReader


class Planes:
    r"""``score_c(x) = <w_c, z(x)> + b_c`` of scaled features x, shape (P,), for each of C classes; z is the lift.

    Two classes share one trained plane: the second class (the fault) has it, the first has its negative. More classes
    have one each, trained against the rest. Without a lift ``z(x) = x``.
    """

    def __init__(self, version: ModelVersion) -> None:
        self._heads = version.weights
        self._transport_norm = version.spec.transport_norm
        self._version, self._lift = version, version.lift
        slopes = self._heads[:, :-1]
        self._slopes: FloatArray = np.vstack([-slopes, slopes]) if len(slopes) == 1 else slopes.copy()

    def scores(self, scaled: FloatArray) -> FloatArray:
        """Scores, shape (n, C), of scaled features, shape (n, P)."""
        scores = predict_scores(self._heads, self._version.lifted(scaled))
        return np.hstack([-scores, scores]) if len(self._heads) == 1 else scores

    def radii(self, scaled: FloatArray) -> FloatArray:
        """Smallest move of the scaled features, in the transport norm, that changes the class, shape (n,).

        With a lift a lower bound of it; so it is of the smallest move inside the sensor ranges, or a polytope.
        """
        return robustness_radius(self._heads, scaled, self._transport_norm, self._lift)

    def gradients(self, scaled: FloatArray, classes: NDArray[np.intp]) -> FloatArray:
        """Gradient of each row's score of the given class in the scaled features, shape (n, P)."""
        slopes = self._slopes[classes]
        return slopes if self._lift is None else self._lift.gradient(scaled, slopes)


class Predictor:
    """Diagnoses measurements with plain arrays; keeps nothing between calls, so threads may share it.

    Parameters
    ----------
    version : the version whose weights and contract are used.
    abstain_below_radius : a diagnosis whose robustness radius is below this is given as abstained; 0 never abstains.
    """

    def __init__(self, version: ModelVersion, *, abstain_below_radius: float = 0.0) -> None:
        if not (math.isfinite(abstain_below_radius) and abstain_below_radius >= 0):
            raise InvalidInputError("abstain_below_radius must be a finite number at or above 0")
        if version.task != "classification":
            raise ConflictError(f"model {version.name} estimates a target; it has no classes to diagnose")
        self.version = version
        self._abstain_below = abstain_below_radius
        self._reader = SampleReader(version.asset_type)
        self._planes = Planes(version)
        self._class_names = version.asset_type.class_names
        self._severities = tuple(fault.severity for fault in version.asset_type.fault_classes)
        self._sensors = SensorReader(version.asset_type)

    def diagnose(
        self, samples: Sequence[Mapping[str, float]], units: Mapping[str, str] | None = None
    ) -> tuple[Diagnosis, ...]:
        """Diagnoses in the order of the samples, each a mapping of feature name to value in the contract's unit.

        ``units``, where given, are checked against the contract. A value outside its sensor range is clipped or refused
        as the contract says; a missing optional feature is set to the middle of its range; the diagnosis names both.
        ``InvalidInputError`` with one line that names the sample's index and the feature, when any sample does not fit;
        none is diagnosed then.
        """
        batch = self._reader.read(samples, units)
        scores = self._planes.scores(batch.scaled)
        winners = scores.argmax(axis=1)
        radii = self._planes.radii(batch.scaled)
        contributions = self._planes.gradients(batch.scaled, winners) * (batch.scaled - 0.5)
        sensors = self._sensors.strongest(batch.values, contributions)
        columns = zip(winners.tolist(), radii.tolist(), scores.tolist(), sensors, strict=True)
        return tuple(self._diagnosis(batch, row, *found) for row, found in enumerate(columns))

    def _diagnosis(
        self,
        batch: Batch,
        row: int,
        winner: int,
        radius: float,
        scores: list[float],
        sensors: tuple[ContributingSensor, ...],
    ) -> Diagnosis:
        abstained = radius < self._abstain_below
        reason = f"robustness radius {radius:.4g} is below the asked {self._abstain_below:g}" if abstained else ""
        return Diagnosis(
            fault_class=self._class_names[winner],
            severity=self._severities[winner],
            scores=dict(zip(self._class_names, scores, strict=True)),
            robustness_radius=radius if math.isfinite(radius) else None,
            contributing_sensors=sensors,
            clipped=batch.clipped.get(row, ()),
            imputed=batch.imputed.get(row, ()),
            abstained=abstained,
            reason=reason,
        )
