r"""The server's operators of AD-LPMM (DRFL, Algorithm 1): proximal and dual steps, residuals, step sizes; closed forms.

Problem (5) of the paper, pi_s standing for ``rho_s lam_s + mean alpha_s >= r_s(w_s)``:

    min q't + theta ||t||_p* - gamma    subject to   t = z + gamma e + eta,   w = w_s,   z_s = pi_s,   eta >= 0

with multipliers sigma, psi_s and zeta_s. The first block (w, t, z) moves, then the second (eta, gamma, w_s, pi_s), each
with the proximal matrix ``c' I - c A'A`` that makes it separable. That needs ``c' >= c lambda_max(A'A)``: lambda_max is
2 for A1 = [I, -I] and S + 1 for A2 = [-e, -I]. The paper takes 2 S c for both; ``tight`` takes 2 c and (S + 1) c, with
which the first block moves S times as far in a step.

The paper has one step size c for all constraints. Risks and weights have units of their own, so ``w = w_s`` may have
another one: that is AD-LPMM with the constraint in other units, and it can save most of the rounds.

Checked against the augmented Lagrangian: equations (6) to (10) and the signs of the dual steps hold as printed, and the
objective of (4) has no gamma because ``q'(gamma e)`` cancels it. Slips of the paper: the proximal terms of E.1 and E.3
lack the square of their norms, and Algorithm 1 gives w a site index that it does not have.

Step sizes are in the units of the data: set after the first round, balanced for a while, then left alone. With S sites,
r their mean risk at w = 0 and g their largest slope there, the duals are of the order 1 / S (zeta, sigma) and
``||g|| / S`` (psi), the heights of the order r and the weights of the order ``r / ||g||``, so

    c = 1 / (S r),      c_w = ||g||^2 / (S r)

have the units that step sizes must have: targets or features in other units change neither iterates nor rounds.

From there each of the two is moved by its own residuals, as in residual balancing (He, Yang and Wang 2000; relative
residuals: Wohlberg 2017): times the root of the primal over the dual residual, each over the size of what it is a
residual of. ``LAST`` rounds later the sizes stand, so what is proved of fixed ones holds from there on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.basics import Arrays, FloatArray
from models.geometry.projections import nearest_in_ball
from models.site_ambiguity.ball import MixtureBall

EVERY, LAST = 10, 120
"""The sizes may change after each ``EVERY``-th round up to ``LAST``."""
_MOST, _WORTH = 3.0, 2.0
"""Largest factor of one change, and the least that is worth one."""


@dataclass(frozen=True)
class Steps:
    """Step size c of the constraints on the heights, that of ``w = w_s``, and c' and c'' over c, for S sites."""

    size: float
    weights: float
    first: float
    second: float

    @staticmethod
    def of(size: float, weights: float, n_sites: int, *, tight: bool) -> Steps:
        """The paper's constants, or the tight ones; ``weights`` 0 stands for the same step size."""
        loose = 2.0 * n_sites
        first, second = (2.0, n_sites + 1.0) if tight else (loose, loose)
        return Steps(size, weights or size, first, second)


@dataclass(frozen=True)
class Heights:
    """Variables of the server beside the weights: t, z and eta (S,), gamma ()."""

    t: FloatArray
    z: FloatArray
    eta: FloatArray
    gamma: float

    @property
    def apart(self) -> FloatArray:
        """``t - z - gamma e - eta``, 0 at a solution."""
        return self.t - self.z - self.gamma - self.eta


@dataclass(frozen=True)
class Local:
    """What the sites last answered: weights w_s (S, D) and risks pi_s (S,)."""

    weights: FloatArray
    risks: FloatArray


@dataclass(frozen=True)
class Duals:
    """Multipliers sigma (S,), psi (S, D) and zeta (S,)."""

    sigma: FloatArray
    psi: FloatArray
    zeta: FloatArray


def consensus(local: Local, duals: Duals, steps: Steps) -> FloatArray:
    """``w = mean_s (w_s - psi_s / c_w)``, (D,): equation (6)."""
    return np.asarray((local.weights - duals.psi / steps.weights).mean(axis=0))


def move_heights(
    old: Heights, local: Local, duals: Duals, steps: Steps, weights: FloatArray, ball: MixtureBall
) -> Heights:
    """Equations (7) to (10); ``weights`` (S,) is the centre of the ball over the sites."""
    c, push = steps.size, old.apart
    z = (local.risks + steps.first * old.z + push + (duals.zeta + duals.sigma) / c) / (1.0 + steps.first)
    u = old.t - ((weights + duals.sigma) / c + push) / steps.first
    t = u - nearest_in_ball(u, ball.radius / (steps.first * c), ball.norm)
    pull = duals.sigma / c + Heights(t, z, old.eta, old.gamma).apart
    eta = np.maximum(old.eta + pull / steps.second, 0.0)
    gamma = old.gamma + (1.0 / c + float(pull.sum())) / steps.second
    return Heights(t, z, eta, gamma)


def move_duals(
    duals: Duals, point: FloatArray, heights: Heights, local: Local, steps: Steps, here: FloatArray
) -> Duals:
    """Dual steps of the constraints; psi and zeta only of the sites that were ``here`` (S,), of 0 and 1."""
    c = steps.size
    return Duals(
        sigma=duals.sigma + c * heights.apart,
        psi=duals.psi + steps.weights * here[:, None] * (point - local.weights),
        zeta=duals.zeta + c * here * (local.risks - heights.z),
    )


def residuals(
    point: FloatArray, heights: Heights, before: Heights, local: Local, local_before: Local, steps: Steps
) -> tuple[float, float]:
    """Norms of the primal and of the dual residual: both 0 at a solution of (5) and only there."""
    primal, dual = height_residuals(heights, before, local.risks, local_before.risks, steps)
    moved = steps.weights * norm((local.weights - local_before.weights).sum(axis=0))
    return float(np.hypot(primal, norm(point - local.weights))), float(np.hypot(dual, moved))


def height_residuals(
    heights: Heights, before: Heights, risks: FloatArray, risks_before: FloatArray, steps: Steps
) -> tuple[float, float]:
    """The part of both residuals that the constraints on the heights have, ``w = w_s`` left out."""
    t, z, eta = heights.t - before.t, heights.z - before.z, heights.eta - before.eta
    gamma = heights.gamma - before.gamma
    moved = gamma + eta
    dual = [
        moved + steps.first * t - (t - z),
        risks - risks_before - moved + steps.first * z + (t - z),
        steps.second * eta - moved,
        np.array([steps.second * gamma - moved.sum()]),
    ]
    primal = np.concatenate([heights.apart, risks - heights.z])
    return norm(primal), steps.size * norm(np.concatenate(dual))


def norm(array: FloatArray) -> float:
    """Euclidean norm of all entries."""
    return float(np.sqrt(np.vdot(array, array)))


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
