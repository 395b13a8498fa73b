r"""Best moves inside a box: ``max_v <a, v> - lam cost(v)`` with the row in the box before and after.

The sides are independent but for the norm. For l1 each feature goes to its wall or stays; for linf all go as far as a
common t, for l2 as far as ``t |a_p|``, each up to its wall; t is looked for among all points where the objective bends
and all where its derivative vanishes, and the objective itself decides.
"""

from __future__ import annotations

import numpy as np

from tests.oracles.wasserstein.losses import Array
from tests.oracles.wasserstein.problem import Box, OracleSite, norm_of


class BoxMoves:
    """Best moves of all rows of a site at once."""

    def __init__(self, site: OracleSite, box: Box) -> None:
        self._site, self._box = site, box

    def best(self, direction: Array, lam: float) -> Array:
        """Moves (N, d) that gain the most for ``direction`` (d,) at the price ``lam``."""
        site, box, p = self._site, self._box, self._site.features.shape[1]
        a, x = direction[:p], site.features
        room = np.maximum(np.where(a > 0, box.high - x, x - box.low), 0.0)
        moves = np.sign(a) * self._sizes(np.abs(a), room, lam)
        if not site.loss.regression:
            return moves
        side = box.target_high - site.labels if direction[-1] > 0 else site.labels - box.target_low
        goes = np.isfinite(side) & (abs(direction[-1]) > lam * min(site.flip_cost, 1e300)) & np.isfinite(site.flip_cost)
        target = np.where(goes, np.where(np.isfinite(side), np.maximum(side, 0.0), 0.0), 0.0)
        return np.column_stack([moves, np.sign(direction[-1]) * target])

    def _sizes(self, a: Array, room: Array, lam: float) -> Array:
        norm = self._site.norm
        if norm == "l1":
            return np.where(a > lam, room, 0.0)
        if norm == "linf":
            along, stops = np.ones_like(a), np.where(a > 0, room, 0.0)
        else:
            along = a
            stops = self._with_stationary(a, room, lam)
        stops = np.hstack([np.zeros((room.shape[0], 1)), stops])
        sizes = np.where(a > 0, np.minimum(room[:, None, :], stops[:, :, None] * along), 0.0)
        gains = sizes @ a - lam * norm_of(sizes, norm)
        return np.asarray(sizes[np.arange(room.shape[0]), np.argmax(gains, axis=1)])

    @staticmethod
    def _with_stationary(a: Array, room: Array, lam: float) -> Array:
        """Stops of t for l2: where a side meets its wall, and where the derivative vanishes in between."""
        meets = np.divide(room, a, out=np.zeros_like(room), where=a > 0)
        found = [meets]
        for t in np.hstack([np.zeros((room.shape[0], 1)), meets]).T:
            capped = (meets <= t[:, None]) | (a == 0)
            spent = norm_of(np.where(capped & (a > 0), room, 0.0), "l2")
            free = norm_of(np.where(capped, 0.0, a), "l2")
            bends = (free > 0) & (lam > free)
            rest = np.sqrt(np.where(bends, lam - free, 1.0)) * np.sqrt(np.where(bends, lam + free, 1.0))
            found.append(np.where(bends, spent / rest, 0.0)[:, None])
        return np.hstack(found)
