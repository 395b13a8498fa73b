r"""Distance to a bundle of cuts: a small quadratic program that grows by one cut at a time.

    min  linear t + curvature/2 t^2 + 1/2 ||w - centre||^2    subject to    t >= h_j + <g_j, w - centre>,   j = 1..m

(curvature 0 or above; with curvature 0, ``linear > 0``). Its dual is ``min 1/2 y'(G G')y - h'y`` over y >= 0, where y
sums to ``linear + curvature t``. An active set holds the cuts with y_j > 0; on it the program is one symmetric system

    [G G'  1] [y]   [ h ]
    [1'   -k] [t] = [ l ]

which a new cut enlarges by one row, as in the dual method of Goldfarb and Idnani (1983) and in Lawson and Hanson's
non-negative least squares.
"""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray

_ROUNDING = 1e-14  # share of the heights up to which a violation is rounding
_EXCHANGES = 60  # cuts taken in for one new cut, where a few do: only rounding can go on so long
_STIFFENING = 1e-13
"""Share added to the diagonal: where a new cut depends on those held, the system then points to the one to let go."""


class CutProgram:
    """The program and its solution so far; ``heights`` are the cuts' values at the centre."""

    def __init__(self, centre: FloatArray, linear: float, curvature: float) -> None:
        """Start without cuts."""
        self._centre, self._linear, self._curvature = centre, linear, curvature
        self._slopes = np.zeros((8, centre.shape[0]))
        self._heights = np.zeros(8)
        self._gram = np.zeros((8, 8))
        self._count = 0
        self._active: list[int] = []
        self._held = np.zeros(0)
        self._top = -linear / curvature if curvature > 0 else -np.inf

    def add(self, slope: FloatArray, height: float) -> None:
        """Take in a cut that is ``height`` at the centre, and solve again."""
        j = self._count
        if j == self._heights.shape[0]:
            self._grow()
        self._slopes[j], self._heights[j] = slope, height
        self._count += 1
        self._gram[j, : j + 1] = self._gram[: j + 1, j] = self._slopes[: j + 1] @ slope
        self._solve()

    def point(self) -> FloatArray:
        """Minimiser w (D,)."""
        return np.asarray(self._centre - self._held @ self._slopes[self._active])

    def multipliers(self) -> FloatArray:
        """Multipliers y (m,) of the cuts."""
        found = np.zeros(self._count)
        found[self._active] = self._held
        return found

    def _solve(self) -> None:
        """Take in the most violated cut until none is."""
        if not self._active and self._curvature == 0:
            self._active, self._held = [0], np.array([self._linear])
            self._top = float(self._heights[0] - self._linear * self._gram[0, 0])
        for _ in range(_EXCHANGES):
            m = self._count
            height = self._heights[:m] - self._gram[:m, self._active] @ self._held
            violation = height - self._top
            violation[self._active] = -np.inf
            worst = int(np.argmax(violation))
            if violation[worst] <= _ROUNDING * (abs(self._top) + abs(height[worst])) or not self._take_in(worst):
                return

    def _take_in(self, cut: int) -> bool:
        """Hold one more cut, let go of those whose multiplier would fall below 0; False: no progress is possible."""
        active, held = [*self._active, cut], np.append(self._held, 0.0)
        while True:
            wanted, top = self._system(active)
            if not np.isfinite(wanted).all():
                return False
            if wanted[-1] <= 0 and active[-1] == cut:
                return False
            if (wanted > 0).all():
                self._active, self._held, self._top = active, wanted, top
                return True
            falling = wanted <= 0
            step = float((held[falling] / (held[falling] - wanted[falling])).min())
            held = held + step * (wanted - held)
            held[falling & (held <= _ROUNDING * held.max())] = 0.0
            keep = held > 0
            if keep.all():
                keep[int(np.argmin(np.where(falling, held, np.inf)))] = False
            active = [j for j, stays in zip(active, keep, strict=True) if stays]
            held = held[keep]

    def _system(self, active: list[int]) -> tuple[FloatArray, float]:
        """Multipliers and height with these cuts met with equality."""
        n = len(active)
        matrix = np.ones((n + 1, n + 1))
        matrix[:n, :n] = self._gram[np.ix_(active, active)]
        matrix[np.arange(n), np.arange(n)] *= 1.0 + _STIFFENING
        matrix[n, n] = -self._curvature
        aim = np.append(self._heights[active], self._linear)
        try:
            found = np.linalg.solve(matrix, aim)
        except np.linalg.LinAlgError:
            return np.full(n, np.nan), np.nan
        return found[:n], float(found[n])

    def _grow(self) -> None:
        n = self._heights.shape[0]
        self._slopes = np.vstack([self._slopes, np.zeros_like(self._slopes)])
        self._heights = np.append(self._heights, np.zeros(n))
        gram = np.zeros((2 * n, 2 * n))
        gram[:n, :n] = self._gram
        self._gram = gram
