r"""How far from its question the end of a site's own steps can lie, whatever its rows: the server holds answers to it.

- The step of ADMM, ``argmin r(w) + ridge ||w||^2 + penalty/2 ||w - c||^2``, ends at
  ``(penalty c - v) / (penalty + 2 ridge)``, v a subgradient of the risk there.
- That of AD-LPMM, ``argmin s/2 (r(w) - b)_+^2 + 1/2 ||w - c||^2``, ends at ``c - s (r(w) - b)_+ v``, and the risk there
  is no larger than at c.
- J gradient steps, ``u <- u - h (grad f(u) + correction + proximal (u - w) + ridge u)``, move no entry by more than
  ``h (G + |correction| + ridge |w|) (1 + a + .. + a^(J - 1))``, ``a = |1 - h (proximal + ridge)|``.

Entries of v are at most ``lipschitz (1 + radius)`` for the rows and ``radius lipschitz`` each for norm and walls, those
of a gradient at most G = lipschitz, for scaled features lie in [0, 1]. A loss without a Lipschitz constant has no such
end, nor has a network.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.basics import Arrays, FloatArray
from models.losses.base import Loss
from models.methods.guard import FIRST_MOVE, MOVES
from models.methods.local_sgd.feddro import FedDroSite
from models.methods.local_sgd.objectives.network import NetworkObjective
from models.methods.local_sgd.objectives.softmax import SoftmaxObjective
from models.methods.local_sgd.site import LocalStepsSite
from models.methods.site_answers import AdmmSite, RestatedSite
from models.methods.splitting.ad_lpmm_site import DrflSite
from models.worst_case.risk_range import steepest_slope

_ASIDE: Final = FIRST_MOVE * 3.0 ** (MOVES - 1)
"""How far a guard moves a centre at most, in parts of its size and of 1."""
_SOLVER: Final = 2.0
"""A local solver may end so many times as far as the exact step: a wide bound convicts nobody who is honest."""
_PARTS: Final = 1.5
"""Batches of an epoch are at most one more than so many times 1 / batch: of 1.5 rows one is taken."""


@dataclass(frozen=True)
class Reach:
    """No end is farther from ``where`` (D,) than ``most`` (D,), entry by entry."""

    where: FloatArray
    most: FloatArray


def reach(
    half: object, asked: Arrays, parameters: Mapping[str, float], loss: Loss, radius: float,
    highest: Callable[[FloatArray], float],
) -> Reach | None:
    """Where the steps of a method's site ``half`` may end, asked by the message of one head; None: no bound is known.

    ``parameters``: all of the method's. ``radius``: of the site's ball. ``highest`` (w): the largest risk of any rows.
    """
    if isinstance(half, RestatedSite):
        half = half.half
    if isinstance(half, AdmmSite | DrflSite):
        steep = _SOLVER * (steepest_slope(loss, radius) + 2.0 * radius * loss.lipschitz)
        found = _of_admm(asked, steep) if isinstance(half, AdmmSite) else _of_ad_lpmm(asked, steep, highest)
    elif isinstance(half, LocalStepsSite) and not isinstance(half.objective, NetworkObjective):
        steep = 1.0 if isinstance(half.objective, SoftmaxObjective) else loss.lipschitz
        found = _of_steps(half, asked, parameters, steep)
    else:
        return None
    return found if np.isfinite(found.most).all() else None


def _of_admm(asked: Arrays, steep: float) -> Reach:
    centre, penalty = asked["centre"], float(asked["penalty"])
    stiff = penalty + 2.0 * float(asked["ridge"])
    most = _aside(centre) + (steep / stiff if stiff > 0 else math.inf)
    return Reach(centre * (penalty / stiff) if stiff > 0 else centre, np.full_like(centre, most))


def _of_ad_lpmm(asked: Arrays, steep: float, highest: Callable[[FloatArray], float]) -> Reach:
    stiffness, centre = float(asked["stiffness"]), asked["centre"]
    if stiffness == 0.0:
        return Reach(asked["point"], np.zeros_like(centre))
    aside = _aside(centre)
    above = max(highest(centre) + steep * centre.size * aside - float(asked["target"]), 0.0)
    return Reach(centre, np.full_like(centre, aside + stiffness * above * steep))


def _of_steps(half: LocalStepsSite, asked: Arrays, parameters: Mapping[str, float], steep: float) -> Reach:
    point, size, ridge = asked["point"], float(asked["step_size"]), parameters.get("ridge", 0.0)
    if isinstance(half, FedDroSite):  # no step is steeper than one over the share of the site
        steep /= max(float(asked["share"]), np.finfo(np.float64).tiny)
    own = 2.0 if asked.get("own_control", np.zeros(())).any() else 1.0
    pushed = size * (own * steep + np.abs(asked["correction"]) + 2.0 * ridge * np.abs(point))
    kept = abs(1.0 - size * (parameters.get("proximal", 0.0) + ridge))
    return Reach(point, pushed * _grown(kept, _steps(half, parameters)))


def _steps(half: LocalStepsSite, parameters: Mapping[str, float]) -> int:
    """Most steps that a site of any number of rows takes."""
    if half.one_step:
        return 1
    whole = math.floor(_PARTS / parameters.get("batch", 1.0)) + 1
    return int(parameters.get("local_steps", 0)) or int(parameters.get("epochs", 1)) * whole


def _grown(factor: float, steps: int) -> float:
    """``1 + a + .. + a^(steps - 1)``; infinite where that is no number any more."""
    if factor == 1.0:
        return float(steps)
    if steps * math.log(max(factor, 1e-300)) > 600.0:
        return math.inf
    return (1.0 - factor**steps) / (1.0 - factor)


def _aside(centre: FloatArray) -> float:
    return _ASIDE * max(1.0, float(np.abs(centre).max(initial=0.0)))
