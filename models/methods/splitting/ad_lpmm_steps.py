r"""Step sizes of AD-LPMM in the units of the data: set after the first round, balanced for a while, then left alone.

With S sites, r their mean risk at w = 0 and g their largest slope there, the duals are of the order 1 / S (zeta, sigma)
and ``||g|| / S`` (psi), the heights of the order r and the weights of the order ``r / ||g||``, so

    c = 1 / (S r),      c_w = ||g||^2 / (S r)

have the units that step sizes must have: targets or features in other units change neither iterates nor rounds.

From there each of the two is moved by its own residuals, as in residual balancing (He, Yang and Wang 2000; relative
residuals: Wohlberg 2017): times the root of the primal over the dual residual, each over the size of what it is a
residual of. ``LAST`` rounds later the sizes stand, so what is proved of fixed ones holds from there on.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from models.basics import Arrays, FloatArray
from models.methods.splitting.ad_lpmm_operators import Duals, Heights, Local, Steps, height_residuals, norm

EVERY, LAST = 10, 120
"""The sizes may change after each ``EVERY``-th round up to ``LAST``."""
_MOST, _WORTH = 3.0, 2.0
"""Largest factor of one change, and the least that is worth one."""


def first_sizes(answers: Mapping[str, Arrays], n_sites: int) -> FloatArray:
    """Sizes (c, c_w) from the answers at w = 0; where a risk or slope is 0 there, 1 stands for it."""
    risk = float(np.mean([float(answer["risk"]) for answer in answers.values()])) or 1.0
    slope = max(norm(answer["slope"]) for answer in answers.values()) or 1.0
    return np.array([1.0, slope * slope]) / (n_sites * risk)


def balanced(
    number: int,
    steps: Steps,
    point: FloatArray,
    heights: tuple[Heights, Heights],
    local: tuple[Local, Local],
    duals: Duals,
) -> FloatArray:
    """Sizes (c, c_w) after round ``number``; ``heights`` and ``local`` are now and before."""
    sizes = np.array([steps.size, steps.weights])
    if number % EVERY or number > LAST:
        return sizes
    now, before = local
    n_sites = now.risks.shape[0]
    apart, moved = height_residuals(*heights, now.risks, before.risks, steps)
    tall, price = max(norm(now.risks), norm(heights[0].z)), float(np.hypot(norm(duals.sigma), norm(duals.zeta)))
    sizes[0] *= _factor(apart * price, moved * tall)
    far, long = norm(point - now.weights), max(norm(now.weights), float(np.sqrt(n_sites)) * norm(point))
    sizes[1] *= _factor(far * norm(duals.psi), steps.weights * norm(now.weights - before.weights) * long)
    return sizes


def _factor(primal: float, dual: float) -> float:
    if not (primal > 0 and dual > 0):
        return 1.0
    factor = float(np.clip(np.sqrt(primal / dual), 1.0 / _MOST, _MOST))
    return factor if max(factor, 1.0 / factor) > _WORTH else 1.0
