r"""Whole numbers with probability proportional to ``exp(-k^2 / (2 sigma^2))``, drawn exactly.

Rounded float64 normals are not that: their last digits and their tail depend on the generator, and attacks on such
digits are known (Mironov 2012). Here nothing but whole numbers is computed (Canonne, Kamath and Steinke 2020,
algorithms 1 to 3). The numbers come from the operating system (``secrets``); only simulations and tests give others.

A sum of k such numbers is, for the sigmas of this project (above 2^10), as near to one with ``sqrt(k) sigma`` as
``10 sum_j exp(-2 pi^2 sigma^2 j / (j + 1)) < 1e-300`` (Kairouz, Liu and Steinke 2021, theorem 1): noise that plants add
each for themselves counts as noise of the sum of their variances.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final

from models.basics import ProblemError

RandBelow = Callable[[int], int]
"""Uniform whole number from 0 up to, not with, its argument."""

LEAST_SIGMA: Final = 2**10
"""Below it sums of discrete Gaussians are not as near to one of their own as said above."""


def discrete_gaussian(sigma: int, randbelow: RandBelow = secrets.randbelow) -> int:
    """One number; ``sigma`` at or above 1. :class:`ProblemError` for another, or one that is not whole."""
    if sigma < 1:
        raise ProblemError(f"the noise needs a whole sigma at or above 1, got {sigma}")
    scale, square = sigma + 1, sigma * sigma
    while True:
        drawn = _discrete_laplace(scale, randbelow)
        off = abs(drawn) * scale - square
        if _happens(off * off, 2 * square * scale * scale, randbelow):
            return drawn


def _discrete_laplace(scale: int, randbelow: RandBelow) -> int:
    """Probability proportional to ``exp(-|k| / scale)``."""
    while True:
        rest = randbelow(scale)
        if not _happens(rest, scale, randbelow):
            continue
        whole = 0
        while _happens(1, 1, randbelow):
            whole += 1
        size, is_negative = rest + scale * whole, randbelow(2) == 1
        if not (is_negative and size == 0):
            return -size if is_negative else size


def _happens(numerator: int, denominator: int, randbelow: RandBelow) -> bool:
    """True with probability ``exp(-numerator / denominator)``."""
    while numerator > denominator:
        if not _happens(1, 1, randbelow):
            return False
        numerator -= denominator
    count = 1
    while randbelow(denominator * count) < numerator:
        count += 1
    return count % 2 == 1
