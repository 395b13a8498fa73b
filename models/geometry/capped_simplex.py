r"""Capped simplices: mixtures of the sites in which no site may count for more than its cap.

    C = { c : c_i >= 0, sum_i c_i = 1, c_i <= cap_i }

With ``cap_i = 1/(share n)`` for all i this is the set Delta_share of the RF paper (Example 1): the largest <c, f> over
it is the mean of f over the worst ``share`` of the sites, exactly: where ``share n`` is no whole number, the site on
the border counts for its fraction. Caps may differ, for sites that stand for populations of different size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, ProblemError
from models.geometry.projections import fill

_ROUNDING = 1e-9
"""By how much a sum of caps may fall short of 1 before the set is empty: caps 1/n need not sum to 1 in float64."""


@dataclass(frozen=True, eq=False)
class CappedSimplex:
    """Mixtures of n sites with the given caps (n,); a cap above 1 is the same as a cap of 1.

    ``ProblemError`` for caps that are no numbers at or above 0, or whose sum is below 1: then there is no mixture under
    them.
    """

    caps: FloatArray

    def __post_init__(self) -> None:
        """Refuse caps that leave the set empty."""
        caps = np.asarray(self.caps, dtype=np.float64)
        if caps.ndim != 1 or caps.shape[0] == 0:
            raise ProblemError(f"a capped simplex needs one cap for each site, got caps of shape {caps.shape}")
        if np.isnan(caps).any() or (caps < 0).any():
            raise ProblemError(f"each cap of a capped simplex must be a number at or above 0, got {caps.min()}")
        caps = np.minimum(caps, 1.0)
        if caps.sum() < 1.0 - _ROUNDING:
            raise ProblemError(
                f"the capped simplex is empty: the caps must sum to at least 1, they sum to {caps.sum():.9g}"
            )
        if caps.sum() < 1.0:
            caps = caps / caps.sum()
        object.__setattr__(self, "caps", caps)

    @staticmethod
    def of_share(n_sites: int, share: float) -> CappedSimplex:
        """Delta_share over ``n_sites``: caps ``1/(share n)``; share 1 is the one point (1/n, ..), 1/n the simplex.

        :class:`ProblemError` for a share outside (0, 1], or no site.
        """
        if n_sites < 1:
            raise ProblemError(f"a capped simplex needs at least one site, got {n_sites}")
        if not (math.isfinite(share) and 0.0 < share <= 1.0):
            raise ProblemError(f"the share of sites must be above 0 and at most 1, got {share}")
        return CappedSimplex(np.full(n_sites, 1.0 / (share * n_sites)))

    @property
    def size(self) -> int:
        """Number of sites n."""
        return int(self.caps.shape[0])

    @property
    def alike(self) -> bool:
        """Whether all caps are the same."""
        return bool((self.caps == self.caps[0]).all())

    def worst(self, values: FloatArray) -> FloatArray:
        """A member (n,) with the largest <c, values>; among sites that tie, the first in order is filled first."""
        return self.filled(np.argsort(-values, kind="stable"))

    def filled(self, order: NDArray[np.intp]) -> FloatArray:
        """The member (.., n) that takes the sites in an order (.., n), each up to its cap."""
        filled = np.minimum(np.cumsum(self.caps[order], axis=-1), 1.0)
        member = np.empty(order.shape)
        np.put_along_axis(member, order, np.diff(filled, prepend=0.0, axis=-1), axis=-1)
        return member

    def best(self, values: FloatArray) -> FloatArray:
        """A member (n,) with the smallest <c, values>."""
        return self.worst(-values)

    def largest(self, values: FloatArray) -> float:
        """``max_{c in C} <c, values>``."""
        return float(self.worst(values) @ values)

    def smallest(self, values: FloatArray) -> float:
        """``min_{c in C} <c, values>``."""
        return float(self.best(values) @ values)

    def nearest(self, point: FloatArray) -> FloatArray:
        """Euclidean projection of a point (n,) on the set, exact up to rounding."""
        return fill(point, np.zeros(self.size), self.caps, 1.0)
