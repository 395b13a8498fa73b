"""Which sensors speak for an answer: the features that push it most."""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray
from services.contracts.asset_type import AssetType
from services.contracts.diagnosis import ContributingSensor

MOST_SENSORS = 5  # as many as a person reads at a glance


class SensorReader:
    """Turns contributions into named sensors with their values and units."""

    def __init__(self, asset_type: AssetType) -> None:
        self._features = tuple((feature.name, feature.unit) for feature in asset_type.features)

    def strongest(self, values: FloatArray, contributions: FloatArray) -> list[tuple[ContributingSensor, ...]]:
        """For each row of (n, P) the features that push most, strongest first, without those that do not push."""
        order = np.argsort(-np.abs(contributions), axis=1, kind="stable")[:, :MOST_SENSORS]
        values = np.take_along_axis(values, order, axis=1)
        contributions = np.take_along_axis(contributions, order, axis=1)
        rows = zip(order.tolist(), values.tolist(), contributions.tolist(), strict=True)
        return [
            tuple(
                ContributingSensor(
                    feature=self._features[column][0], value=value, unit=self._features[column][1], contribution=pushed
                )
                for column, value, pushed in zip(*row, strict=True)
                if pushed != 0.0
            )
            for row in rows
        ]
