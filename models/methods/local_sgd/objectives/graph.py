r"""Graph convolutional network for a target of small graphs (molecules), with mixup of the graphs' embeddings.

    H_0 = X,   H_{l+1} = relu(S H_l W_l + b_l),   g = (1 / A) sum_a H_L[a],   f = relu(g U + c) v + d

S = D^{-1/2} (E + I) D^{-1/2} (Kipf and Welling), E the adjacency of the nodes, A the most nodes that a graph may have.
DRFLM's mixup for graphs (section 2.2) mixes g: a mixture of two adjacencies is no graph.

A graph is one row, packed by :func:`pack_graph`, so that sites, batches and mixup need not know of graphs. Such models
train in one process (:func:`models.simulation.local_training.train_local`); no plan makes one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray, ProblemError
from models.methods.local_sgd.objectives.base import Objective, Rows


def pack_graph(nodes: FloatArray, edges: Sequence[tuple[int, int]], most_nodes: int) -> FloatArray:
    """One row of ``most_nodes (F + most_nodes)`` numbers: features of the nodes (n, F), then S, both filled with zeros.

    ``edges`` are pairs of nodes, in either order; ``ProblemError`` for more nodes than fit, or for an edge to a node
    that is not there.
    """
    count, n_features = nodes.shape
    if not 1 <= count <= most_nodes:
        raise ProblemError(f"a graph must have 1 to {most_nodes} nodes, got {count}")
    adjacency = np.eye(count)
    for one, other in edges:
        if not (0 <= one < count and 0 <= other < count):
            raise ProblemError(f"an edge joins nodes {one} and {other}, but the graph has {count} nodes")
        adjacency[one, other] = adjacency[other, one] = 1.0
    root = 1.0 / np.sqrt(adjacency.sum(axis=0))
    padded, spread = np.zeros((most_nodes, n_features)), np.zeros((most_nodes, most_nodes))
    padded[:count], spread[:count, :count] = nodes, adjacency * root * root[:, None]
    return np.concatenate([padded.ravel(), spread.ravel()])


@dataclass(frozen=True)
class GraphObjective(Objective):
    """Mean of ``(f(graph) - y)^2 / 2`` over packed graphs (N, P) with targets y (N,).

    ``n_features`` F of a node, ``most_nodes`` A of a graph, ``hidden`` units of every layer, ``layers`` of convolution.
    """

    n_features: int
    most_nodes: int
    hidden: int = 32
    layers: int = 2
    smooth: bool = True

    def __post_init__(self) -> None:
        """Refuse a network that is none."""
        if min(self.n_features, self.most_nodes, self.hidden, self.layers) < 1:
            raise ProblemError("a graph network needs a feature, a node, a hidden unit and a layer, or more of each")

    def size(self, n_features: int) -> int:
        """D; ``n_features`` is the width P of a packed graph."""
        expected = self.most_nodes * (self.n_features + self.most_nodes)
        if n_features != expected:
            raise ProblemError(f"a packed graph has {expected} numbers, got {n_features}")
        return sum(int(np.prod(shape)) for shape in self._shapes())

    def start(self, n_features: int, seed: int) -> FloatArray:
        """Uniform within ``sqrt(6 / inputs)`` of each layer, as relu wants it; biases 0."""
        self.size(n_features)
        random = np.random.default_rng(seed)
        parts = []
        for shape in self._shapes():
            limit = np.sqrt(6.0 / shape[0]) if len(shape) == 2 else 0.0
            parts.append(random.uniform(-limit, limit, shape).ravel())
        return np.concatenate(parts)

    def loss_and_gradient(
        self, weights: FloatArray, features: FloatArray, labels: FloatArray, random: np.random.Generator | None = None
    ) -> tuple[float, FloatArray]:
        """Mean loss and gradient (D,); nothing is drawn."""
        layers = self._split(weights)
        spread, states = self._states(layers, features)
        loss, head, back = _head(layers[-4:], self._pooled(states), labels)
        return loss, np.concatenate([*self._back(layers, spread, states, back), *head])

    def mixed_loss_and_gradient(
        self, weights: FloatArray, rows: Rows, others: Rows, ratio: float, random: np.random.Generator | None = None
    ) -> tuple[float, FloatArray]:
        """Mean loss and gradient (D,) at ``ratio g_i + (1 - ratio) g'_i`` against the targets mixed alike."""
        layers = self._split(weights)
        (spread, states), (other_spread, other_states) = (self._states(layers, each[0]) for each in (rows, others))
        mixed = ratio * self._pooled(states) + (1 - ratio) * self._pooled(other_states)
        loss, head, back = _head(layers[-4:], mixed, ratio * rows[1] + (1 - ratio) * others[1])
        own = self._back(layers, spread, states, ratio * back)
        other = self._back(layers, other_spread, other_states, (1 - ratio) * back)
        return loss, np.concatenate([*(a + b for a, b in zip(own, other, strict=True)), *head])

    def embeddings(self, weights: FloatArray, features: FloatArray) -> FloatArray:
        """Embeddings g of packed graphs, (N, hidden)."""
        return self._pooled(self._states(self._split(weights), features)[1])

    def predictions(self, weights: FloatArray, features: FloatArray) -> FloatArray:
        """Predictions f of packed graphs, (N,)."""
        return _forward(self._split(weights)[-4:], self.embeddings(weights, features))[1]

    def _shapes(self) -> list[tuple[int, ...]]:
        shapes = list[tuple[int, ...]]()
        for layer in range(self.layers):
            shapes += [(self.hidden if layer else self.n_features, self.hidden), (self.hidden,)]
        return [*shapes, (self.hidden, self.hidden), (self.hidden,), (self.hidden, 1), (1,)]

    def _split(self, weights: FloatArray) -> list[FloatArray]:
        shapes = self._shapes()
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        if weights.shape != (ends[-1],):
            raise ProblemError(f"the network has {ends[-1]} parameters, got shape {weights.shape}")
        return [part.reshape(shape) for part, shape in zip(np.split(weights, ends[:-1]), shapes, strict=True)]

    def _states(self, layers: list[FloatArray], packed: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """S (N, A, A), and the nodes' states before the first layer and after each, (N, A, .); 0 where no node is."""
        count, split = packed.shape[0], self.most_nodes * self.n_features
        spread = packed[:, split:].reshape(count, self.most_nodes, self.most_nodes)
        states = [packed[:, :split].reshape(count, self.most_nodes, self.n_features)]
        there = np.diagonal(spread, axis1=1, axis2=2)[:, :, None] > 0
        for layer in range(self.layers):
            inner = (spread @ states[-1]) @ layers[2 * layer] + layers[2 * layer + 1]
            states.append(np.where(there, np.maximum(inner, 0.0), 0.0))
        return spread, states

    def _pooled(self, states: list[FloatArray]) -> FloatArray:
        return np.asarray(states[-1].sum(axis=1) / self.most_nodes)

    def _back(
        self, layers: list[FloatArray], spread: FloatArray, states: list[FloatArray], back: FloatArray
    ) -> list[FloatArray]:
        """Gradients of the layers of convolution, flat, from the slopes (N, hidden) of the loss in the embeddings."""
        slopes = np.broadcast_to(back[:, None, :] / self.most_nodes, states[-1].shape)
        found = list[FloatArray]()
        for layer in reversed(range(self.layers)):
            slopes = slopes * (states[layer + 1] > 0)
            gathered = spread @ states[layer]
            found[:0] = [np.tensordot(gathered, slopes, ((0, 1), (0, 1))).ravel(), slopes.sum(axis=(0, 1))]
            if layer:
                slopes = spread @ (slopes @ layers[2 * layer].T)  # S is symmetric
        return found


def _forward(head: list[FloatArray], embeddings: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Hidden units of the head (N, hidden) and what it predicts (N,)."""
    inner, bias, outer, outer_bias = head
    hidden = np.maximum(embeddings @ inner + bias, 0.0)
    return hidden, np.asarray((hidden @ outer)[:, 0] + outer_bias[0])


def _head(
    head: list[FloatArray], embeddings: FloatArray, targets: FloatArray
) -> tuple[float, list[FloatArray], FloatArray]:
    """Mean loss, its gradients in the head's parameters, flat, and its slopes in the embeddings (N, hidden)."""
    inner, _, outer, _ = head
    hidden, predicted = _forward(head, embeddings)
    errors = predicted - targets
    slopes = errors / errors.shape[0]
    back = np.outer(slopes, outer[:, 0]) * (hidden > 0)
    gradients = [(embeddings.T @ back).ravel(), back.sum(axis=0), hidden.T @ slopes, np.array([slopes.sum()])]
    return float(errors @ errors) / (2 * errors.shape[0]), gradients, np.asarray(back @ inner.T)
