"""Numbers that a method draws: the same for the same seed, round and site, so a repeated round is the same round."""

from __future__ import annotations

import numpy as np

_SITES, _ROUNDS = 1, 2


def site_draw(seed: float, number: int, site: int) -> int:
    """What a site draws its batches from in round ``number``: a whole number below 2^32, so exact in float64."""
    return int(np.random.SeedSequence([_SITES, int(seed), number, site]).generate_state(1)[0])


def round_draws(seed: float, number: int) -> np.random.Generator:
    """What the server draws from in round ``number``: which sites take part, and the like."""
    return np.random.default_rng([_ROUNDS, int(seed), number])
