r"""Graph attention (Velickovic et al. 2018, equations 1 to 5), its heads side by side in every layer.

    P = H_l W_l,   e_ab = leaky(P_a u_l + P_b v_l),   t_ab = softmax of e_ab over b in N(a) and a itself
    H_{l+1}[a] = elu(sum_b t_ab P_b + b_l)

leaky has slope .2 below 0. Of the ``hidden`` units each of M heads has its own ``hidden / M``, with its own u and v.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, ProblemError
from models.methods.local_sgd.objectives.graphs.layers import GraphLayers, Shapes, product
from models.methods.local_sgd.objectives.graphs.packing import Graphs

HEADS, LEAK = 4, 0.2


@dataclass(frozen=True)
class _Layer:
    """What one layer leaves: values before it and after it, P (N, M, A, h), t (N, M, A, A), and where e is above 0."""

    before: FloatArray
    after: FloatArray
    projected: FloatArray
    shares: FloatArray
    above: NDArray[np.bool_]


@dataclass(frozen=True)
class _Way:
    """Where a node is, (N, A, 1), and the layers."""

    there: NDArray[np.bool_]
    layers: list[_Layer]


@dataclass(frozen=True)
class Attention(GraphLayers):
    """W_l (inputs, hidden), u_l and v_l (hidden / M, M), b_l (hidden,) of each layer."""

    heads: int = HEADS

    def __post_init__(self) -> None:
        """Refuse units that cannot be dealt to the heads."""
        if self.hidden % self.heads:
            raise ProblemError(f"{self.hidden} hidden units cannot be dealt to {self.heads} heads of attention")

    def shapes(self) -> Shapes:
        """Shapes of the parameters."""
        shapes: Shapes = []
        for layer in range(self.layers):
            each = (self.hidden // self.heads, self.heads)
            shapes += [(self.hidden if layer else self.n_features, self.hidden), each, each, (self.hidden,)]
        return shapes

    def forward(self, weights: Sequence[FloatArray], graphs: Graphs) -> tuple[FloatArray, _Way]:
        """States and the way there."""
        states, layers, near = graphs.nodes, list[_Layer](), graphs.kinds[:, None] > 0
        way = _Way(graphs.there, layers)
        for inner, own, other, bias in zip(*(weights[k::4] for k in range(4)), strict=True):
            projected = self._by_head(states @ inner)
            scores = _scores(projected, own)[..., None] + _scores(projected, other)[..., None, :]
            shares = _softmax(np.where(scores > 0, scores, LEAK * scores), near)
            summed = _side_by_side(shares @ projected) + bias
            after = np.where(way.there, np.where(summed > 0, summed, np.expm1(np.minimum(summed, 0.0))), 0.0)
            layers.append(_Layer(states, after, projected, shares, scores > 0))
            states = after
        return states, way

    def back(self, weights: Sequence[FloatArray], way: _Way, slopes: FloatArray) -> list[FloatArray]:
        """Slopes in the parameters."""
        found = list[FloatArray]()
        for layer in reversed(range(self.layers)):
            inner, own, other, _ = weights[4 * layer : 4 * layer + 4]
            at = way.layers[layer]
            summed = np.where(way.there, slopes * np.where(at.after > 0, 1.0, at.after + 1.0), 0.0)
            by_head = self._by_head(summed)
            told = by_head @ at.projected.swapaxes(2, 3)
            scores = at.shares * (told - (at.shares * told).sum(axis=3, keepdims=True)) * np.where(at.above, 1.0, LEAK)
            of_own, of_other = scores.sum(axis=3), scores.sum(axis=2)
            projected = at.shares.swapaxes(2, 3) @ by_head
            projected += of_own[..., None] * own.T[:, None] + of_other[..., None] * other.T[:, None]
            flat = _side_by_side(projected)
            found[:0] = [
                product(at.before, flat), np.einsum("nmah,nma->hm", at.projected, of_own),
                np.einsum("nmah,nma->hm", at.projected, of_other), summed.sum(axis=(0, 1)),
            ]
            slopes = flat @ inner.T
        return found

    def _by_head(self, values: FloatArray) -> FloatArray:
        """(N, A, hidden) as (N, M, A, h)."""
        return np.asarray(values.reshape(*values.shape[:2], self.heads, -1).swapaxes(1, 2))


def _side_by_side(values: FloatArray) -> FloatArray:
    """(N, M, A, h) as (N, A, hidden)."""
    count, _, nodes, _ = values.shape
    return np.asarray(values.swapaxes(1, 2).reshape(count, nodes, -1))


def _scores(projected: FloatArray, vectors: FloatArray) -> FloatArray:
    """``P_a u`` of each head, (N, M, A)."""
    return np.asarray((projected @ vectors.T[:, :, None])[..., 0])


def _softmax(scores: FloatArray, near: NDArray[np.bool_]) -> FloatArray:
    """Shares over the last axis of the neighbours, 0 elsewhere; all 0 where no node is."""
    highest = np.where(near, scores, -np.inf).max(axis=3, keepdims=True)
    raised = np.where(near, np.exp(np.minimum(scores - np.where(np.isfinite(highest), highest, 0.0), 0.0)), 0.0)
    return np.asarray(raised / np.maximum(raised.sum(axis=3, keepdims=True), np.finfo(np.float64).tiny))
