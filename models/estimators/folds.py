"""Models without each fold, and what they say of the rows that they have not seen.

Where the machine of each row is named (``machines`` of a fit), a site's folds are of whole machines, as in a plant's
vault: sets and intervals then say how far the model is off on a machine that it has not seen. Coverage is then that of
a new machine's rows, on the average over machines; what is proven is for rows that are drawn apart. A site with fewer
machines than folds holds out one of them after the other, and is in no further fold; one with a single machine, or with
a class on one machine alone, deals single rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.conformal.cross import Ends, OutOfFold
from models.estimators.scaling import wide_enough
from models.estimators.table import Table
from models.estimators.values import whole_number
from models.multiclass import predict_scores
from models.tuning.folds import TooFewRowsError, deal

ROUGH: Final = 1e-2
"""Gap at which a fit on a part of the rows is good enough for the scores of the others."""

_FINE: Final = 1e9
"""Shares of a range that are further apart than one in as many are different readings where folds are dealt."""

_BESIDE: Final = 0.414
"""Moves the edges of rounding away from where readings are: a share of 1/1024 is half a billionth from a whole one."""

FitHeads = Callable[[Table], Sequence[FloatArray]]
"""Weights of each head of a model of some rows."""


def calibration_folds(given: object) -> int:
    """How many folds a fit has, 0 for none; ``ProblemError`` where that is no number of folds."""
    if np.isscalar(given) and given == 0:
        return 0
    return whole_number("calibration_folds", given, least=2, also=", or 0 for none")


def in_any_unit(features: FloatArray) -> FloatArray:
    """Features (N, P) in whole billionths of their ranges, by which folds of a tuning are dealt.

    A fold follows from the bytes of a row, and another unit changes the last digits of a share of a range.
    """
    low = features.min(axis=0)
    shares = (features - low) / wide_enough(low, features.max(axis=0))
    return np.asarray(np.round(_FINE * shares + _BESIDE))


@dataclass(frozen=True)
class FoldModels:
    """Rows that some fold held out (n,), their fold (n,) and scores of the heads (n, K), the models (F, K, P + 1)."""

    rows: NDArray[np.intp]
    fold: NDArray[np.intp]
    scores: FloatArray
    planes: FloatArray

    def out_of_fold(self, tested: Table, scores: FloatArray, names: Sequence[object]) -> OutOfFold:
        """What sets are made of: ``tested`` are those rows, ``scores`` (n,) their nonconformity."""
        return OutOfFold(scores, self.fold, tested.site, tested.counts, self.planes, names)

    def errors_out_of_fold(
        self, table: Table, folds: NDArray[np.intp], tested: Table, names: Sequence[object]
    ) -> OutOfFold:
        """What intervals are made of: ``table`` are all rows and ``folds`` (N,) theirs, as the models were fitted."""
        ends, scores = list[Ends](), np.zeros(len(self.rows))
        for number, planes in enumerate(self.planes):
            own = self.fold == number
            fitted = table.take(np.flatnonzero(folds != folds[self.rows[own][0]]))
            ends.append(Ends.of(predict_scores(planes, fitted.features)[:, 0], fitted.outcomes, fitted.counts))
            scores[own] = ends[-1].scores(self.scores[own, 0], tested.outcomes[own])
        return OutOfFold(scores, self.fold, tested.site, tested.counts, self.planes, names, ends)


def deal_targets(table: Table, n_folds: int) -> NDArray[np.intp]:
    """Fold of each row (N,) of a regression: equal rows go together, a site's are dealt in turn by rising target.

    Whole machines where they are named.
    """
    first, which = table.same_rows()
    site, target = table.site[first], table.outcomes[first]
    order = np.lexsort((target, site))
    folds = np.empty(first.shape[0], dtype=np.intp)
    starts = np.searchsorted(site[order], np.arange(int(site.max()) + 1))
    place = np.arange(first.shape[0]) - starts[site[order]]
    # Within each run of n_folds neighbours the turn is drawn, by a fixed seed: no fold has always the least target.
    draw = np.random.default_rng(0)
    turns = np.argsort(draw.random((place.max() // n_folds + 1, n_folds)), axis=1)
    folds[order] = turns[place // n_folds, place % n_folds]
    folds[np.bincount(site)[site] == 1] = -1  # a site's only row stays
    return with_whole_machines(folds[which], table, np.zeros(len(which), dtype=np.intp), n_folds)


def with_whole_machines(
    folds: NDArray[np.intp], table: Table, strata: NDArray[np.intp], n_folds: int
) -> NDArray[np.intp]:
    """Folds (N,) in which each site that has machines enough holds them whole; ``strata`` (N,) as where rows are dealt.

    Of the other sites, and of all where no machine is named, those that are given.
    """
    if table.machine is None:
        return folds
    found = folds.copy()
    for site in np.unique(table.site):
        own = np.flatnonzero(table.site == site)
        machine = table.machine[own]
        n_whole = min(n_folds, len(np.unique(machine)))
        if n_whole < 2:
            continue
        with suppress(TooFewRowsError):
            dealt = deal(table.features[own], strata[own], n_whole, 0, machine, least_train=1, least_test=1)
            if dealt.together is not None:
                found[own] = dealt.folds
    return found


def fold_models(
    table: Table, folds: NDArray[np.intp], n_folds: int, fit: FitHeads, *, fit_intercept: bool
) -> FoldModels:
    """A model of the other folds for each fold that holds rows out; ``folds`` (N,), -1 for rows that stay."""
    used = [number for number in range(n_folds) if (folds == number).any()]
    rows, fold, scores, planes = list[NDArray[np.intp]](), list[NDArray[np.intp]](), list[FloatArray](), []
    for place, number in enumerate(used):
        held, heads = np.flatnonzero(folds == number), np.stack(fit(table.take(np.flatnonzero(folds != number))))
        if not fit_intercept:
            heads = np.hstack([heads, np.zeros((heads.shape[0], 1))])
        rows.append(held)
        fold.append(np.full(held.size, place, dtype=np.intp))
        scores.append(predict_scores(heads, table.features[held]))
        planes.append(heads)
    if not used:
        nothing = np.zeros(0, dtype=np.intp)
        return FoldModels(nothing, nothing, np.zeros((0, 1)), np.zeros((0, 1, table.features.shape[1] + 1)))
    return FoldModels(np.concatenate(rows), np.concatenate(fold), np.concatenate(scores), np.stack(planes))
