r"""Message passing (Gilmer et al. 2017): messages by the kind of the edge, states updated by a gated recurrent unit.

    H_0 = relu(X W + b),   M_t = sum_k E_k H_t K_k,   H_{t+1} = GRU(H_t, M_t)
    z = sigma(M W_z + H U_z + b_z),   r = sigma(M W_r + H U_r + b_r),   n = tanh(M W_n + (r H) U_n + b_n)
    GRU(H, M) = (1 - z) H + z n

E_k is the adjacency of the edges of kind k, of which there is one matrix K_k each (their section 2: messages by the
label of an edge). All steps t share the parameters. Read out by the mean, which mixup mixes, and not by set2set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.methods.local_sgd.objectives.graphs.layers import GraphLayers, Shapes, product
from models.methods.local_sgd.objectives.graphs.packing import Graphs


@dataclass(frozen=True)
class _Step:
    """What one step leaves: H (N, A, h) before it, E_k H of each kind, M, the gates z and r, and n."""

    before: FloatArray
    gathered: list[FloatArray]
    message: FloatArray
    update: FloatArray
    reset: FloatArray
    candidate: FloatArray


@dataclass(frozen=True)
class _Way:
    graphs: Graphs
    joined: list[FloatArray]
    steps: list[_Step]


@dataclass(frozen=True)
class Messages(GraphLayers):
    """W (F, h), b (h,), K_k (h, h) of each of ``edge_kinds``, then W and U (h, 3 h) and b (3 h,) of z, r and n."""

    edge_kinds: int = 1

    def shapes(self) -> Shapes:
        """Shapes of the parameters."""
        own = self.hidden
        gates: Shapes = [(own, 3 * own), (own, 3 * own), (3 * own,)]
        return [(self.n_features, own), (own,), *[(own, own)] * self.edge_kinds, *gates]

    def forward(self, weights: Sequence[FloatArray], graphs: Graphs) -> tuple[FloatArray, _Way]:
        """States and the steps on the way there."""
        (first, bias), by_kind, (into, along, gates) = weights[:2], weights[2:-3], weights[-3:]
        there, own = graphs.there, self.hidden
        joined = [(graphs.kinds == kind + 1).astype(np.float64) for kind in range(self.edge_kinds)]
        for each in joined:
            np.einsum("naa->na", each)[:] = 0.0  # a node's own mark is no edge
        state, steps = np.where(there, np.maximum(graphs.nodes @ first + bias, 0.0), 0.0), list[_Step]()
        for _ in range(self.layers):
            gathered = [each @ state for each in joined]
            message = np.sum([got @ kind for got, kind in zip(gathered, by_kind, strict=True)], axis=0)
            told = message @ into + gates
            opened = _sigmoid(told[..., : 2 * own] + state @ along[:, : 2 * own])
            update, reset = opened[..., :own], opened[..., own:]
            candidate = np.tanh(told[..., 2 * own :] + (reset * state) @ along[:, 2 * own :])
            steps.append(_Step(state, gathered, message, update, reset, candidate))
            state = np.where(there, (1.0 - update) * state + update * candidate, 0.0)
        return state, _Way(graphs, joined, steps)

    def back(self, weights: Sequence[FloatArray], way: _Way, slopes: FloatArray) -> list[FloatArray]:
        """Slopes in the parameters."""
        by_kind, (into, along, _), own = weights[2:-3], weights[-3:], self.hidden
        found, there = [np.zeros_like(each) for each in weights], way.graphs.there
        for step in reversed(way.steps):
            slopes = np.where(there, slopes, 0.0)
            inner = slopes * step.update * (1.0 - step.candidate**2)
            by_reset = inner @ along[:, 2 * own :].T
            opened = np.concatenate(
                [
                    slopes * (step.candidate - step.before) * step.update * (1.0 - step.update),
                    by_reset * step.before * step.reset * (1.0 - step.reset),
                ],
                axis=2,
            )
            told = np.concatenate([opened, inner], axis=2)
            message = told @ into.T
            found[-3] += product(step.message, told)
            found[-2][:, : 2 * own] += product(step.before, opened)
            found[-2][:, 2 * own :] += product(step.reset * step.before, inner)
            found[-1] += told.sum(axis=(0, 1))
            slopes = slopes * (1.0 - step.update) + by_reset * step.reset + opened @ along[:, : 2 * own].T
            for k, (edges, got) in enumerate(zip(way.joined, step.gathered, strict=True)):
                found[2 + k] += product(got, message)
                slopes = slopes + edges @ (message @ by_kind[k].T)  # E_k is symmetric
        slopes = slopes * (way.steps[0].before > 0)
        found[0], found[1] = product(way.graphs.nodes, slopes), slopes.sum(axis=(0, 1))
        return found


def _sigmoid(values: FloatArray) -> NDArray[np.float64]:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * values)))
