"""Transport norms, their duals, and where a norm is steepest."""

from __future__ import annotations

from typing import Final

import numpy as np

from models.basics import FloatArray, TransportNorm

DUAL_NORM: Final[dict[TransportNorm, TransportNorm]] = {"l1": "linf", "l2": "l2", "linf": "l1"}
"""``||w||_*`` of the weights for the transport norm ``||x - x'||`` of the features."""

_LEAST_SQUARE: Final = 1e-280
"""Sums of squares below this one lose digits, or are zero."""


def vector_norm(vectors: FloatArray, norm: TransportNorm) -> FloatArray:
    """Norm of each vector along the last axis."""
    if norm == "l1":
        return np.asarray(np.abs(vectors).sum(axis=-1))
    if norm == "linf":
        return np.asarray(np.abs(vectors).max(axis=-1, initial=0.0))
    return np.asarray(np.sqrt(np.einsum("...p,...p->...", vectors, vectors)))


def dual_norm(weights: FloatArray, transport_norm: TransportNorm) -> float:
    r"""``||w||_* = max {<w, q> : ||q|| <= 1}``: the loss that one unit of transport can add at most."""
    return float(vector_norm(weights, DUAL_NORM[transport_norm]))


def dual_norms(weights: FloatArray, transport_norm: TransportNorm) -> FloatArray:
    """:func:`dual_norm` of each vector along the last axis."""
    return vector_norm(weights, DUAL_NORM[transport_norm])


def steepest_move(weights: FloatArray, transport_norm: TransportNorm) -> FloatArray:
    r"""Direction ``q`` with ``||q|| <= 1`` and ``<w, q> = ||w||_*``; also a subgradient of ``||.||_*`` at ``w``.

    Zero where the weights are zero: there every unit vector would do, and zero is in the subdifferential too.
    """
    if transport_norm == "linf":
        return np.sign(weights)
    move = np.zeros_like(weights)
    if not weights.any():
        return move
    if transport_norm == "l1":
        largest = int(np.argmax(np.abs(weights)))
        move[largest] = np.sign(weights[largest])
        return move
    squared = weights @ weights
    if squared < _LEAST_SQUARE:
        weights = weights / np.abs(weights).max()
        squared = weights @ weights
    return np.asarray(weights / np.sqrt(squared))
