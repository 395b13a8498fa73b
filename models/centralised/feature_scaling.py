"""Units of the weights in which all features are of one size, for training where all rows are in this process."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray
from models.features.feature_units import centred, units_of
from models.problem import SiteProblem


@dataclass(frozen=True)
class Units:
    """Centre (P,), zero without an intercept, and spread (P,) of the features over all rows."""

    centre: FloatArray
    spread: FloatArray

    @staticmethod
    def of(sites: list[SiteProblem]) -> Units:
        """Units in which a unit of every weight does about the same to the risk."""
        rows, centre = centred(sites)
        radius = max(site.spec.radius for site in sites)
        return Units(centre, units_of(rows, centre, radius))

    @staticmethod
    def of_one_size(sites: list[SiteProblem]) -> Units:
        """Units with one spread for all features: radius and label flip cost over it, and the problem is the same."""
        rows, centre = centred(sites)
        apart = rows - centre
        largest = float(np.abs(apart).max(initial=0.0)) or 1.0
        size = largest * float(np.sqrt(np.square(apart / largest).mean()))
        return Units(centre, np.full(rows.shape[1], size if size > 0 else 1.0))

    def back(self, point: FloatArray) -> FloatArray:
        """Weights (D,) for the features as given from weights in these units."""
        n = self.centre.shape[0]
        plane = point.copy()
        plane[:n] /= self.spread
        if plane.shape[0] > n:
            plane[n] -= float(plane[:n] @ self.centre)
        return plane

    def slope(self, slope: FloatArray) -> FloatArray:
        """Slope (D,) in these units from one for the features as given."""
        n = self.centre.shape[0]
        turned = slope.copy()
        if turned.shape[0] > n:
            turned[:n] -= slope[n] * self.centre
        turned[:n] /= self.spread
        return turned
