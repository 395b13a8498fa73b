"""Clients of the regressions of Table 1 and Figure 2: whole scaffolds each, noisy labels at half of them.

Groups that must stay together (the molecules of a scaffold) are dealt in a drawn order: a client is filled up to its
share of the rows before the next one begins. Each client's rows are split 8:1:1 into training, validation and test. At
half of the clients, drawn, each training target gets, with probability .3, normal noise of ``noise`` times the
deviation of all training targets; validation and test targets never do.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray
from models.methods.local_sgd.objectives.base import Rows
from models.methods.local_sgd.objectives.graphs.objective import GraphObjective, NetworkKind
from models.methods.local_sgd.objectives.graphs.packing import pack_graph
from tests.benchmarks.data import table_path
from tests.benchmarks.molecules import BONDS, Molecules, load_molecules

NOISY_CLIENTS, NOISY_LABELS = 0.5, 0.3
BINS = 40
"""Groups of Abalone: bins of the first principal component of its sizes, as alike within as scaffolds are."""


@dataclass(frozen=True)
class GraphData:
    """Packed graphs (N, P), targets (N,), the group of each, and the network that reads them."""

    graphs: FloatArray
    targets: FloatArray
    groups: tuple[str, ...]
    network: GraphObjective


@dataclass(frozen=True)
class GraphSplit:
    """Rows by client: training (with noise), validation, test; targets as ``(y - middle) / deviation``."""

    train: dict[str, Rows]
    validation: dict[str, Rows]
    test: dict[str, Rows]
    middle: float
    deviation: float


def load_graphs(name: str, network: NetworkKind = "gcn") -> GraphData:
    """``esol``, ``freesolv``, ``drawn``, or ``abalone``: a row as a graph of one node, which has no neighbours.

    Raises
    ------
    MissingDataError
        The table or file is not there.
    """
    if name == "abalone":
        return _abalone(network)
    found: Molecules = load_molecules(name)
    reader = GraphObjective(found.n_features, found.most_nodes, kind=network, edge_kinds=len(BONDS))
    return GraphData(found.graphs, found.targets, found.scaffolds, reader)


def split(data: GraphData, shares: Sequence[float], noise: float, seed: int) -> GraphSplit:
    """Deal to as many clients as there are ``shares``; every client has at least 10 rows, or ``ValueError``."""
    random = np.random.default_rng([seed, 31])
    parts: tuple[dict[str, Rows], ...] = ({}, {}, {})
    for client, own in enumerate(_dealt(data.groups, shares, random)):
        if len(own) < 10:
            raise ValueError(f"client {client} gets {len(own)} rows of {len(data.groups)}; it needs 10")
        order, tenth = random.permutation(own), len(own) // 10
        for part, chosen in zip(parts, np.split(order, [len(own) - 2 * tenth, len(own) - tenth]), strict=True):
            part[str(client)] = (data.graphs[chosen], data.targets[chosen])
    train, validation, test = parts
    pooled = np.concatenate([targets for _, targets in train.values()])
    middle, deviation = float(pooled.mean()), float(pooled.std())
    noisy = set(random.choice(len(shares), max(1, int(len(shares) * NOISY_CLIENTS)), replace=False).tolist())
    for name, (graphs, targets) in train.items():
        hit = random.random(targets.shape[0]) < (NOISY_LABELS if int(name) in noisy else 0.0)
        train[name] = (graphs, targets + hit * random.normal(0.0, noise * deviation, targets.shape[0]))
    scaled = [{name: (x, (y - middle) / deviation) for name, (x, y) in part.items()} for part in parts]
    return GraphSplit(scaled[0], scaled[1], scaled[2], middle, deviation)


def _dealt(groups: Sequence[str], shares: Sequence[float], random: np.random.Generator) -> list[list[int]]:
    members: dict[str, list[int]] = {}
    for row, group in enumerate(groups):
        members.setdefault(group, []).append(row)
    order = list(members)
    random.shuffle(order)
    dealt: list[list[int]] = [[] for _ in shares]
    ends = np.cumsum(shares) / np.sum(shares) * len(groups)
    given, client = 0, 0
    for group in order:
        dealt[client] += members[group]
        given += len(members[group])
        while client < len(shares) - 1 and given >= ends[client]:
            client += 1
    return dealt


def _abalone(network: NetworkKind) -> GraphData:
    with table_path("abalone").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    names = [name for name in lines[0] if name not in ("sex", "label")]
    sizes = np.array([[float(line[name]) for name in names] for line in lines])
    sizes = (sizes - sizes.mean(axis=0)) / sizes.std(axis=0)
    first = sizes @ np.linalg.svd(sizes, full_matrices=False)[2][0]
    groups = np.searchsorted(np.quantile(first, np.arange(1, BINS) / BINS), first)
    sexes = np.array([[float(line["sex"] == sex) for sex in ("F", "I", "M")] for line in lines])
    rows = np.hstack([sizes, sexes])
    graphs = np.array([pack_graph(row[None], [], 1) for row in rows])
    targets = np.array([float(line["label"]) for line in lines])
    return GraphData(graphs, targets, tuple(map(str, groups)), GraphObjective(rows.shape[1], 1, kind=network))
