r"""WAFL: one ball around the mixture of all sites' rows, federated exactly by a level bundle in (w, price).

    F(w) = min_{t >= ||w||_*} sum_s q_s (radius_s c t + f_s(w, c t)),      f_s the modified loss of site s

The sites answer at a point w and a price t with what is a cut in both. Cuts are those of ``cuts.cut_model`` with the
slope in t in the place of the norm weight: there it may be below 0, since a higher price makes flips worth less, and
the norm's column of the cone programs, an upper bound of the norm, is the price. The floors ``radius_s c t`` keep it
finite. The bound of ``cuts.lower_bound`` holds as it is: with ``sum = C + <v, w> + Z t`` and Phi the floors' share,

    (1 - s) (C + <v, w> + Z t) + s Phi t >= (1 - s) C     for t >= ||w||_* and s = (||v|| - Z) / (||v|| - Z + Phi).

The radius is the sites' weighted mean; site weights are fixed. The next point is the projection of the best one on a
level set, the next price the best one of the model there. (The paper itself takes gradient steps at a fixed price.)

What a site tells is its modified loss f_s. The worst case over one ball of radius rho around ``sum_s q_s P_s`` (Nguyen
et al. 2022; DRFL section 4.1) is

    min_lam  rho lam + sum_s q_s f_s(w, lam),    f_s(w, lam) = mean_i sup_{x, y} L(w; x, y) - lam d((x, y), (x_i, y_i)),

so for a given price lam of transport each site has a loss of its own rows and no ball. For features without bounds, c
the Lipschitz constant of the loss, ``lam = c t`` and ``t >= ||w||_*``:

- classification: ``f_s = mean_i max(L(m_i), L(-m_i) - label_flip_cost lam)``;
- regression: ``f_s = mean_i L(z_i)``, and lam is at least ``c / label_flip_cost`` too: what a move of a target costs.

With ``rho = sum_s q_s radius_s`` the site's share of the first term, ``radius_s lam``, is part of its answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from models.basics import Arrays, FloatArray, ProblemError
from models.cuts.bounds import record
from models.cuts.carried_proof import CarriedProof
from models.cuts.cut_model import CutModel
from models.cuts.cut_program import minimise, project
from models.cuts.evidence import Evidence, cut_model
from models.cuts.lower_bound import lower_bound
from models.geometry.projections import least_where
from models.methods.answer_arrays import stacked
from models.methods.certified import PointServer, PointState, is_still
from models.methods.guard import Guard
from models.methods.row_account import Accounted, RowAccount
from models.problem import ServerProblem, SiteProblem


@dataclass(frozen=True)
class WaflSite:
    """What a site answers to a point and a price.

    Message: ``point`` w (D,), ``price`` t (). Answer: ``risk`` (), ``slope`` (D,), ``price_slope`` (), ``floor`` ().
    ``risk`` is ``radius lam + f_s(w, lam)``, and at any (u, t') at least
    ``risk + <slope, u - w> + price_slope (t' - t)`` and at least ``floor t'``.
    """

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """Modified loss, its slopes, and what it is at least."""
        return self.accounted(problem, message, parameters).arrays

    def accounted(
        self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float], guard: Guard | None = None
    ) -> Accounted:
        """The answer with the rows of its slope; its height is the risk, so a guard has no other to choose.

        :class:`ProblemError` where there is a support.
        """
        if problem.spec.support is not None:
            raise ProblemError("the method wafl is for features without bounds: leave the support out")
        risk, slope, price_slope, rows = priced_rows(message["point"], float(message["price"]), problem)
        floor = problem.spec.radius * problem.spec.loss.lipschitz
        arrays = {
            "risk": np.array(risk),
            "slope": slope,
            "price_slope": np.array(price_slope),
            "floor": np.array(floor),
        }
        return Accounted(arrays, RowAccount((rows,)))

    def shapes(self, dimension: int, n_swings: int = 0) -> dict[str, tuple[int, ...]]:
        """Shapes of a valid answer."""
        return {"risk": (), "slope": (dimension,), "price_slope": (), "floor": ()}


def priced_risk(weights: FloatArray, price: float, problem: SiteProblem) -> tuple[float, FloatArray, float]:
    """``radius lam + f_s(w, lam)`` at weights (D,) and ``lam = lipschitz price``; subgradient in weights and price."""
    risk, slope, price_slope, _ = priced_rows(weights, price, problem)
    return risk, slope, price_slope


def priced_rows(
    weights: FloatArray, price: float, problem: SiteProblem
) -> tuple[float, FloatArray, float, FloatArray]:
    """As :func:`priced_risk`, and the coefficients (N,) of the rows in the slope."""
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
    return spec.radius * steep * toll + mean_loss, slope, spec.radius * steep * toll_rate - flips, rates / count


@dataclass(frozen=True)
class WaflState(PointState):
    """Evidence over points (w, t) (D + 1,), the ``point`` asked next, and ``floor`` (G,) of the sites.

    ``stagnated``: the same point would be asked again, or the risk is 0 but for rounding.
    """

    floor: FloatArray


@dataclass(frozen=True)
class WaflServer(PointServer[WaflState]):
    """Server half of WAFL."""

    state = WaflState
    asks = WaflSite()
    per_site = ("floor",)

    def carried_proof(self, state: WaflState, problem: ServerProblem) -> CarriedProof | None:
        """None: its bounds are of another problem than the cuts of the sites' own risks."""
        return None

    def as_cuts(self, answer: Arrays) -> Arrays:
        """As a cut in weights and price, the floor being another one."""
        floor = np.zeros(answer["slope"].shape[0] + 1)
        floor[-1] = answer["floor"]
        zero = np.array(0.0)
        return {**_joint(answer), "minorant_offset": zero, "minorant_slope": floor, "minorant_norm_weight": zero}

    def init(self, problem: ServerProblem) -> WaflState:
        """Nothing known; the first weights and the first price are zero.

        :class:`ProblemError` without a radius, and for unlike flip costs.
        """
        if all(site.radius == 0 for site in problem.sites):
            raise ProblemError("method wafl needs a radius above 0; without a ball take the method standard")
        if len({site.label_flip_cost for site in problem.sites}) > 1:
            raise ProblemError("method wafl has one ball around all sites: they must have the same label flip cost")
        extended = replace(problem, n_features=problem.n_features + 1)
        return WaflState(Evidence.empty(extended), np.zeros(problem.dimension + 1), np.zeros(len(problem.sites)))

    def messages(self, state: WaflState, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """The same point and price for every site."""
        point, price = state.point[:-1], np.array(state.point[-1])
        return {site.site_id: {"point": point, "price": price} for site in problem.sites}

    def step(self, state: WaflState, problem: ServerProblem, answers: Mapping[str, Arrays]) -> WaflState:
        """Add the cuts, bound the optimum, project the best weights, price the point."""
        floor = stacked(problem, answers, "floor", state.floor)
        told = {site: _joint(each) for site, each in answers.items()}
        evidence = record(state.evidence, problem, state.point, told, floor)
        if not floor.any():
            return replace(state, evidence=evidence)
        model, best = priced_model(evidence, problem, floor), evidence.best_point[:-1]
        model_minimiser = minimise(model, best)
        evidence = replace(evidence, lower=max(evidence.lower, lower_bound(model, model_minimiser.multipliers, best)))
        lowest = priced_value(model, model_minimiser.point)[0]
        height = evidence.upper if np.isfinite(evidence.upper) else priced_value(model, best)[0]
        level = lowest + problem.parameters["level"] * max(height - lowest, 0.0)
        found = project(model, best, level).point
        asked = np.append(found, priced_value(model, found)[1])
        stagnated = is_still(float(np.abs(asked - state.point).max()), asked, evidence.upper)
        return WaflState(evidence, asked, floor, stagnated=stagnated)

    def weights(self, state: WaflState) -> FloatArray:
        """The visited weights that attain the upper bound, without their price."""
        return np.asarray(state.evidence.best_point[:-1])


def priced_model(evidence: Evidence, problem: ServerProblem, floor: FloatArray) -> CutModel:
    """Cut model in w whose norm column is the price."""
    model = cut_model(evidence, problem)
    return replace(model, slope=model.slope[:, :-1], norm_weight=model.slope[:, -1], floor=floor)


def priced_value(model: CutModel, point: FloatArray) -> tuple[float, float]:
    """Least of the model over the prices ``t >= ||w||_*`` at weights (D,), and that price: convex in t, by halving."""
    heights = model.offset + model.slope @ point
    low = float(model.norms(point[None])[0])

    def at(price: float) -> tuple[float, float]:
        lines, total, rate = heights + model.norm_weight * price, 0.0, 0.0
        for s in range(model.site_weights.shape[0]):
            own = np.flatnonzero(model.site == s)
            top = own[int(np.argmax(lines[own]))] if own.size else -1
            held = top < 0 or lines[top] < model.floor[s] * price
            total += model.site_weights[s] * (model.floor[s] * price if held else lines[top])
            rate += model.site_weights[s] * (model.floor[s] if held else model.norm_weight[top])
        return total, rate

    support = float(model.site_weights @ model.floor)
    high = max(at(low)[0] / support, low) if support > 0 else low
    if at(low)[1] >= 0:
        return at(low)[0], low
    high = least_where(lambda price: at(price)[1] >= 0, low, high)
    return at(high)[0], high


def _joint(answer: Arrays) -> dict[str, FloatArray]:
    """An answer as a cut in (w, t)."""
    slope = np.append(answer["slope"], answer["price_slope"])
    return {"risk": answer["risk"], "cut_height": answer["risk"], "slope": slope, "norm_weight": np.array(0.0)}
