r"""What a network's diagnosis hangs on: a lower bound of the move that changes it, and what each feature adds to it.

**Radius.** Between two classes the lead is ``d(x) = <v, relu(U x + b)> + const`` with ``v = V_k - V_l``. Wherever it
has a gradient that is ``sum_j v_j 1[unit j is lit] U_j``, so feature p enters it with at most

    B_p = max(sum_j (v_j U_jp)_+, sum_j (v_j U_jp)_-),

and d changes by ``||B||_*`` at most over a unit of the transport norm (a dual norm grows with the absolute entries); in
l2 by ``||v||_2 ||U||_2`` too. No move shorter than ``d(x) / bound`` changes the class. It is no exact radius: a bound.

**Shares.** Integrated gradients from the middle of the ranges: ``(x_p - 1/2) int_0^1 d_p s_k(m + t (x - m)) dt`` by
64 midpoints. Over the features they sum to ``s_k(x) - s_k(m)``, but for the rule's error.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, TransportNorm
from models.features.lift import lead_over_steepness
from models.geometry.norms import DUAL_NORM, vector_norm
from models.methods.local_sgd.objectives.network import NetworkObjective

_STEPS = 64  # of the path, each with one pass through the network
_MIDDLE = 0.5  # of the ranges, which are 0 to 1 where a network sees them


def network_radius(
    network: NetworkObjective, weights: FloatArray, features: FloatArray, transport_norm: TransportNorm
) -> FloatArray:
    """Lower bound (n,) of the smallest change of features (n, P) that changes the class, at parameters (D,)."""
    inner, _, outer, _ = network.layers(weights, features.shape[1])
    scores = network.scores(weights, features)
    bounds = steepness(inner, outer[:, None, :] - outer[None, :, :], transport_norm)
    winner = scores.argmax(axis=1)
    rows = np.arange(len(scores))
    lead = scores[rows, winner][:, None] - scores
    reach = lead_over_steepness(lead, bounds[winner])
    reach[rows, winner] = np.inf
    return np.asarray(reach.min(axis=1))


def steepness(inner: FloatArray, outer: FloatArray, transport_norm: TransportNorm) -> FloatArray:
    """Bound (..) on the dual norm of the gradient of ``<v, relu(U x + b)>``, U (hidden, P) and v (.., hidden)."""
    up = np.maximum(outer, 0.0) @ np.maximum(inner, 0.0) + np.maximum(-outer, 0.0) @ np.maximum(-inner, 0.0)
    down = np.maximum(outer, 0.0) @ np.maximum(-inner, 0.0) + np.maximum(-outer, 0.0) @ np.maximum(inner, 0.0)
    found = vector_norm(np.maximum(up, down), DUAL_NORM[transport_norm])
    if transport_norm != "l2":
        return found
    return np.minimum(found, vector_norm(outer, "l2") * float(np.linalg.norm(inner, 2)))


def network_shares(
    network: NetworkObjective, weights: FloatArray, features: FloatArray, chosen: NDArray[np.intp]
) -> FloatArray:
    """What each feature adds to each row's score of its ``chosen`` class (n,), from the middle of its range: (n, P)."""
    inner, bias, outer, _ = network.layers(weights, features.shape[1])
    away, along = features - _MIDDLE, outer[chosen]
    lit = np.zeros((len(features), len(bias)))
    for step in range(_STEPS):
        lit += (_MIDDLE + (step + 0.5) / _STEPS * away) @ inner.T + bias > 0
    return np.asarray(away * ((along * lit / _STEPS) @ inner))
