r"""Graph convolution (Kipf and Welling 2017, equation 2).

    H_0 = X,   H_{l+1} = relu(S H_l W_l + b_l),   S = D^{-1/2} (E + I) D^{-1/2}

E is the adjacency of the nodes, whatever the kinds of their edges, and D the degrees with the node's own loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray
from models.methods.local_sgd.objectives.graphs.layers import GraphLayers, Shapes, product
from models.methods.local_sgd.objectives.graphs.packing import Graphs

Way = tuple[FloatArray, list[FloatArray]]
"""S (N, A, A), and the states before the first layer and after each."""


@dataclass(frozen=True)
class Convolution(GraphLayers):
    """W_l (inputs, hidden) and b_l (hidden,) of each layer."""

    def shapes(self) -> Shapes:
        """Shapes of the parameters."""
        shapes: Shapes = []
        for layer in range(self.layers):
            shapes += [(self.hidden if layer else self.n_features, self.hidden), (self.hidden,)]
        return shapes

    def forward(self, weights: Sequence[FloatArray], graphs: Graphs) -> tuple[FloatArray, Way]:
        """States and the way there."""
        spread, states, there = _spread(graphs), [graphs.nodes], graphs.there
        for inner, bias in zip(weights[::2], weights[1::2], strict=True):
            states.append(np.where(there, np.maximum(spread @ states[-1] @ inner + bias, 0.0), 0.0))
        return states[-1], (spread, states)

    def back(self, weights: Sequence[FloatArray], way: Way, slopes: FloatArray) -> list[FloatArray]:
        """Slopes in the parameters."""
        spread, states = way
        found = list[FloatArray]()
        for layer in reversed(range(self.layers)):
            slopes = slopes * (states[layer + 1] > 0)
            found[:0] = [product(spread @ states[layer], slopes), slopes.sum(axis=(0, 1))]
            if layer:
                slopes = spread @ (slopes @ weights[2 * layer].T)  # S is symmetric
        return found


def _spread(graphs: Graphs) -> FloatArray:
    joined = (graphs.kinds > 0).astype(np.float64)
    root = 1.0 / np.sqrt(np.maximum(joined.sum(axis=1), 1.0))
    return np.asarray(joined * root[:, :, None] * root[:, None, :])
