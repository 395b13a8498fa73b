"""Recorded traffic: a simulated run on a public table, every vector that a site sent, and its own account of it."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from models.basics import Arrays, FloatArray
from models.methods.catalogue import get_method
from models.methods.protocol import SiteHalf
from models.methods.row_account import RowAccount, accounted_answer
from models.problem import RobustSpec, SiteProblem
from models.simulation.federation import train

VECTORS = ("slope", "minorant_slope", "local_point")
"""Arrays of an answer that are sums over rows but for what is known without them."""


@dataclass
class Sent:
    """What one site sent: vectors by name, each (M, D), and the accounts of its answers."""

    problem: SiteProblem
    vectors: dict[str, list[FloatArray]] = field(default_factory=dict)
    accounts: list[RowAccount] = field(default_factory=list)

    @property
    def rows(self) -> FloatArray:
        """Rows (N, D) as they stand in a slope: the intercept's 1 last."""
        return np.column_stack([self.problem.features, np.ones(self.problem.labels.shape[0])])

    def all_vectors(self) -> FloatArray:
        """Slopes of all kinds, (M, D)."""
        return np.array([each for name in ("slope", "minorant_slope") for each in self.vectors.get(name, [])])


@dataclass(frozen=True)
class Recorder:
    """A site half that writes down what passes."""

    half: SiteHalf
    sent: Mapping[int, Sent]

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """As the half answers."""
        found = accounted_answer(self.half, problem, message, parameters)
        site = self.sent[id(problem.features)]
        for name in VECTORS:
            if name in found.arrays:
                site.vectors.setdefault(name, []).append(found.arrays[name])
        site.accounts.append(found.account)
        return found.arrays


def read_table(path: Path) -> tuple[FloatArray, FloatArray]:
    """Features (N, P) scaled to [0, 1], and labels (N,): the most frequent class against the rest."""
    with path.open(newline="") as file:
        header, *lines = csv.reader(file)
    if header[-1] != "label":
        raise ValueError(f"{path.name}: the last column must be 'label', it is {header[-1]!r}")
    features = np.array([[float(cell) for cell in line[:-1]] for line in lines])
    classes = [line[-1] for line in lines]
    first = Counter(classes).most_common(1)[0][0]
    low, span = features.min(axis=0), np.ptp(features, axis=0)
    return (features - low) / np.where(span > 0, span, 1.0), np.where(np.array(classes) == first, 1.0, -1.0)


def record(
    features: FloatArray, labels: FloatArray, method: str, n_sites: int, *, gap: float = 1e-3, max_rounds: int = 100
) -> dict[str, Sent]:
    """Traffic of one run, by site: rows dealt at random, the default radius of a plan."""
    order = np.random.default_rng(0).permutation(labels.shape[0])
    sites = {}
    for number, part in enumerate(np.array_split(order, n_sites)):
        spec = RobustSpec(radius=1.0 / (10.0 * part.size), label_flip_cost=1.0)
        sites[f"plant-{number + 1}"] = SiteProblem(features[part], labels[part], spec)
    sent = {name: Sent(site) for name, site in sites.items()}
    recorder = Recorder(get_method(method).site, {id(each.problem.features): each for each in sent.values()})
    train(sites, method=method, gap=gap, max_rounds=max_rounds, site_half=recorder)
    return sent
