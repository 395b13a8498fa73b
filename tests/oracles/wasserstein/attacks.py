"""Random attacks: distributions in the ball, built move by move, flip by flip; each is a bound from below."""

from __future__ import annotations

import numpy as np

from tests.oracles.wasserstein.losses import Array
from tests.oracles.wasserstein.problem import Box, OracleSite, Polytope


def random_attack(random: np.random.Generator, site: OracleSite, plane: Array, intercept: float) -> float:
    """Mean loss under one random distribution within the radius and the support.

    Every row moves somewhere, along the plane or anyhow, and some flip; where that costs more than the radius the moves
    are shortened, or only a share of the mass goes.
    """
    n, d = site.points.shape
    p = plane.shape[0]
    aim = random.normal(size=(n, d)) * random.choice([0.0, 1.0], size=(1, d), p=[0.2, 0.8])
    if random.random() < 0.5 and plane.any():
        aim[:, :p] = np.sign(plane) * random.choice([-1.0, 1.0], n)[:, None]
    scale = np.abs(site.points).max() + site.radius * n if site.support is None else np.abs(site.points).max() + 1.0
    moves = aim * scale * random.choice([1e-3, 1.0, 1e3])
    if site.loss.regression and np.isinf(site.flip_cost):
        moves[:, p:] = 0.0
    moves = _inside(site, moves) * random.choice([1.0, random.random()])
    signs = np.ones(n)
    if not site.loss.regression and np.isfinite(site.flip_cost):
        signs[random.random(n) < random.choice([0.0, 0.3, 1.0])] = -1.0
    values = site.loss.value(site.arguments(plane, intercept, np.zeros_like(moves), site.labels))
    moving, flipping = site.move_cost(moves), np.where(signs < 0, min(site.flip_cost, 1e300), 0.0)
    if random.random() < 0.5 and 0 < site.radius - flipping.mean() < moving.mean():
        moves = moves * ((site.radius - flipping.mean()) / moving.mean())
        moving = site.move_cost(moves)
    attacked = site.loss.value(site.arguments(plane, intercept, moves, signs * site.labels))
    cost = float((moving + flipping).mean())
    share = 1.0 if cost <= site.radius else site.radius / cost
    return float(((1.0 - share) * values + share * attacked).mean())


def _inside(site: OracleSite, moves: Array) -> Array:
    """Moves cut where they meet a wall."""
    if isinstance(site.support, Box):
        p, box = site.features.shape[1], site.support
        kept = np.clip(site.features + moves[:, :p], box.low, box.high) - site.features
        if not site.loss.regression:
            return kept
        target = np.clip(site.labels + moves[:, -1], box.target_low, box.target_high) - site.labels
        return np.column_stack([kept, target])
    if isinstance(site.support, Polytope):
        reach = moves @ site.support.matrix.T
        room = np.maximum(site.support.limits - site.points @ site.support.matrix.T, 0.0)
        share = np.divide(room, reach, out=np.ones_like(reach), where=reach > room).min(axis=1)
        return np.asarray(moves * share[:, None])
    return moves
