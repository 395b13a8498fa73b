r"""Intervals as wide, above and below, as the errors are where the estimate lies; counted as one threshold is.

Errors often grow with the estimate, and are lopsided. Let f be an estimate of a target scaled to [0, 1], cut to that
range, b(f) the tenth of the range in which it lies, and r = f - y the residual. A *shape* has two lags for each tenth.
The interval of step s = 0, 1, ... is

    -t(s - below_b) < f - y <= t(s - above_b),     b = b(f),
    t(u) = 10^(-3 + floor(u / 8) / 16) for u >= 0, at most 1;     t(u) = 0 for u < 0

(and at the end -1 a residual of exactly -1 is held).

An end is always a threshold of the fixed grid of :mod:`models.conformal.grid`, 15 % from the next; but since the ends
of the tenths move on at different steps, all of them together grow by a fraction of that. Intervals only grow with s,
so ``N_g(s)``, the number of a plant's held-out rows that lie in theirs, never falls, and with s in place of the
threshold the theorem of :mod:`models.conformal.coverage` holds word for word: for every plant (or mixture)

    s* = min { s : N_g(s) / (n_g + 1) >= 1 - alpha for every g }   =>   P(y in the interval of step s*) >= 1 - alpha,

provided that the shape is fixed before the held-out rows are seen. It comes from the training rows: counts of their
residuals by tenth, of all plants together, on thresholds 78 % apart. Below and above are the residuals' quantiles at
:data:`TAIL` and ``1 - TAIL`` in each tenth; neighbouring tenths are taken together until they have :data:`LEAST_ROWS`
rows. A bad shape makes intervals wide, never invalid. Coverage is on the average over all estimates of a plant, and
nearer to the stated one at each of them than that of intervals of one width; it is promised for no single tenth.

Sources: lower and upper errors apart and conformal afterwards: Romano, Patterson and Candes 2019; one nested family of
sets: Gupta, Kuchibhotla and Ramdas 2022; bins of the estimate: Bostrom and Johansson 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray, ProblemError
from models.conformal.grid import counts_at_or_below

SPREAD_GRID_NUMBER: Final = 2
"""Number of the question whose answer has these counts beside those on the grid of number 1."""

TENTHS: Final = 10
"""Bins of the estimate."""

TAIL: Final = 0.05
"""Share of the training residuals beyond each end of the shape."""

LEAST_ROWS: Final = 30
"""Training rows from which a shape is told; with fewer in all, every tenth has the same two ends."""

_A_DECADE, _DECADES = 16, 3
_COARSE = 4
"""Thresholds of the held-out rows to one of the training rows."""

_SUBSTEPS = 8
"""Steps from one threshold to the next."""

_MOST_LAG = _SUBSTEPS * _A_DECADE * 3 // 2
"""Thirty times narrower than the widest, and no tenth is narrower."""

STEPS: Final = _SUBSTEPS * _A_DECADE * _DECADES + _MOST_LAG + 1
"""Steps; at the last one each end is 1, and every target of the range is held."""

IntArray = NDArray[np.intp]


def residual_grid(coarse: bool = False) -> FloatArray:
    """Thresholds (T,) of residuals, in rising order: 0 and +-10^(-3 + j / 16), j = 0 .. 48; coarse: each fourth j."""
    above = 10.0 ** (-_DECADES + np.arange(_A_DECADE * _DECADES + 1) / _A_DECADE)
    above = above[::_COARSE] if coarse else above
    return np.concatenate([-above[::-1], [0.0], above])


def tenth_of(estimates: FloatArray) -> IntArray:
    """Tenth (n,), 0 to 9, in which each estimate (n,) lies; one outside the range belongs to the nearest."""
    return np.clip(np.floor(TENTHS * estimates), 0, TENTHS - 1).astype(np.intp)


def residual_counts(estimates: FloatArray, targets: FloatArray, *, coarse: bool = False) -> FloatArray:
    """Residuals at or below each threshold, by tenth of the estimate: (10, T) from estimates and targets (n,)."""
    tenths, residuals = tenth_of(estimates), np.clip(estimates, 0.0, 1.0) - targets
    grid = residual_grid(coarse)
    return np.stack([counts_at_or_below(residuals[tenths == each], grid) for each in range(TENTHS)])


@dataclass(frozen=True)
class Shape:
    """Lags (10,) of the two ends, in steps from 0 (the widest) on, by tenth of the estimate."""

    below: IntArray
    above: IntArray

    def __post_init__(self) -> None:
        """Refuse lags that are none."""
        for lags in (self.below, self.above):
            if lags.shape != (TENTHS,) or (lags < 0).any() or (lags > _MOST_LAG).any():
                raise ProblemError(f"a shape has {TENTHS} lags from 0 to {_MOST_LAG} for each end")

    def held(self, counts: FloatArray) -> FloatArray:
        """Rows (S,) that lie in the interval of each step, from counts (10, T) on the fine grid: they never fall."""
        steps, middle = np.arange(STEPS), counts.shape[1] // 2
        low = middle - _place(steps[:, None] - self.below)
        high = middle + _place(steps[:, None] - self.above)
        tenths = np.arange(TENTHS)
        # No residual is below -1: an end there holds all that are, those of exactly -1 too.
        below = np.where(low == 0, 0.0, counts[tenths, low])
        return np.asarray((counts[tenths, high] - below).sum(axis=1))

    def ends(self, step: int) -> tuple[FloatArray, FloatArray]:
        """Least and largest residual (10,) of each tenth's interval at a step."""
        above = residual_grid()[len(residual_grid()) // 2 :]
        return -above[_place(step - self.below)], above[_place(step - self.above)]


def _place(moved: IntArray) -> IntArray:
    """Threshold that an end has after so many steps of its own: 0 is the threshold 0, 49 is 1."""
    return np.clip(moved // _SUBSTEPS, -1, _A_DECADE * _DECADES) + 1


def shape_of(counts: FloatArray) -> Shape:
    """Shape from counts (10, T) of the training rows' residuals on the coarse grid, of all plants together."""
    grid, rows = residual_grid(coarse=True), counts[:, -1]
    sizes = np.ones((2, TENTHS))
    for group in _groups(rows):
        shares = counts[group].sum(axis=0) / max(rows[group].sum(), 1.0)
        sizes[0, group] = -np.interp(TAIL, shares, grid)
        sizes[1, group] = np.interp(1.0 - TAIL, shares, grid)
    steps = np.floor(_SUBSTEPS * _A_DECADE * np.log10(np.maximum(sizes, 10.0**-_DECADES)))
    below, above = np.minimum(steps.max() - steps, _MOST_LAG).astype(np.intp)
    return Shape(below, above)


def _groups(rows: FloatArray) -> list[list[int]]:
    """Neighbouring bins (B,) together until each group has enough rows; the rest goes with the last. None: []."""
    groups: list[list[int]] = [[]]
    for each, _ in enumerate(rows):
        if rows[groups[-1]].sum() >= LEAST_ROWS:
            groups.append([])
        groups[-1].append(each)
    if len(groups) > 1 and rows[groups[-1]].sum() < LEAST_ROWS:
        last = groups.pop()
        groups[-1].extend(last)
    return groups if rows.sum() >= LEAST_ROWS else []
