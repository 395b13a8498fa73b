"""A graph as one row of numbers, so that sites, batches and mixup need not know of graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, ProblemError


@dataclass(frozen=True)
class Graphs:
    """Graphs with at most A nodes: ``nodes`` (N, A, F), ``kinds`` (N, A, A).

    kinds[., a, b] is the kind of the edge between two nodes, from 1 on, 0 where there is none; kinds[., a, a] is 1
    where there is a node a. Both are filled with zeros.
    """

    nodes: FloatArray
    kinds: FloatArray

    @property
    def there(self) -> NDArray[np.bool_]:
        """Where a node is, (N, A, 1)."""
        return np.diagonal(self.kinds, axis1=1, axis2=2)[:, :, None] > 0


def pack_graph(
    nodes: FloatArray, edges: Sequence[tuple[int, int]], most_nodes: int, kinds: Sequence[int] | None = None
) -> FloatArray:
    """One row of ``most_nodes (F + most_nodes)`` numbers: features of the nodes (n, F), then the kinds of the edges.

    ``edges`` are pairs of different nodes, in either order; ``kinds`` theirs, from 1 on (None: 1 for all).
    ``ProblemError`` for more nodes than fit, an edge to a node that is not there, or a kind that is none.
    """
    count, n_features = nodes.shape
    if not 1 <= count <= most_nodes:
        raise ProblemError(f"a graph must have 1 to {most_nodes} nodes, got {count}")
    given = [1] * len(edges) if kinds is None else kinds
    if len(given) != len(edges) or min(given, default=1) < 1:
        raise ProblemError(f"each of the {len(edges)} edges needs a kind of 1 or more, got {list(given)}")
    joined = np.eye(count)
    for (one, other), kind in zip(edges, given, strict=True):
        if not (0 <= one < count and 0 <= other < count):
            raise ProblemError(f"an edge joins nodes {one} and {other}, but the graph has {count} nodes")
        if one == other:
            raise ProblemError(f"an edge joins node {one} to itself")
        joined[one, other] = joined[other, one] = kind
    padded, filled = np.zeros((most_nodes, n_features)), np.zeros((most_nodes, most_nodes))
    padded[:count], filled[:count, :count] = nodes, joined
    return np.concatenate([padded.ravel(), filled.ravel()])


def unpacked(packed: FloatArray, n_features: int, most_nodes: int) -> Graphs:
    """Graphs of packed rows (N, P)."""
    nodes, kinds = np.split(packed, [most_nodes * n_features], axis=1)
    return Graphs(nodes.reshape(-1, most_nodes, n_features), kinds.reshape(-1, most_nodes, most_nodes))
