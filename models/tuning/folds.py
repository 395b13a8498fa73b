r"""Folds of a site's rows, dealt inside the vault: the same whatever the order of the rows, classes dealt evenly.

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
