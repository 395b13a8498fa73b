"""The separating planes of a version, one for each class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.evaluation.robustness_radius import robustness_radius
from models.multiclass import predict_scores
from services.contracts.model_version import ModelVersion


class Planes:
    r"""``score_c(x) = <w_c, z(x)> + b_c`` of scaled features x, shape (P,), for each of C classes; z is the lift.

    Two classes share one trained plane: the second class (the fault) has it, the first has its negative. More classes
    have one each, trained against the rest. Without a lift ``z(x) = x``.
    """

    def __init__(self, version: ModelVersion) -> None:
        self._heads = version.weights
        self._transport_norm = version.transport_norm
        self._lift = version.lift
        slopes = self._heads[:, :-1]
        self._slopes: FloatArray = np.vstack([-slopes, slopes]) if len(slopes) == 1 else slopes.copy()

    def scores(self, scaled: FloatArray) -> FloatArray:
        """Scores, shape (n, C), of scaled features, shape (n, P)."""
        scores = predict_scores(self._heads, scaled if self._lift is None else self._lift.apply(scaled))
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
