"""The smallest change of features that changes a diagnosis."""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray, ProblemError, TransportNorm
from models.features.lift import Lift, lead_over_steepness
from models.geometry.least_move import least_move
from models.geometry.norms import DUAL_NORM, vector_norm
from models.geometry.supports import BoxSupport, Support


def robustness_radius(
    weights: FloatArray,
    features: FloatArray,
    transport_norm: TransportNorm,
    lift: Lift | None = None,
    support: Support | None = None,
) -> FloatArray:
    r"""Smallest feature change that changes each diagnosis, (n,).

    One head: ``|<w, x> + b| / ||w||_*``. More: the least over rivals j of ``(s_k - s_j) / ||w_k - w_j||_*``, k being
    the predicted class. Where no change can flip the decision (equal planes, or none) the radius is infinite, unless
    the scores tie, in which case it is 0: the decision hangs on nothing.

    On a box the change stays inside it, so the answer is longer, and infinite where no point of the box is diagnosed
    otherwise (``models.geometry.least_move``). On a polytope it is the one without walls: a lower bound there.

    With a lift the planes lie in lifted features, and the answer is a lower bound of the smallest change of the
    features themselves (``Lift.least_move``): but for splines by the slopes of scores at the row
    and a bound on how they bend.

    Parameters
    ----------
    weights : (K, P + 1), the intercept last (0 without one). features : (n, P), as scaled for the model, not lifted.
    lift : None, or what is done to the features before the planes see them; P counts the lifted ones then.
    support : where features can lie at all; with a lift it is left aside.

    :class:`ProblemError` where planes and features do not fit.
    """
    seen = features if lift is None else lift.apply(features)
    if weights.ndim != 2 or seen.ndim != 2 or weights.shape[1] != seen.shape[1] + 1:
        raise ProblemError(f"weights must be (K, P + 1) and features (n, P), got {weights.shape} and {seen.shape}")
    planes, scores = weights[:, :-1], seen @ weights[:, :-1].T + weights[:, -1]

    def moves(slopes: FloatArray, rows: FloatArray, lead: FloatArray) -> FloatArray:
        """Lengths (n, R) of the least moves of rows (n, P) that lose the leads (n, R) of scores of slopes (R, K)."""
        if lift is not None:
            return lift.least_move(slopes, rows, lead, transport_norm)
        if isinstance(support, BoxSupport):
            columns = [_inside(one, rows, lead[:, r], support, transport_norm) for r, one in enumerate(slopes)]
            return np.stack(columns, axis=1)
        return lead_over_steepness(lead, vector_norm(slopes, DUAL_NORM[transport_norm])[None])

    # One head tells two classes: they have its plane and the opposite one, twice as far apart as it is from 0.
    halves = np.vstack([-planes, planes]) if len(planes) == 1 else None
    winner = (scores[:, 0] > 0).astype(np.intp) if halves is not None else scores.argmax(axis=1)
    radius = np.empty(len(features))
    for k in np.unique(winner):
        rows = winner == k
        if halves is not None:
            radius[rows] = moves(halves[[k]], features[rows], np.abs(scores[rows]))[:, 0]
            continue
        rivals = np.arange(len(planes)) != k
        lead = scores[rows][:, [k]] - scores[rows][:, rivals]
        radius[rows] = moves(planes[k] - planes[rivals], features[rows], lead).min(axis=1)
    return radius


def _inside(
    slope: FloatArray, features: FloatArray, lead: FloatArray, box: BoxSupport, norm: TransportNorm
) -> FloatArray:
    """Length (n,) of the shortest moves inside the box against the slope (P,) that lose the lead (n,)."""
    room = np.where(slope > 0, features - box.low, box.high - features)
    return least_move(np.broadcast_to(np.abs(slope), features.shape), np.maximum(room, 0.0), lead, norm)
