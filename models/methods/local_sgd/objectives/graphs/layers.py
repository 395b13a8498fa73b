"""What turns the nodes of graphs into states that know their neighbours: shapes, values, slopes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.basics import FloatArray
from models.methods.local_sgd.objectives.graphs.packing import Graphs

Shapes = list[tuple[int, ...]]


@dataclass(frozen=True)
class GraphLayers(ABC):
    """From nodes (N, A, ``n_features``) to states (N, A, ``hidden``), by ``layers`` exchanges between neighbours."""

    n_features: int
    hidden: int
    layers: int

    @abstractmethod
    def shapes(self) -> Shapes:
        """Shapes of the parameters, in their order."""

    @abstractmethod
    def forward(self, weights: Sequence[FloatArray], graphs: Graphs) -> tuple[FloatArray, Any]:
        """States, 0 where no node is, and what :meth:`back` needs of the way there."""

    @abstractmethod
    def back(self, weights: Sequence[FloatArray], way: Any, slopes: FloatArray) -> list[FloatArray]:
        """Slopes of a loss in the parameters, in their order, from those in the states (N, A, hidden)."""


def product(values: FloatArray, slopes: FloatArray) -> FloatArray:
    """Slopes in W of ``values @ W`` with slopes behind it: both (N, A, .), summed over all nodes of all graphs."""
    return np.asarray(np.tensordot(values, slopes, ((0, 1), (0, 1))))
