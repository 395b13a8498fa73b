"""The separating planes of a version, prepared for quick answers."""

from __future__ import annotations

import numpy as np

from models.problem import FloatArray, TransportNorm
from services.contracts.model_version import ModelVersion

DUAL_ORDER: dict[TransportNorm, float] = {"l1": np.inf, "l2": 2, "linf": 1}


class Planes:
    r"""One plane for each of C classes: ``score_c(x) = <w_c, x> + b_c`` on scaled features x, shape (P,).

    Two classes share one trained plane: the second class (the fault) has it, the first has its negative. More classes
    have one each, trained against the rest.
    """

    def __init__(self, version: ModelVersion) -> None:
        heads = version.weights
        per_class = np.vstack([-heads, heads]) if len(heads) == 1 else heads
        self.slopes: FloatArray = np.ascontiguousarray(per_class[:, :-1])
        self._slopes_t: FloatArray = np.ascontiguousarray(self.slopes.T)
        self._intercepts: FloatArray = per_class[:, -1].copy()
        # Two planes that are each other's negative: halve differences of scores and of slopes alike.
        self._share = 0.5 if len(heads) == 1 else 1.0
        apart = self._share * (self.slopes[:, None, :] - self.slopes[None, :, :])
        self._norms = np.linalg.norm(apart, ord=DUAL_ORDER[version.transport_norm], axis=-1)

    def scores(self, scaled: FloatArray) -> FloatArray:
        """Scores, shape (n, C), of scaled features, shape (n, P)."""
        scores: FloatArray = scaled @ self._slopes_t + self._intercepts
        return scores

    def radii(self, scores: FloatArray, winners: np.ndarray[tuple[int, ...], np.dtype[np.intp]]) -> FloatArray:
        r"""Smallest move of the scaled features that changes the class, shape (n,).

        ``min_{j != c} (score_c - score_j) / ||w_c - w_j||_*`` with the dual of the transport norm (FDR eq. 9 and the
        distance of a point from a hyperplane); infinite where no rival's plane differs from the winner's.
        """
        rows = np.arange(len(scores))
        margins = self._share * (scores[rows, winners][:, None] - scores)
        norms = self._norms[winners]
        reach = np.full_like(margins, np.inf)
        np.divide(margins, norms, out=reach, where=norms > 0)
        radii: FloatArray = reach.min(axis=1)
        return radii
