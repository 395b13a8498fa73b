r"""What a site tells of a ball around the mixture of all sites' rows: the modified loss of WAFL.

The worst case over one ball of radius rho around ``sum_s q_s P_s`` (Nguyen et al. 2022; DRFL section 4.1) is

    min_lam  rho lam + sum_s q_s f_s(w, lam),    f_s(w, lam) = mean_i sup_{x, y} L(w; x, y) - lam d((x, y), (x_i, y_i)),

so for a given price lam of transport each site has a loss of its own rows and no ball. For features without bounds, c
the Lipschitz constant of the loss, ``lam = c t`` and ``t >= ||w||_*``:

- classification: ``f_s = mean_i max(L(m_i), L(-m_i) - label_flip_cost lam)``;
- regression: ``f_s = mean_i L(z_i)``, and lam is at least ``c / label_flip_cost`` too: what a move of a target costs.

With ``rho = sum_s q_s radius_s`` the site's share of the first term, ``radius_s lam``, is part of its answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.basics import Arrays, FloatArray, ProblemError
from models.problem import SiteProblem


@dataclass(frozen=True)
class WaflSite:
    """What a site answers to a point and a price.

    Message: ``point`` w (D,), ``price`` t (). Answer: ``risk`` (), ``slope`` (D,), ``price_slope`` (), ``floor`` ().
    ``risk`` is ``radius lam + f_s(w, lam)``, and at any (u, t') at least
    ``risk + <slope, u - w> + price_slope (t' - t)`` and at least ``floor t'``.
    """

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """Modified loss, its slopes, and what it is at least."""
        if problem.spec.support is not None:
            raise ProblemError("the method wafl is for features without bounds: leave the support out")
        risk, slope, price_slope = priced_risk(message["point"], float(message["price"]), problem)
        floor = problem.spec.radius * problem.spec.loss.lipschitz
        return {
            "risk": np.array(risk),
            "slope": slope,
            "price_slope": np.array(price_slope),
            "floor": np.array(floor),
        }

    def shapes(self, dimension: int, n_swings: int = 0) -> dict[str, tuple[int, ...]]:
        """Shapes of a valid answer."""
        return {"risk": (), "slope": (dimension,), "price_slope": (), "floor": ()}


def priced_risk(weights: FloatArray, price: float, problem: SiteProblem) -> tuple[float, FloatArray, float]:
    """``radius lam + f_s(w, lam)`` at weights (D,) and ``lam = lipschitz price``; subgradient in weights and price."""
    spec, features = problem.spec, problem.features
    steep, count = spec.loss.lipschitz, problem.labels.shape[0]
    scores = features @ weights[: features.shape[1]] + (weights[-1] if spec.fit_intercept else 0.0)
    if spec.loss.task == "regression":
        least = 1.0 / spec.label_flip_cost
        residuals = scores - problem.labels
        losses, rates = spec.loss.value(residuals), spec.loss.slope(residuals)
        toll, toll_rate = max(price, least), float(price >= least)
        flips = 0.0
    else:
        margins = problem.labels * scores
        kept, flipped = spec.loss.value(margins), np.full(count, -np.inf)
        if np.isfinite(spec.label_flip_cost):
            flipped = spec.loss.value(-margins) - spec.label_flip_cost * steep * price
        flip = flipped > kept
        losses = np.where(flip, flipped, kept)
        rates = problem.labels * np.where(flip, -spec.loss.slope(-margins), spec.loss.slope(margins))
        toll, toll_rate = price, 1.0
        flips = spec.label_flip_cost * steep * float(problem.counts[flip].sum()) / count if flip.any() else 0.0
    rates = problem.weigh(rates)
    slope = rates @ features / count
    if spec.fit_intercept:
        slope = np.append(slope, rates.mean())
    mean_loss = float(problem.weigh(losses).mean())
    return spec.radius * steep * toll + mean_loss, slope, spec.radius * steep * toll_rate - flips
