r"""Projections of one point on several level sets of a cut model, some of them made of two others.

The projection of c on a level set is ``c - lambda s``, s the slope that its multipliers make of the cuts and of the
norm. Between two levels a convex combination of both projections is ``c - lambda s`` too, with ``lambda`` combined and
the multipliers combined by it, and by convexity the model there is at most the level in between. It need not be the
nearest such point: a question may be asked anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from models.cuts.cut_model import ModelPoint

_EVERY = 2
"""Of so many levels, going upwards, one is projected on."""


def solved_levels(levels: Sequence[float]) -> list[float]:
    """Which of the levels are projected on, going upwards: every second one from the lowest on, and the highest."""
    upwards = sorted(levels)
    return sorted({*upwards[::_EVERY], *upwards[-1:]})


def between(at: Mapping[float, ModelPoint], level: float) -> ModelPoint:
    """The projection on a level, or what two others around it make; ``at``: the projections by their levels."""
    if level in at:
        return at[level]
    low, high = max(each for each in at if each < level), min(each for each in at if each > level)
    share = (level - low) / (high - low)
    below, above = (1.0 - share) * at[low].level_price, share * at[high].level_price
    price = below + above
    if price <= 0.0:
        return at[high]
    mine = below / price
    return ModelPoint(
        (1.0 - share) * at[low].point + share * at[high].point,
        mine * at[low].multipliers + (1.0 - mine) * at[high].multipliers,
        price,
        mine * at[low].mixture + (1.0 - mine) * at[high].mixture,
    )
