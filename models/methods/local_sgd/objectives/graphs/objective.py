r"""Graph networks for a target of small graphs (molecules), with mixup of the graphs' embeddings.

    g = (1 / A) sum_a H[a],   f = relu(g U + c) v + d

H are the states of the nodes behind graph convolutions, graph attention or message passing, A the most nodes that a
graph may have. DRFLM's mixup for graphs (section 2.2) mixes g: a mixture of two adjacencies is no graph.

Such models train in one process (:func:`models.simulation.local_training.train_local`); no plan makes one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from models.basics import FloatArray, ProblemError
from models.methods.local_sgd.objectives.base import Objective, Rows
from models.methods.local_sgd.objectives.graphs.attention import Attention
from models.methods.local_sgd.objectives.graphs.convolution import Convolution
from models.methods.local_sgd.objectives.graphs.layers import GraphLayers, Shapes
from models.methods.local_sgd.objectives.graphs.messages import Messages
from models.methods.local_sgd.objectives.graphs.packing import unpacked

NetworkKind = Literal["gcn", "gat", "mpnn"]


@dataclass(frozen=True)
class GraphObjective(Objective):
    """Mean of ``(f(graph) - y)^2 / 2`` over packed graphs (N, P) with targets y (N,).

    ``n_features`` F of a node, ``most_nodes`` A of a graph, ``hidden`` units of every layer, ``layers`` of convolution
    or attention, or steps of message passing; ``edge_kinds`` that messages tell apart.
    """

    n_features: int
    most_nodes: int
    hidden: int = 32
    layers: int = 2
    smooth: bool = True
    kind: NetworkKind = "gcn"
    edge_kinds: int = 1

    def __post_init__(self) -> None:
        """Refuse a network that is none."""
        if min(self.n_features, self.most_nodes, self.hidden, self.layers, self.edge_kinds) < 1:
            raise ProblemError("a graph network needs a feature, a node, a hidden unit and a layer, or more of each")
        _ = self._body  # which may have terms of its own

    @cached_property
    def _body(self) -> GraphLayers:
        size = (self.n_features, self.hidden, self.layers)
        if self.kind == "gat":
            return Attention(*size)
        return Messages(*size, self.edge_kinds) if self.kind == "mpnn" else Convolution(*size)

    def size(self, n_features: int) -> int:
        """D; ``n_features`` is the width P of a packed graph. :class:`ProblemError` for another width."""
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
        pooled, way = self._pooled(layers, features)
        loss, head, back = _head(layers[-4:], pooled, labels)
        return loss, _flat([*self._back(layers, way, back), *head])

    def mixed_loss_and_gradient(
        self, weights: FloatArray, rows: Rows, others: Rows, ratio: float, random: np.random.Generator | None = None
    ) -> tuple[float, FloatArray]:
        """Mean loss and gradient (D,) at ``ratio g_i + (1 - ratio) g'_i`` against the targets mixed alike."""
        layers = self._split(weights)
        (pooled, way), (other_pooled, other_way) = (self._pooled(layers, each[0]) for each in (rows, others))
        mixed = ratio * pooled + (1 - ratio) * other_pooled
        loss, head, back = _head(layers[-4:], mixed, ratio * rows[1] + (1 - ratio) * others[1])
        own = self._back(layers, way, ratio * back)
        other = self._back(layers, other_way, (1 - ratio) * back)
        return loss, _flat([*(a + b for a, b in zip(own, other, strict=True)), *head])

    def embeddings(self, weights: FloatArray, features: FloatArray) -> FloatArray:
        """Embeddings g of packed graphs, (N, hidden)."""
        return self._pooled(self._split(weights), features)[0]

    def predictions(self, weights: FloatArray, features: FloatArray) -> FloatArray:
        """Predictions f of packed graphs, (N,)."""
        return _forward(self._split(weights)[-4:], self.embeddings(weights, features))[1]

    def _shapes(self) -> Shapes:
        return [*self._body.shapes(), (self.hidden, self.hidden), (self.hidden,), (self.hidden, 1), (1,)]

    def _split(self, weights: FloatArray) -> list[FloatArray]:
        shapes = self._shapes()
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        if weights.shape != (ends[-1],):
            raise ProblemError(f"the network has {ends[-1]} parameters, got shape {weights.shape}")
        return [part.reshape(shape) for part, shape in zip(np.split(weights, ends[:-1]), shapes, strict=True)]

    def _pooled(self, layers: list[FloatArray], packed: FloatArray) -> tuple[FloatArray, Any]:
        """Embeddings, and the way there."""
        states, way = self._body.forward(layers[:-4], unpacked(packed, self.n_features, self.most_nodes))
        return np.asarray(states.sum(axis=1) / self.most_nodes), way

    def _back(self, layers: list[FloatArray], way: Any, back: FloatArray) -> list[FloatArray]:
        """Gradients below the head from the slopes (N, hidden) of the loss in the embeddings."""
        to_nodes = (back.shape[0], self.most_nodes, self.hidden)
        slopes = np.broadcast_to(back[:, None, :] / self.most_nodes, to_nodes)
        return self._body.back(layers[:-4], way, slopes)


def _flat(gradients: list[FloatArray]) -> FloatArray:
    return np.concatenate([each.ravel() for each in gradients])


def _forward(head: list[FloatArray], embeddings: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Hidden units of the head (N, hidden) and what it predicts (N,)."""
    inner, bias, outer, outer_bias = head
    hidden = np.maximum(embeddings @ inner + bias, 0.0)
    return hidden, np.asarray((hidden @ outer)[:, 0] + outer_bias[0])


def _head(
    head: list[FloatArray], embeddings: FloatArray, targets: FloatArray
) -> tuple[float, list[FloatArray], FloatArray]:
    """Mean loss, its gradients in the head's parameters, and its slopes in the embeddings (N, hidden)."""
    inner, _, outer, _ = head
    hidden, predicted = _forward(head, embeddings)
    errors = predicted - targets
    slopes = errors / errors.shape[0]
    back = np.outer(slopes, outer[:, 0]) * (hidden > 0)
    gradients = [embeddings.T @ back, back.sum(axis=0), hidden.T @ slopes, np.array([slopes.sum()])]
    return float(errors @ errors) / (2 * errors.shape[0]), gradients, np.asarray(back @ inner.T)
