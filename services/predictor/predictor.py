"""Diagnoses of one model version."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from models.basics import FloatArray
from models.conformal.scores import class_scores
from models.evaluation.robustness_radius import robustness_radius
from models.methods.local_sgd.objectives.network import NetworkObjective
from models.methods.local_sgd.objectives.network_answers import network_radius, network_shares
from models.multiclass import predict_scores
from services.contracts.errors import ConflictError, InvalidInputError
from services.contracts.evaluation.calibrated import CalibratedSets, calibrated_sets
from services.contracts.evaluation.diagnosis import Diagnosis
from services.contracts.problems.all_scores import joint_loss
from services.contracts.versions.model_version import ModelVersion
from services.predictor import written
from services.predictor.samples import Batch, SampleReader
from services.predictor.sensors import SensorReader, Strongest
from services.predictor.tally import Tally

NOT_CALIBRATED = "model {} carries no calibration, so it gives no answer of a stated coverage: train a version anew"


def coverage_of(version: ModelVersion, coverage: float | None) -> float | None:
    """Coverage of a version's sets or intervals: the asked one, or its own; None where it has none.

    ``ConflictError`` (``coverage_not_available``) where the asked one is not to be had of it.
    """
    if version.calibration is not None:
        return version.calibration.check(coverage)
    if coverage is not None:
        raise ConflictError(NOT_CALIBRATED.format(version.name), code="coverage_not_available")
    return None


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
        if joint_loss(version.spec, version.asset_type) is not None:
            # The plane of the first class is 0 by convention alone: what all planes have in common decides nothing.
            slopes = slopes - slopes.mean(axis=0)
        self._slopes: FloatArray = np.vstack([-slopes, slopes]) if len(slopes) == 1 else slopes.copy()

    def head_scores(self, scaled: FloatArray) -> FloatArray:
        """Scores, shape (n, K), of the trained planes."""
        return predict_scores(self._heads, self._version.lifted(scaled))

    def radii(self, scaled: FloatArray) -> FloatArray:
        """Smallest move of the scaled features, in the transport norm, that changes the class, shape (n,).

        Without a lift it is a lower bound of the smallest move inside the sensor ranges, or a polytope. With splines it
        is one inside the ranges (exact with linf, else near it); with another lift a lower bound.
        """
        return robustness_radius(self._heads, scaled, self._transport_norm, self._lift)

    def shares(self, scaled: FloatArray, classes: NDArray[np.intp]) -> FloatArray:
        """What each feature adds to each row's score of the given class, from the middle of its range: (n, P).

        Where all classes are one problem: to that score less the mean of all scores.
        """
        slopes = self._slopes[classes]
        return slopes * (scaled - 0.5) if self._lift is None else self._lift.shares(scaled, slopes)


class TwoLayers:
    """Scores of a network, in place of :class:`Planes`; the radii are lower bounds, shares integrated gradients."""

    def __init__(self, version: ModelVersion, network: NetworkObjective) -> None:
        self._network, self._weights = network, version.weights[0]
        self._transport_norm = version.spec.transport_norm

    def head_scores(self, scaled: FloatArray) -> FloatArray:
        """Scores, shape (n, C)."""
        return self._network.scores(self._weights, scaled)

    def radii(self, scaled: FloatArray) -> FloatArray:
        """Lower bound of the smallest move, in the transport norm, that changes the class, shape (n,)."""
        return network_radius(self._network, self._weights, scaled, self._transport_norm)

    def shares(self, scaled: FloatArray, classes: NDArray[np.intp]) -> FloatArray:
        """What each feature adds to each row's score of the given class, from the middle of its range: (n, P)."""
        return network_shares(self._network, self._weights, scaled, classes)


@dataclass(frozen=True)
class _Columns:
    """Diagnoses of n samples: number of the class (n,), scores (n, C), radii (n,), and what goes with each."""

    winners: NDArray[np.intp]
    scores: FloatArray
    radii: FloatArray
    sensors: Strongest
    sets: CalibratedSets
    reasons: list[str]


class Predictor:
    """Diagnoses measurements with plain arrays; keeps nothing of them between calls, so threads may share it.

    Parameters
    ----------
    version : the version whose weights and contract are used. ``facts`` is what readers see of its calibration (JSON).
    abstain_below_radius : a diagnosis whose robustness radius is below this is given as abstained; 0 never abstains.
    tally : counts the answers.
    """

    def __init__(
        self, version: ModelVersion, *, abstain_below_radius: float = 0.0, tally: Tally | None = None
    ) -> None:
        if not (math.isfinite(abstain_below_radius) and abstain_below_radius >= 0):
            raise InvalidInputError("abstain_below_radius must be a finite number at or above 0")
        if version.task != "classification":
            raise ConflictError(f"model {version.name} estimates a target; it has no classes to diagnose")
        self.version = version
        self._abstain_below = abstain_below_radius
        self._tally = tally or Tally()
        self._reader = SampleReader(version.asset_type)
        network = version.network
        self._planes = Planes(version) if network is None else TwoLayers(version, network)
        self._class_names = version.asset_type.class_names
        facts = version.calibration_facts
        self.facts = orjson.dumps(None if facts is None else facts.model_dump(mode="json"))
        self._has_no_scale = version.calibration is None or version.calibration.scale is None
        self._told = tuple((fault.name, fault.severity) for fault in version.asset_type.fault_classes)
        self._severities = tuple(fault.severity for fault in version.asset_type.fault_classes)
        self._sensors = SensorReader(version.asset_type)

    def diagnose(
        self,
        samples: Sequence[Mapping[str, float]],
        units: Mapping[str, str] | None = None,
        coverage: float | None = None,
    ) -> tuple[Diagnosis, ...]:
        """Diagnoses in the order of the samples, each a mapping of feature name to value in the contract's unit.

        ``coverage`` is that of the class sets, None that of the version; ``ConflictError`` where the version's held-out
        counts are too few for it.

        ``units``, where given, are checked against the contract. A value outside its sensor range is clipped or refused
        as the contract says; a missing optional feature is set to the middle of its range; the diagnosis names both.
        ``InvalidInputError`` with one line that names the sample's index and the feature, when any sample does not fit;
        none is diagnosed then.
        """
        found = self.rows(self._reader.read(samples, units), coverage)
        return tuple(Diagnosis.model_validate(row) for row in found)

    def read(self, samples: Sequence[Mapping[str, float]], units: Mapping[str, str] | None = None) -> Batch:
        """Samples as arrays, held to the contract as :meth:`diagnose` says."""
        return self._reader.read(samples, units)

    def batch(self, values: FloatArray) -> Batch:
        """Values (n, P) in the contract's order and units, held to the contract likewise."""
        return self._reader.checked(values, {})

    def class_scores(self, batch: Batch) -> FloatArray:
        """Scores (n, C) of the classes."""
        self._tally.add(self.version.name, self.version.version, [None] * len(batch.scaled))
        return class_scores(self._planes.head_scores(batch.scaled))

    def rows(self, batch: Batch, coverage: float | None = None) -> list[dict[str, Any]]:
        """The fields of a ``Diagnosis`` for each sample, in its order."""
        found = self._columns(batch, coverage)
        sets, names = found.sets, self._class_names
        columns = zip(
            found.winners.tolist(), found.radii.tolist(), found.scores.tolist(), found.sensors.rows(), sets.sets,
            sets.probabilities, found.reasons, strict=True,
        )
        return [
            {
                "fault_class": names[winner], "severity": self._severities[winner],
                "scores": dict(zip(names, score, strict=True)),
                "robustness_radius": radius if math.isfinite(radius) else None, "contributing_sensors": pushing,
                "class_set": classes, "coverage": sets.coverage, "probabilities": likely,
                "clipped": batch.clipped.get(row, ()), "imputed": batch.imputed.get(row, ()),
                "abstained": bool(reason), "reason": reason,
            }
            for row, (winner, radius, score, pushing, classes, likely, reason) in enumerate(columns)
        ]

    def written(self, batch: Batch, coverage: float | None = None) -> list[bytes]:
        """The diagnosis of each sample as JSON: what :meth:`rows` says, without an object for each."""
        n = len(batch.values)
        if n <= written.FEW:
            return written.each(self.rows(batch, coverage))
        found = self._columns(batch, coverage)
        sets = found.sets
        winners = found.winners.tolist()
        classes = [orjson.dumps(name) + b',"severity":%d' % severity for name, severity in self._told]
        scores = {name: [written.numbers(found.scores[:, k])] for k, name in enumerate(self._class_names)}
        nothing = sets.coverage is None
        parts = written.fields(
            fault_class=[[classes[winner] for winner in winners]],
            scores=written.fields(**scores),
            robustness_radius=[written.numbers(found.radii)],
            contributing_sensors=written.sensors(found.sensors),
            class_set=[written.NOTHING if nothing else written.each(sets.sets)],
            coverage=[orjson.dumps(sets.coverage)],
            probabilities=[written.NOTHING if self._has_no_scale else written.each(sets.probabilities)],
            clipped=[written.named(batch.clipped, n)],
            imputed=[written.named(batch.imputed, n)],
            abstained=[[b"true" if reason else b"false" for reason in found.reasons]],
            reason=[written.texts(found.reasons)],
        )
        return written.rows(parts, n)

    def _columns(self, batch: Batch, coverage: float | None) -> _Columns:
        heads = self._planes.head_scores(batch.scaled)
        scores = class_scores(heads)
        winners = scores.argmax(axis=1)
        radii = self._planes.radii(batch.scaled)
        sensors = self._sensors.strongest(batch.values, self._planes.shares(batch.scaled, winners))
        sets = self._calibrated(heads, batch.scaled, coverage)
        reasons = list(sets.reasons)
        for row in np.flatnonzero(radii < self._abstain_below).tolist():
            near = f"robustness radius {radii[row]:.4g} is below the asked {self._abstain_below:g}"
            reasons[row] = f"{near}; {reasons[row]}" if reasons[row] else near
        sizes = [None if found is None else len(found) for found in sets.sets]
        self._tally.add(self.version.name, self.version.version, sizes, sum(map(bool, reasons)))
        return _Columns(winners, scores, radii, sensors, sets, reasons)

    def _calibrated(self, heads: FloatArray, scaled: FloatArray, coverage: float | None) -> CalibratedSets:
        """Class sets and probabilities, where the version has a calibration; nothing for each row otherwise."""
        calibration = self.version.calibration
        if calibration is not None:
            return calibrated_sets(calibration, self._class_names, heads, scaled, coverage)
        coverage_of(self.version, coverage)
        nothing = [None] * len(heads)
        return CalibratedSets(None, nothing, nothing, [""] * len(heads))
