r"""Sets and intervals from the scores of each row under a model that has not seen it: cross-conformal prediction.

Row i of group g lies in fold k(i), and ``f_{-k}`` is a model of the other folds.

    class c:   n_g + 1 times the p-value   1 + #{ i in g : s_i >= s_c^{-k(i)}(x) }
    target:    the ceil((n_g + 1)(1 - alpha))-th least of  f_{-k(i)}(x) + s_i u_{-k(i)}(x),  and for the low end the
               same from above of  f_{-k(i)}(x) - s_i l_{-k(i)}(x),     s_i = max(r_i / l(x_i), -r_i / u(x_i))

A row of weight k counts as k rows, in part too: n_g is the sum of the weights.

(CV+: Barber, Candes, Ramdas, Tibshirani 2021; for classes Romano, Sesia, Candes 2020; by nested sets Gupta,
Kuchibhotla, Ramdas 2022). r = f - y; l and u, the *ends* of a model, say how far targets lie below and above its
estimate f, by where the estimate lies: the quantiles .95 of r and of -r over the rows that the model was fitted to, in
bins of the estimate of 40 rows or more, ten at most (with fewer than 80 rows l = u = 1 everywhere). All rows train the
model and all are calibrated on. What is proven of a group's new row is coverage ``1 - 2 alpha - sqrt(2 / n_g)`` or
better, whatever the method; with a method that hardly depends on one fold it is ``1 - alpha``. A set or an interval is
good for every group: it is the union of the groups' own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, ProblemError
from models.conformal.coverage import asked_level, rows_needed
from models.conformal.scores import class_margins

_BIN_ROWS = 40
"""Rows of a bin of the estimate: two of them lie beyond each end."""

_MOST_BINS = 10
"""Bins of the estimate, however many rows there are."""

_TAIL = 0.05
"""Share of a model's own rows beyond each end."""

_LEAST_END = 1e-6
"""Of the largest residual: no end is nearer to the estimate, or a row that fits exactly would have no score."""


@dataclass(frozen=True)
class Ends:
    """How far targets lie below and above an estimate, (2, B), by B bins of the estimate with ``edges`` (B - 1,)."""

    edges: FloatArray
    sizes: FloatArray

    @classmethod
    def of(cls, estimates: FloatArray, targets: FloatArray, counts: FloatArray) -> Ends:
        """Ends of a model from its own rows: estimates and targets (N,), and how often each row counts (N,)."""
        total = float(counts.sum())
        n_bins = int(min(_MOST_BINS, total // _BIN_ROWS))
        if n_bins < 2:
            return cls(np.zeros(0), np.ones((2, 1)))
        edges = np.unique(_weighted_quantiles(estimates, counts, np.arange(1, n_bins) / n_bins))
        edges = edges[edges < estimates[counts > 0].max()]  # many estimates may be alike: no bin is without rows
        bins, residuals = np.searchsorted(edges, estimates), estimates - targets
        sizes = np.ones((2, len(edges) + 1))
        least = max(float(np.abs(residuals).max()) * _LEAST_END, np.finfo(np.float64).tiny)
        for number in range(len(edges) + 1):
            own = bins == number
            low, high = _weighted_quantiles(residuals[own], counts[own], np.array([_TAIL, 1.0 - _TAIL]))
            sizes[:, number] = np.maximum([high, -low], least)
        return cls(edges, sizes)

    def at(self, estimates: FloatArray) -> FloatArray:
        """Sizes below and above, (2, n), of estimates (n,)."""
        return np.asarray(self.sizes[:, np.searchsorted(self.edges, estimates)])

    def scores(self, estimates: FloatArray, targets: FloatArray) -> FloatArray:
        """Scores (n,): by how much both ends must be stretched to hold the targets (n,); never negative."""
        below, above = self.at(estimates)
        return np.asarray(np.maximum((estimates - targets) / below, (targets - estimates) / above))


@dataclass(frozen=True)
class OutOfFold:
    """Rows that were held out: their score (n,), their fold, their group (an index), and how often each counts.

    ``planes`` (F, K, D) are the models without each fold, the intercept last; ``names`` those of the groups; ``ends``
    those of each model, by which residuals became scores (none: scores of classes).
    """

    scores: FloatArray
    fold: NDArray[np.intp]
    group: NDArray[np.intp]
    counts: FloatArray
    planes: FloatArray
    names: Sequence[object]
    ends: Sequence[Ends] = ()

    def check_level(self, coverage: float) -> float:
        """Level asked for; ``ProblemError`` where it is none, or a group has too few rows for it."""
        level = asked_level(coverage)
        for number, name in enumerate(self.names):
            n = float(self.counts[self.group == number].sum())
            if n < rows_needed(level) * (1.0 - 1e-12):  # parts of rows sum to a whole one but for rounding
                raise ProblemError(
                    f"coverage {coverage:g} needs {rows_needed(level)} rows of each group that a fold holds out, group "
                    f"{name} has {n:g}: ask for less, or merge groups"
                )
        return level

    def head_scores(self, features: FloatArray) -> FloatArray:
        """Scores (F, n, K) of features (n, P) under each model."""
        slopes = np.swapaxes(self.planes[:, :, :-1], 1, 2)
        return np.asarray(features @ slopes + self.planes[:, None, :, -1])

    def rows_by_group(self) -> list[NDArray[np.intp]]:
        """Rows of each group, in the order of the names."""
        return [np.flatnonzero(self.group == number) for number in range(len(self.names))]


def cross_sets(held: OutOfFold, scores: FloatArray, coverage: float) -> NDArray[np.bool_]:
    """Sets (n, C) at a coverage in (0, 1) from class scores (F, n, C) of new rows under each model."""
    level = held.check_level(coverage)
    margins = np.stack([class_margins(each) for each in scores])
    found = np.zeros(scores.shape[1:], dtype=np.bool_)
    for rows in held.rows_by_group():
        total = held.counts[rows].sum()
        stranger = sum(
            _at_or_above(held.scores[chosen], held.counts[chosen], margins[fold])
            for fold in range(len(margins)) if (chosen := rows[held.fold[rows] == fold]).size
        )
        found |= 1.0 + stranger > (1.0 - level) * (total + 1.0) * (1.0 + 1e-12)
    return found


def cross_interval(held: OutOfFold, values: FloatArray, coverage: float) -> FloatArray:
    """Intervals (n, 2) at a coverage in (0, 1) from the estimates (F, n) of new rows under each model.

    At a coverage of a few per cent the two ends may pass one another, where the models' estimates differ by more than
    such an interval is wide. What lies between them is told then, which holds more than the empty set of the formula.
    """
    level = held.check_level(coverage)
    below, above = np.stack([ends.at(each) for ends, each in zip(held.ends, values, strict=True)], axis=1)
    low, high = np.full(values.shape[1], np.inf), np.full(values.shape[1], -np.inf)
    for rows in held.rows_by_group():
        fold, scores, counts = held.fold[rows], held.scores[rows][:, None], held.counts[rows]
        rank = (counts.sum() + 1.0) * level * (1.0 - 1e-12)  # no whole number where rows count in part
        high = np.maximum(high, _ranked(values[fold] + scores * above[fold], counts, rank))
        low = np.minimum(low, -_ranked(scores * below[fold] - values[fold], counts, rank))
    return np.column_stack([np.minimum(low, high), np.maximum(low, high)])


def _at_or_above(scores: FloatArray, counts: FloatArray, at: FloatArray) -> FloatArray:
    """How often scores (n,) that count so often are at or above each value of an array."""
    order = np.argsort(scores)
    below = np.concatenate([[0.0], np.cumsum(counts[order])])
    return np.asarray(below[-1] - below[np.searchsorted(scores[order], at, side="left")])


def _weighted_quantiles(values: FloatArray, counts: FloatArray, shares: FloatArray) -> FloatArray:
    """Least value at or below which a share (S,) of the rows (n,) lies, that count so often (n,)."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(counts[order])
    place = np.searchsorted(reached, shares * reached[-1] * (1.0 - 1e-12))
    return np.asarray(values[order][np.minimum(place, len(values) - 1)])


def _ranked(values: FloatArray, counts: FloatArray, rank: float) -> FloatArray:
    """Least value up to which rows count ``rank`` times in all, in each column of (m, n); each counts so often (m,)."""
    order = np.argsort(values, axis=0)
    reached = np.cumsum(counts[order], axis=0) >= rank - 1e-9
    place = np.take_along_axis(order, reached.argmax(axis=0)[None], axis=0)
    return np.asarray(np.take_along_axis(values, place, axis=0)[0])
