r"""Planes of several classes whose rows are taken for normal around their means, with one spread.

    x | k ~ N(mu_k, W) with share pi_k.    Head k against the rest, with price rho of its size:
    min_{a, b}  sum_j pi_j E log(1 + exp(-y_j (<a, x> + b))) + rho ||a||_2,    y_k = 1, y_j = -1 else

For two classes the minimum lies on ``(W + lambda I)^-1 (mu_k - mu_rest)`` for some lambda (there the gradient is zero),
with more it is looked for there. What the K scores then say together is Fisher's discriminant on them:
``B = M S^T (S W S^T)^-1 S`` for heads S and means M, intercepts ``log pi_k - <B_k, mu_k> / 2`` (Hastie, Tibshirani and
Friedman 2009, sections 4.3 and 4.4). It stands for the softmax of these scores, by which a training's planes are
coupled (``coupling``), and needs no row: means, shares and spread are sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from models.basics import FloatArray

_NORMAL = np.array([NormalDist().inv_cdf((k + 0.5) / 32) for k in range(32)])  # equally likely
_PENALTIES = np.logspace(-7, 2, 28)  # lambda in parts of the mean spread
_LEAST_SPREAD = 1e-9  # in the same parts: a guard's other answer may bend it downwards
_STEPS = 30  # of Newton's method in size and intercept
_NEAR = 1e-9  # rounding of a probability
_RIDGE = 1e-9  # of the scores' mean spread, where heads depend on one another


@dataclass(frozen=True)
class NormalClasses:
    """``shares`` (K,), ``means`` (K, R) and ``within`` (R, R), in an orthonormal basis of R directions."""

    shares: FloatArray
    means: FloatArray
    within: FloatArray

    def planes(self, price: float) -> FloatArray:
        """Planes (K, R + 1) of heads that pay ``price`` for their size, put together; the intercept last."""
        sizes, turned = np.linalg.eigh((self.within + self.within.T) / 2.0)
        mean = float(np.maximum(sizes, 0.0).mean())
        scale = mean if mean > 0.0 else 1.0
        spread, means = np.maximum(sizes, _LEAST_SPREAD * scale), self.means @ turned
        heads = np.stack([self._head(k, means, spread, scale, price) for k in range(len(self.shares))])
        among = (heads * spread) @ heads.T
        among += (_RIDGE * float(np.trace(among)) / len(heads) + np.finfo(float).tiny) * np.eye(len(heads))
        joint = means @ heads.T @ np.linalg.solve(among, heads)
        intercepts = np.log(self.shares) - 0.5 * (joint * means).sum(axis=1)
        return np.column_stack([joint @ turned.T, intercepts])

    def _head(self, k: int, means: FloatArray, spread: FloatArray, scale: float, price: float) -> FloatArray:
        """Direction (R,) of a head with its size, where the spread (R,) is along the axes."""
        apart = means[k] - self.shares @ means  # along the line from the other classes' middle, too
        along = apart / (spread + scale * _PENALTIES[:, None])  # (L, R)
        lengths = np.linalg.norm(along, axis=1)
        if not lengths.max() > 0.0:
            return np.zeros(len(spread))
        along /= lengths[:, None]
        risks, sizes = self._sized(k, along @ means.T, np.sqrt((along**2) @ spread), price)
        best = int(np.argmin(risks))
        return np.asarray(sizes[best] * along[best])

    def _sized(self, k: int, centres: FloatArray, spread: FloatArray, price: float) -> tuple[FloatArray, FloatArray]:
        """Least risks (L,) over size and intercept, and the sizes; classes' scores at size 1: (L, K) and (L,)."""
        sides = np.where(np.arange(len(self.shares)) == k, 1.0, -1.0)
        scores = centres[:, :, None] + spread[:, None, None] * _NORMAL  # (L, K, T)
        weights = np.broadcast_to(self.shares[:, None] / len(_NORMAL), scores.shape[1:])

        def risk(size: FloatArray, offset: FloatArray) -> FloatArray:
            margins = sides[:, None] * (size[:, None, None] * scores + offset[:, None, None])
            return np.asarray((weights * np.logaddexp(0.0, -margins)).sum(axis=(1, 2)) + price * size)

        size = np.zeros(len(scores))
        offset = np.full(len(scores), np.log(self.shares[k] / (1.0 - self.shares[k])))
        known = risk(size, offset)
        damping = np.full(len(scores), 1e-3)
        for _ in range(_STEPS):
            tops = 1.0 / (1.0 + np.exp(-np.clip(size[:, None, None] * scores + offset[:, None, None], -500.0, 500.0)))
            pull, bend = weights * (tops - (sides[:, None] > 0)), weights * tops * (1.0 - tops)
            slope = np.stack([(pull * scores).sum(axis=(1, 2)) + price, pull.sum(axis=(1, 2))], axis=1)
            curve = np.empty((len(scores), 2, 2))
            curve[:, 0, 0] = (bend * scores**2).sum(axis=(1, 2))
            curve[:, 0, 1] = curve[:, 1, 0] = (bend * scores).sum(axis=(1, 2))
            curve[:, 1, 1] = bend.sum(axis=(1, 2))
            trace = curve[:, 0, 0] + curve[:, 1, 1]
            curve[:, [0, 1], [0, 1]] += (damping * trace + 1e-12)[:, None]
            step = np.linalg.solve(curve, slope[:, :, None])[:, :, 0]
            tried = np.maximum(size - step[:, 0], 0.0), offset - step[:, 1]
            found = risk(*tried)
            better = found < known
            gained = np.where(better, known - found, 0.0)
            size, offset = np.where(better, tried[0], size), np.where(better, tried[1], offset)
            known, damping = np.where(better, found, known), np.where(better, damping / 4.0, damping * 8.0)
            if better.all() and gained.max() < _NEAR:
                break
        return known, size
