r"""Folds of a site's rows, dealt inside the vault: the same whatever the order of the rows, classes dealt evenly.

Rows of which the site says that they belong together, as those of one machine, are dealt whole: else a fold would be
scored by models that have seen its neighbours, and the largest lift would win.

The fold of a row follows from a keyed hash of its features (BLAKE2b; the seed is the key) within its class: distinct
rows of a class, in the order of their hashes, are dealt out in turn. Rows with the same features and class are in the
same fold, so no copy of a held-out row is learnt from.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, ProblemError

Folds = NDArray[np.intp]


class TooFewRowsError(ProblemError):
    """A site has too few rows, in all or of a class, to hold some of them out; it may well be trained on."""


def deal(
    features: FloatArray, strata: NDArray[np.intp], n_folds: int, seed: int, together: NDArray[np.intp] | None = None,
    *, least_train: int, least_test: int,
) -> Folds:
    """Fold (N,) of each row, enough on both sides: what is alike in ``together`` (N,) whole, where that leaves enough.

    Where it does not, since machines are fewer than folds or a class is on one alone, rows are dealt one by one.

    Raises
    ------
    ProblemError
        As :func:`deal_rows` and :func:`check_folds`.
    """
    folds = None if together is None else whole_or_none(
        together, strata, n_folds, seed, least_train=least_train, least_test=least_test
    )
    if folds is None:
        folds = deal_rows(features, strata, n_folds, seed)
        check_folds(folds, strata, n_folds, least_train, least_test)
    return folds


def whole_or_none(
    together: NDArray[np.intp], strata: NDArray[np.intp], n_folds: int, seed: int, *, least_train: int, least_test: int
) -> Folds | None:
    """Folds (N,) of what is alike in ``together`` (N,) as :func:`deal_whole` has them; None where that is too few."""
    folds = deal_whole(together, strata, n_folds, seed)
    try:
        check_folds(folds, strata, n_folds, least_train, least_test)
    except TooFewRowsError:
        return None
    return folds


def deal_whole(together: NDArray[np.intp], strata: NDArray[np.intp], n_folds: int, seed: int) -> Folds:
    """Fold (N,) of rows, those alike in ``together`` (N,) in one: the largest first, each where its classes are fewest.

    Those of one size are dealt in the order of a keyed hash of their number. Folds are empty where there are fewer.
    """
    check_n_folds(n_folds)
    numbers, group = np.unique(together, return_inverse=True)
    _, stratum = np.unique(strata, return_inverse=True)
    counts = np.zeros((len(numbers), stratum.max(initial=0) + 1))
    np.add.at(counts, (group, stratum), 1.0)
    sizes = counts.sum(axis=1)
    # A rare class weighs as much as a frequent one, and the number of rows as one more.
    shares = np.column_stack([counts / counts.sum(axis=0), sizes / sizes.sum()])
    key = seed.to_bytes(8, "little")
    drawn = [hashlib.blake2b(int(each).to_bytes(8, "little"), digest_size=8, key=key).digest() for each in numbers]
    held, found = np.zeros((n_folds, shares.shape[1])), np.zeros(len(numbers), dtype=np.intp)
    for place in sorted(range(len(numbers)), key=lambda each: (-sizes[each], drawn[each])):
        found[place] = np.argmin(held @ shares[place])
        held[found[place]] += shares[place]
    return np.asarray(found[group])


def deal_rows(features: FloatArray, strata: NDArray[np.intp], n_folds: int, seed: int) -> Folds:
    """Fold (N,) in 0..n_folds-1 of rows with features (N, P) and strata (N,): classes, all alike for a regression.

    Raises
    ------
    ProblemError
        Fewer than two folds; :class:`TooFewRowsError` where there are fewer distinct rows than folds.
    """
    check_n_folds(n_folds)
    key = seed.to_bytes(8, "little")
    found, dealt = np.zeros(len(strata), dtype=np.intp), 0
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        digests = [
            hashlib.blake2b(row.tobytes(), digest_size=16, key=key).digest()
            for row in np.ascontiguousarray(features[members], dtype=np.float64)
        ]
        order = {digest: place for place, digest in enumerate(sorted(set(digests)))}
        # Each class goes on where the last one ended: else the first folds get the odd rows of every class.
        found[members] = [(dealt + order[digest]) % n_folds for digest in digests]
        dealt += len(order)
    if dealt < n_folds:
        raise TooFewRowsError(f"{n_folds} folds need as many distinct rows, there are {dealt}")
    return found


def check_n_folds(n_folds: int) -> None:
    """Refuse fewer than two folds: nothing would be held out, or nothing learnt from."""
    if n_folds < 2:
        raise ProblemError(f"a tuning needs two folds at least, got {n_folds}")


def check_folds(folds: Folds, strata: NDArray[np.intp], n_folds: int, least_train: int, least_test: int) -> None:
    """Refuse folds that leave too little on either side.

    Raises
    ------
    TooFewRowsError
        Without some fold fewer than ``least_train`` rows are left, or a class is missing that the rows have; or a fold
        has fewer than ``least_test`` rows.
    """
    sizes = np.bincount(folds, minlength=n_folds)
    if len(folds) - sizes.max() < least_train or sizes.min() < least_test:
        raise TooFewRowsError(
            f"{len(folds)} rows are too few for {n_folds} folds: a fold needs {least_test} rows and the others "
            f"{least_train}; take fewer folds, or leave out the tuning"
        )
    for stratum in np.unique(strata):
        if len(np.unique(folds[strata == stratum])) < 2:
            raise TooFewRowsError(
                "a class has too few distinct rows for the folds: without one fold it would be gone"
            )
