"""The smallest change of features that changes a diagnosis."""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray, ProblemError, TransportNorm
from models.features.lift import FourierLift
from models.geometry.least_move import least_move
from models.geometry.norms import DUAL_NORM, vector_norm
from models.geometry.supports import BoxSupport, Support


def robustness_radius(
    weights: FloatArray,
    features: FloatArray,
    transport_norm: TransportNorm,
    lift: FourierLift | None = None,
    support: Support | None = None,
) -> FloatArray:
    r"""Smallest feature change that changes each diagnosis, (n,).

    One head: ``|<w, x> + b| / ||w||_*``. More: the least over rivals j of ``(s_k - s_j) / ||w_k - w_j||_*``, k being
    the predicted class. Where no change can flip the decision (equal planes, or none) the radius is infinite, unless
    the scores tie, in which case it is 0: the decision hangs on nothing.

    On a box the change stays inside it, so the answer is longer, and infinite where no point of the box is diagnosed
    otherwise (``models.geometry.least_move``). On a polytope it is the one without walls: a lower bound there.

    With a lift the planes lie in lifted features, and the answer is a lower bound of the smallest change of the
    features themselves: the norms of the planes are replaced by bounds on how steep the scores can be anywhere.

    Parameters
    ----------
    weights : (K, P + 1), the intercept last (0 without one). features : (n, P), as scaled for the model, not lifted.
    lift : None, or what is done to the features before the planes see them; P counts the lifted ones then.
    support : where features can lie at all; with a lift it is left aside.
    """
    if lift is not None:
        features = lift.apply(features)
    if weights.ndim != 2 or features.ndim != 2 or weights.shape[1] != features.shape[1] + 1:
        raise ProblemError(f"weights must be (K, P + 1) and features (n, P), got {weights.shape} and {features.shape}")
    planes, scores = weights[:, :-1], features @ weights[:, :-1].T + weights[:, -1]
    dual = DUAL_NORM[transport_norm]

    def steepness(slopes: FloatArray) -> FloatArray:
        return vector_norm(slopes, dual) if lift is None else lift.steepness(slopes, transport_norm)

    box = support if isinstance(support, BoxSupport) and lift is None else None
    if weights.shape[0] == 1:
        if box is not None:
            return _inside(np.sign(scores) * planes, features, np.abs(scores[:, 0]), box, transport_norm)
        return _ratio(np.abs(scores), steepness(planes)[None])[:, 0]
    winner = scores.argmax(axis=1)
    lead = scores[np.arange(scores.shape[0]), winner][:, None] - scores
    if box is None:
        radius = _ratio(lead, steepness(planes[:, None] - planes[None])[winner])
    else:
        towards = [planes[winner] - rival for rival in planes]
        columns = [_inside(slope, features, lead[:, j], box, transport_norm) for j, slope in enumerate(towards)]
        radius = np.stack(columns, axis=1)
    radius[np.arange(radius.shape[0]), winner] = np.inf
    return np.asarray(radius.min(axis=1))


def _ratio(lead: FloatArray, norm: FloatArray) -> FloatArray:
    lead, norm = np.broadcast_arrays(lead, norm)
    still = np.where(lead > 0, np.inf, 0.0)
    return np.divide(lead, norm, out=still, where=norm > 0)


def _inside(
    slope: FloatArray, features: FloatArray, lead: FloatArray, box: BoxSupport, norm: TransportNorm
) -> FloatArray:
    """Length (n,) of the shortest moves inside the box against slopes (n, P) that lose the lead (n,)."""
    room = np.where(slope > 0, features - box.low, box.high - features)
    return least_move(np.abs(slope), np.maximum(room, 0.0), lead, norm)
