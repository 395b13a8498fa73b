"""Many runs of a federated method as one array: they share candidates and steps, and differ in their rows.

A run is a set of sites, such as the training rows of a fold. Sites differ in size by a few rows, so all are filled up
to one size with empty rows (features and label 0), which add nothing to a sum over rows; means divide by the true
counts. The last row of every site is an empty one: a batch that is shorter than others is filled up with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from tests.benchmarks.papers.fdr_svm.printed import Site

Sizes = tuple[int, ...]
"""Rows of each site of a run."""
Round = list[list[NDArray[np.int_]]]
"""The batches of a round: for each step the rows that each site draws."""


@dataclass(frozen=True)
class Runs:
    """R runs of G sites: features (R, G, N, P), labels (R, G, N), ridges (R, G), the true ``sizes`` (R of G)."""

    features: FloatArray
    labels: FloatArray
    ridges: FloatArray
    sizes: tuple[Sizes, ...]

    def batches(self, draws: Callable[[Sizes], Iterator[Round]]) -> Iterator[list[Batch]]:
        """For each round the batches of its steps; runs whose sites have the same sizes share their draws."""
        drawn = {sizes: draws(sizes) for sizes in set(self.sizes)}
        n_runs, n_sites, n_rows, p = self.features.shape
        features, labels = self.features.reshape(-1, p), self.labels.reshape(-1)
        first = n_rows * np.arange(n_runs * n_sites).reshape(n_runs, n_sites, 1)
        while True:
            now = {sizes: next(rounds) for sizes, rounds in drawn.items()}
            found = []
            for step in range(len(now[self.sizes[0]])):
                drawn_rows = [now[sizes][step] for sizes in self.sizes]
                counts = np.array([[rows.shape[0] for rows in sites] for sites in drawn_rows])
                at = np.full((n_runs, n_sites, counts.max()), n_rows - 1)
                for r, sites in enumerate(drawn_rows):
                    for g, rows in enumerate(sites):
                        at[r, g, : rows.shape[0]] = rows
                found.append(Batch(features[at + first], labels[at + first], counts))
            yield found

    @property
    def whole(self) -> Batch:
        """All rows as one batch."""
        return Batch(self.features, self.labels, np.array(self.sizes))


@dataclass(frozen=True)
class Batch:
    """Rows of one step: features (R, G, B, P), labels (R, G, B), true counts (R, G)."""

    features: FloatArray
    labels: FloatArray
    counts: NDArray[np.int_]

    def margins(self, points: FloatArray) -> FloatArray:
        """``y <w, x>`` (R, G, C, B) at the points (R, G, C, P); 0 for an empty row."""
        return self.labels[:, :, None, :] * np.matmul(points, self.features.swapaxes(-1, -2))

    def mean_of_rows(self, factors: FloatArray) -> FloatArray:
        """``sum_i factors_i y_i x_i / count`` (R, G, C, P) of factors (R, G, C, B)."""
        summed = np.matmul(factors * self.labels[:, :, None, :], self.features)
        return np.asarray(summed / self.counts[:, :, None, None])


def stacked(runs: Sequence[Sequence[Site]]) -> Runs:
    """Runs of as many sites each; the radius of a site is its ridge."""
    sizes = tuple(tuple(site.labels.shape[0] for site in run) for run in runs)
    shape = (len(runs), len(runs[0]), 1 + max(map(max, sizes)))
    features, labels = np.zeros((*shape, runs[0][0].features.shape[1])), np.zeros(shape)
    for r, run in enumerate(runs):
        for g, site in enumerate(run):
            features[r, g, : sizes[r][g]], labels[r, g, : sizes[r][g]] = site.features, site.labels
    return Runs(features, labels, np.array([[site.radius for site in run] for run in runs]), sizes)
