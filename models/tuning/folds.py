r"""Folds of a site's rows, dealt inside the vault: the same whatever the order of the rows, classes dealt evenly.

Rows of which the site says that they belong together, as those of one machine, are left out together: else a fold would
be scored by models that have seen its neighbours, and the largest lift would win. Every fold of every site has rows, or
the sum of a few sites' scores would be one site's own.

The fold of a row follows from a keyed hash of its features (BLAKE2b; the seed is the key) within its class: distinct
rows of a class, in the order of their hashes, are dealt out in turn. Rows with the same features and class are in the
same fold, so no copy of a held-out row is learnt from. A class of which there is one distinct row is always learnt from
and never scored, and where a site has hardly more rows than must be learnt from, so are as many others as that takes.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, ProblemError

Folds = NDArray[np.intp]
NEVER = -1
"""Fold of rows that no fold scores: all learn from them."""


class TooFewRowsError(ProblemError):
    """A site has too few rows, in all or of a class, to hold some of them out; it may well be trained on."""


@dataclass(frozen=True)
class Dealt:
    """``folds`` (N,): which fold scores a row, or :data:`NEVER`; rows alike in ``together`` (N,) are left out together.

    Of a machine that several folds score no row is learnt from in any of them.
    """

    folds: Folds
    together: NDArray[np.intp] | None = None

    def scored(self, fold: int) -> NDArray[np.bool_]:
        """Rows (N,) that a fold scores."""
        return np.asarray(self.folds == fold)

    def learnt(self, fold: int) -> NDArray[np.bool_]:
        """Rows (N,) that are learnt from without it."""
        scored = self.scored(fold)
        return ~scored if self.together is None else ~np.isin(self.together, self.together[scored])


def deal(
    features: FloatArray, strata: NDArray[np.intp], n_folds: int, seed: int, together: NDArray[np.intp] | None = None,
    *, least_train: int, least_test: int,
) -> Dealt:
    """Folds of rows, enough on both sides: what is alike in ``together`` (N,) whole, where that leaves enough.

    Where it does not, since there is one machine or a class is on one alone, rows are dealt one by one. So they are
    where machines are fewer than folds and there are several classes: half of the rows tell too little of which lift is
    best by counts (decision 100).

    Raises
    ------
    ProblemError
        As :func:`deal_rows` and :func:`check_folds`.
    """
    if together is not None and (len(np.unique(strata)) == 1 or len(np.unique(together)) >= n_folds):
        with suppress(TooFewRowsError):
            whole = Dealt(deal_whole(features, together, strata, n_folds, seed), together)
            check_folds(whole, strata, n_folds, least_train, least_test)
            return whole
    dealt = Dealt(deal_rows(features, strata, n_folds, seed))
    with suppress(TooFewRowsError):
        check_folds(dealt, strata, n_folds, least_train, least_test)
        return dealt
    dealt = _smaller_folds(features, strata, n_folds, seed, least_train) or dealt
    check_folds(dealt, strata, n_folds, least_train, least_test)
    return dealt


def _smaller_folds(
    features: FloatArray, strata: NDArray[np.intp], n_folds: int, seed: int, least_train: int
) -> Dealt | None:
    """The first of so many folds that without one of them ``least_train`` rows are left; None without such a number."""
    left = len(strata) - least_train
    number = -(-len(strata) // left) if left > 0 else 0
    if number <= n_folds:
        return None
    try:
        folds = deal_rows(features, strata, number, seed)
    except TooFewRowsError:
        return None
    return Dealt(np.where(folds < n_folds, folds, NEVER))


def deal_whole(
    features: FloatArray, together: NDArray[np.intp], strata: NDArray[np.intp], n_folds: int, seed: int
) -> Folds:
    """Fold (N,) of rows, those alike in ``together`` (N,) in one: the largest first, each where its classes are fewest.

    Those of one size are dealt in the order of a keyed hash of their number. Where there are fewer machines than folds
    each has folds of its own in turn, the largest first, and the rows of one are dealt among its folds as by
    :func:`deal_rows`: leaving out one machine, then another, and no fold without rows.
    """
    check_n_folds(n_folds)
    numbers, group = np.unique(together, return_inverse=True)
    _, stratum = np.unique(strata, return_inverse=True)
    counts = np.zeros((len(numbers), stratum.max(initial=0) + 1))
    np.add.at(counts, (group, stratum), 1.0)
    sizes = counts.sum(axis=1)
    key = seed.to_bytes(8, "little")
    drawn = [hashlib.blake2b(int(each).to_bytes(8, "little"), digest_size=8, key=key).digest() for each in numbers]
    order = sorted(range(len(numbers)), key=lambda each: (-sizes[each], drawn[each]))
    if len(numbers) < n_folds:
        return _dealt_within(features, group, strata, n_folds, seed, order)
    # A rare class weighs as much as a frequent one, and the number of rows as one more.
    shares = np.column_stack([counts / counts.sum(axis=0), sizes / sizes.sum()])
    held, found = np.zeros((n_folds, shares.shape[1])), np.zeros(len(numbers), dtype=np.intp)
    for place in order:
        found[place] = np.argmin(held @ shares[place])
        held[found[place]] += shares[place]
    return np.asarray(found[group])


def _dealt_within(
    features: FloatArray, group: NDArray[np.intp], strata: NDArray[np.intp], n_folds: int, seed: int, order: list[int]
) -> Folds:
    """Folds (N,) of fewer groups (N,) than folds: fold k is of ``order[k % len(order)]``."""
    folds = np.zeros(len(group), dtype=np.intp)
    for place, number in enumerate(order):
        rows, own = np.flatnonzero(group == number), np.arange(place, n_folds, len(order))
        if len(own) == 1:
            folds[rows] = place
            continue
        within = deal_rows(features[rows], strata[rows], len(own), seed)
        folds[rows] = np.where(within == NEVER, NEVER, own[within])
    return folds


def deal_rows(features: FloatArray, strata: NDArray[np.intp], n_folds: int, seed: int) -> Folds:
    """Fold (N,) in 0..n_folds-1 of rows with features (N, P) and strata (N,): classes, all alike for a regression.

    :data:`NEVER` for a stratum of several that has one distinct row: without its fold it would be gone.

    Raises
    ------
    ProblemError
        Fewer than two folds; :class:`TooFewRowsError` where there are fewer distinct rows than folds.
    """
    check_n_folds(n_folds)
    key = seed.to_bytes(8, "little")
    found, dealt = np.zeros(len(strata), dtype=np.intp), 0
    several = len(numbers := np.unique(strata)) > 1
    for stratum in numbers:
        members = np.flatnonzero(strata == stratum)
        digests = [
            hashlib.blake2b(row.tobytes(), digest_size=16, key=key).digest()
            for row in np.ascontiguousarray(features[members], dtype=np.float64) + 0.0  # -0 is 0
        ]
        order = {digest: place for place, digest in enumerate(sorted(set(digests)))}
        if several and len(order) == 1:
            found[members] = NEVER
            continue
        # Each class goes on where the last one ended: else the first folds get the odd rows of every class.
        found[members] = [(dealt + order[digest]) % n_folds for digest in digests]
        dealt += len(order)
    if dealt < n_folds:
        raise TooFewRowsError(f"{n_folds} folds need as many distinct rows, there are {dealt}")
    return found


def check_n_folds(n_folds: int) -> None:
    """Refuse fewer than two folds: nothing would be held out, or nothing learnt from. :class:`ProblemError` says so."""
    if n_folds < 2:
        raise ProblemError(f"a tuning needs two folds at least, got {n_folds}")


def check_folds(dealt: Dealt, strata: NDArray[np.intp], n_folds: int, least_train: int, least_test: int) -> None:
    """Refuse folds that leave too little on either side.

    Raises
    ------
    TooFewRowsError
        Without some fold fewer than ``least_train`` rows are left, or a class is missing that the rows have; or a fold
        has fewer than ``least_test`` rows.
    """
    learnt = [dealt.learnt(fold) for fold in range(n_folds)]
    least = min(int(rows.sum()) for rows in learnt)
    if least < least_train or np.bincount(dealt.folds[dealt.folds != NEVER], minlength=n_folds).min() < least_test:
        raise TooFewRowsError(
            f"{len(strata)} rows are too few for {n_folds} folds: a fold needs {least_test} rows and the others "
            f"{least_train}; take fewer folds, or leave out the tuning"
        )
    classes = len(np.unique(strata))
    if any(len(np.unique(strata[rows])) < classes for rows in learnt):
        raise TooFewRowsError(
            "a class has too few distinct rows for the folds: without one fold it would be gone"
        )
