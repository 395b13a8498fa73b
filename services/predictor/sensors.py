"""Which sensors speak for an answer: the features that push it most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from services.contracts.machines.asset_type import AssetType

MOST_SENSORS = 5  # as many as a person reads at a glance


@dataclass(frozen=True)
class Strongest:
    """Features by name and unit; their numbers, values and contributions, (n, 5 at most), the strongest first."""

    features: tuple[tuple[str, str], ...]
    order: NDArray[np.intp]
    values: FloatArray
    contributions: FloatArray

    def rows(self) -> list[list[dict[str, Any]]]:
        """For each row the fields of a ``ContributingSensor`` of every feature that pushes."""
        return [
            [
                {"feature": self.features[column][0], "value": value, "unit": self.features[column][1],
                 "contribution": pushed}
                for column, value, pushed in zip(*row, strict=True)
                if pushed != 0.0
            ]
            for row in zip(self.order.tolist(), self.values.tolist(), self.contributions.tolist(), strict=True)
        ]


class SensorReader:
    """Turns contributions into named sensors with their values and units."""

    def __init__(self, asset_type: AssetType) -> None:
        self._features = tuple((feature.name, feature.unit) for feature in asset_type.features)

    def strongest(self, values: FloatArray, contributions: FloatArray) -> Strongest:
        """For each row of (n, P) the features that push most, strongest first."""
        order = np.argsort(-np.abs(contributions), axis=1, kind="stable")[:, :MOST_SENSORS]
        return Strongest(
            self._features, order, np.take_along_axis(values, order, axis=1),
            np.take_along_axis(contributions, order, axis=1),
        )
