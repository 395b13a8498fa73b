"""What each sensor adds to the scores of a model of lines, in the sensor's own unit."""

from __future__ import annotations

from typing import Final

import numpy as np

from models.features.spline import SplineLift, spline_lift
from services.contracts.machines.value_range import Ranges
from services.contracts.problems.all_scores import joint_loss
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.report import SensorCurve

LOG_PLACES: Final = 65
"""Readings at equal ratios, by which a line over readings shows the bend of a logarithm."""


def sensor_curves(version: ModelVersion) -> tuple[SensorCurve, ...]:
    """A curve for each sensor and head, sensor by sensor; none for a lift that is no sum over the sensors.

    Heights at the knots and in the middle of the range, where they are 0; of a sensor that is scaled by logarithms at
    ``LOG_PLACES`` more, for its line is bent between the knots over readings. Two classes have one score, the fault's.
    Where all classes are one problem, scores are counted from the mean of all, as a diagnosis counts them.
    """
    lift = version.lift
    if version.network is not None or not (lift is None or isinstance(lift, SplineLift)):
        return ()
    features, slopes = version.asset_type.features, version.weights[:, :-1]
    if version.task == "classification" and joint_loss(version.spec, version.asset_type) is not None:
        slopes = slopes - slopes.mean(axis=0)
    lines = spline_lift(len(features), 1) if lift is None else lift
    knots = lines.knots[0]
    places = np.union1d(knots, [0.5])
    target = version.asset_type.target if version.task == "regression" else None
    names = ("",) if target is not None else version.asset_type.class_names
    if target is None and len(slopes) == 1:
        names = names[1:]
    scale = 1.0 if target is None else target.width
    found = []
    for j, feature in enumerate(features):
        shown = np.union1d(places, np.linspace(0.0, 1.0, LOG_PLACES)) if feature.is_log else places
        readings = tuple(Ranges([feature]).unscale(shown[:, np.newaxis])[:, 0].tolist())
        for name, heights in zip(names, lines.curves(slopes)[:, j], strict=True):
            line = np.interp(shown, knots, heights)
            line = scale * (line - line[shown == 0.5])
            found.append(
                SensorCurve(
                    sensor=feature.name, unit=feature.unit, fault_class=name, readings=readings,
                    heights=tuple(line.tolist()),
                )
            )
    return tuple(found)
