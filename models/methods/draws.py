"""Numbers that a method draws: the same for the same seed, round and site, so a repeated round is the same round."""

from __future__ import annotations

import numpy as np

from models.problem import FloatArray

_SITES, _ROUNDS = 1, 2


def site_draw(seed: float, number: int, site: int) -> FloatArray:
    """What a site draws its batches from in round ``number``: a whole number below 2^32, exact in float64; shape ()."""
    state = np.random.SeedSequence([_SITES, int(seed), number, site]).generate_state(1)
    return np.array(float(state[0]))


def round_draws(seed: float, number: int) -> np.random.Generator:
    """What the server draws from in round ``number``: which sites take part, and the like."""
    return np.random.default_rng([_ROUNDS, int(seed), number])
