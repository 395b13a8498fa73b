"""Rows of a fit with their outcomes, their sites and how often each counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_sample_weight

from models.basics import FloatArray, ProblemError
from models.estimators.values import number, shown
from models.problem import RobustSpec, SiteProblem


@dataclass(frozen=True)
class Table:
    """Rows (N, P) with ``outcomes`` (N,), class indices or targets, and ``site`` (N,), an index.

    ``counts`` (N,) above 0 is how often each row stands there (``sample_weight``); ``weights`` (N,) how much it weighs
    in its site's empirical distribution, which class weights change and the number of rows of a site they do not.
    ``machine`` (N,) numbers whose rows are held out together; None where nobody says.
    """

    features: FloatArray
    outcomes: FloatArray
    site: NDArray[np.intp]
    counts: FloatArray
    weights: FloatArray
    machine: NDArray[np.intp] | None = None

    def take(self, rows: NDArray[Any]) -> Table:
        """Some of the rows."""
        return Table(
            self.features[rows], self.outcomes[rows], self.site[rows], self.counts[rows], self.weights[rows],
            None if self.machine is None else self.machine[rows],
        )

    def same_rows(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """First row of each set of equal ones of a machine (M,), and the set of each row (N,)."""
        own = [] if self.machine is None else [self.machine]
        whole = np.column_stack([self.features, self.outcomes, self.site, *own]) + 0.0  # one zero, not two
        keys = np.ascontiguousarray(whole).view(np.dtype((np.void, whole.dtype.itemsize * whole.shape[1])))[:, 0]
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        return first, which

    def merged(self) -> Table:
        """Every set of equal rows as one that counts as often as they do, in an order that is the rows' own.

        So a weight of k and k copies are the same table to the last bit, whatever order the rows come in.
        """
        first, which = self.same_rows()
        sums = [np.asarray(np.bincount(which, each), dtype=np.float64) for each in (self.counts, self.weights)]
        return replace(self.take(first), counts=sums[0], weights=sums[1])

    def problem(self, site: int, labels: FloatArray, spec: RobustSpec) -> SiteProblem:
        """Problem of a site with labels or targets (N,) for all rows."""
        rows = np.flatnonzero(self.site == site)
        weights = self.weights[rows]
        counted = None if (weights == weights[0]).all() else weights / weights.mean()
        return SiteProblem(self.features[rows], labels[rows], spec, counted)


def sample_counts(sample_weight: ArrayLike | None, features: FloatArray) -> FloatArray:
    """Weights of the rows (N,): at or above 0, not all 0; ``ProblemError`` where they are not."""
    if sample_weight is None:
        return np.ones(features.shape[0])
    counts = np.asarray(_check_sample_weight(sample_weight, features, dtype=np.float64))
    if (counts < 0).any() or not counts.any():
        raise ProblemError("sample_weight must be at or above 0 and not all 0")
    return counts


def class_weights(
    given: Mapping[Any, float] | str | None, classes: NDArray[Any], indices: NDArray[np.intp], counts: FloatArray
) -> FloatArray:
    """Weight of each class (K,): 1, "balanced" (each class the same sum), or a mapping (1 for what it leaves out).

    :class:`ProblemError` for a class that there is not, and for a weight that is not finite and above 0.
    """
    if given is None:
        return np.ones(classes.shape[0])
    if isinstance(given, str) and given == "balanced":
        return np.asarray(counts.sum() / (classes.shape[0] * np.bincount(indices, counts, classes.shape[0])))
    if not isinstance(given, Mapping):
        raise ProblemError(f'class_weight must be None, "balanced" or a mapping of class to weight, got {shown(given)}')
    if unknown := [name for name in given if name not in classes.tolist()]:
        known = ", ".join(map(repr, classes.tolist()))
        raise ProblemError(f"class_weight is given for a class {unknown[0]!r}, the data are of classes {known}")
    weights = np.array([number(f"the class_weight of {name!r}", given.get(name, 1.0)) for name in classes.tolist()])
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise ProblemError("class_weight must have finite weights above 0")
    return weights
