r"""Fixed thresholds at which held-out scores are counted, and the counts.

The exact quantile of n scores *is* the score of one row. What is counted at thresholds that are fixed beforehand, and
coarse, is not: of a row it tells between which two of them its score lies, 15 % apart. A quantile of the counts is a
threshold at or above the exact one, so coverage only grows by the rounding.

    0 and  +-10^(-3 + j / 16),  j = 0 .. 80:   163 thresholds t from -100 to 100

They fit residuals of targets scaled to [0, 1] and scores of planes over features in [0, 1].
"""

from __future__ import annotations

from typing import Final

import numpy as np

from models.basics import FloatArray, ProblemError

GRID_NUMBER: Final = 1
"""Number of this grid, by which a question asks for it: a plant counts on no other."""

_A_DECADE, _LEAST, _DECADES = 16, -3, 5


def score_grid() -> FloatArray:
    """The thresholds (T,), in rising order, symmetric about 0."""
    above = 10.0 ** (_LEAST + np.arange(_A_DECADE * _DECADES + 1) / _A_DECADE)
    return np.concatenate([-above[::-1], [0.0], above])


def counts_at_or_below(scores: FloatArray, grid: FloatArray) -> FloatArray:
    """How many of the scores (n,) are at or below each threshold (T,): (T,), whole numbers that never fall.

    :class:`ProblemError` for a score that is not finite.
    """
    if not np.isfinite(scores).all():
        raise ProblemError("scores to be counted must be finite")
    return np.searchsorted(np.sort(scores), grid, side="right").astype(np.float64)


def counts_within(counts: FloatArray) -> FloatArray:
    """Scores of a size at or below each threshold at or above 0, (H,), from counts (T,) on a symmetric grid.

    ``#{|s| <= t}`` is taken as ``#{s <= t} - #{s <= -t}``, which leaves out scores that are exactly ``-t``: never more
    than there are. At 0 nothing is counted.
    """
    half = counts.shape[-1] // 2
    return np.asarray(counts[..., half:] - counts[..., half::-1])
