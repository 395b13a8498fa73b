"""Units of the weights in which all features are of one size, for training where all rows are in this process."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray
from models.problem import SiteProblem


@dataclass(frozen=True)
class Units:
    """Centre (P,), zero without an intercept, and spread (P,) of the features over all rows."""

    centre: FloatArray
    spread: FloatArray

    @staticmethod
    def of(sites: list[SiteProblem]) -> Units:
        """Units in which a unit of every weight does about the same to the risk."""
        rows = np.vstack([site.features for site in sites])
        centre = rows.mean(axis=0) if sites[0].spec.fit_intercept else np.zeros(rows.shape[1])
        radius = max(site.spec.radius for site in sites)
        spread = np.sqrt(np.square(rows - centre).mean(axis=0) + radius * radius)
        return Units(centre, np.where(spread > 0, spread, 1.0))

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
