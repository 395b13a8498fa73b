r"""The worst mixture of heights as rows of a cone program (the dual that DRFL Theorem 4.3 and Proposition A.1 take).

For heights h (G,) of the sites, site weights a and ``Q = {q in the simplex : ||q - a||_p <= radius}``,

    max_{q in Q} <q, h> = min_{t, h' >= h} <a, h'> + radius ||h' - t 1||_{p*},

so a program that may raise its heights anyway needs a few columns more, and the multipliers of what holds a height up
sum to the worst q. The dual norm is two columns for p = 1 (its value is half of highest minus lowest) and a
second-order cone for p = 2. For p = inf every site has a least and a most weight, and what is between goes to the
highest: ``min_t <least, h> + (1 - sum least) t + sum_g (most_g - least_g) max(h_g - t, 0)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray
from models.site_ambiguity.ball import MixtureBall


@dataclass(frozen=True)
class MixtureRows:
    """Columns are the G heights, then what is added: ``cost`` (G + E,), ``rows`` (R, G + E) at or below 0.

    ``cone`` (C, G + E): rows of a second-order cone with limits 0, none where C = 0. ``start`` (E,): values of the
    added columns that are inside for the heights that were given.
    """

    cost: FloatArray
    rows: FloatArray
    cone: FloatArray
    start: FloatArray


def mixture_rows(centre: FloatArray, ball: MixtureBall, heights: FloatArray) -> MixtureRows:
    """Rows whose least cost is the worst mixture of the heights; ``heights`` (G,) are those of the start."""
    count = centre.shape[0]
    none, flat, each = np.zeros((0, count)), np.zeros(count), np.eye(count)
    if ball.radius == 0 or count == 1:
        return MixtureRows(centre, none, none, np.zeros(0))
    middle = float(heights.mean())
    if ball.covers_simplex(centre):
        top = np.array([float(heights.max()) + 1.0])
        return MixtureRows(np.append(flat, 1.0), _beside(each, -np.ones((count, 1))), _beside(none, 1), top)
    if ball.norm == "l1":
        bound = np.kron(np.eye(2), np.ones((count, 1))) * np.array([-1.0, 1.0])
        cost = np.append(centre, [ball.radius / 2, -ball.radius / 2])
        start = np.array([float(heights.max()) + 1.0, float(heights.min()) - 1.0])
        return MixtureRows(cost, _beside(np.vstack([each, -each]), bound), _beside(none, 2), start)
    if ball.norm == "linf":
        least, most = np.maximum(centre - ball.radius, 0.0), np.minimum(centre + ball.radius, 1.0)
        above = _beside(_beside(each, -np.ones((count, 1))), -each)
        positive = _beside(np.zeros((count, count + 1)), -each)
        cost = np.concatenate([least, [float((centre - least).sum())], most - least])
        start = np.append(middle, np.maximum(heights - middle, 0.0) + 1.0)
        return MixtureRows(cost, np.vstack([above, positive]), _beside(none, count + 1), start)
    head = np.append(np.zeros(count + 1), -1.0)
    tail = _beside(_beside(-each, np.ones((count, 1))), 1)
    start = np.array([middle, float(np.linalg.norm(heights - middle)) + 1.0])
    return MixtureRows(np.concatenate([centre, [0.0, ball.radius]]), _beside(none, 2), np.vstack([head, tail]), start)


def _beside(left: FloatArray, right: FloatArray | int) -> FloatArray:
    """Columns side by side; a number stands for so many of zeros."""
    added = np.zeros((left.shape[0], right)) if isinstance(right, int) else right
    return np.hstack([left, added])
