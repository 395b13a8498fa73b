r"""The level bundle over sites: few rounds, and a certificate from the method itself.

Each round the server asks every site for its exact risk at one point and what that proves: a cut of the site's risk
that holds for ever. The server keeps the cuts of each site apart and the norm part of each cut apart
(``models.cuts.cut_model``), takes the lower bound from the minimum m of the cut model, the upper bound U from the
best point, and asks next at the projection of the best point on the level set ``{model <= m + level (U - m)}``
(Lemarechal, Nemirovskii, Nesterov 1995, with one model a site).

With prox cuts a site answers in the same message with a second cut, at the minimiser of its own risk plus
``penalty/2 ||w - centre||^2``. Nothing in that is tuned to the data: the projection w of the best point u is itself a
prox step of the model with penalty ``1 / nu`` (nu its level multiplier), in which site g had the slope v_g; so

    penalty_g = closeness / (nu q_g),      centre_g = w + v_g / penalty_g,

with q the worst mixture of the sites in that step (their weights a where those are fixed); that is, with closeness 1,
the step that site g would take if the others' risks were their models' slopes. A larger closeness looks nearer to w. In
the first round the site takes Polyak's step, ``penalty = ||slope||^2 / risk``.

Prefer it to ADMM wherever rounds are dear; it needs no step size. Absent sites enter by their cuts (MATH section 7).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.basics import Arrays, FloatArray, without_needless_digits
from models.cuts.cut_model import CutModel, ModelPoint, project
from models.cuts.evidence import Evidence, cut_model, no_evidence, record, tighten_lower_bound, unpack_evidence
from models.methods.certified import CertifiedServer
from models.methods.site_answers import ProxCutSite, RiskSite
from models.problem import ServerProblem, Status

_STILL = 1e-14
_LEAST_WEIGHT = 1e-9
_SOFTEST, _STIFFEST = 1e-6, 1e9
"""Penalties at which a centre is so far off that rounding spoils the cut, and a prox point is its centre, risks and
features being of order one."""


@dataclass(frozen=True)
class BundleState:
    """Evidence and what is asked next: ``point`` (D,), and for prox cuts ``centre`` (G, D) and ``penalty`` (G,).

    ``stagnated``: the next point is the best one again, or the risk is 0 but for rounding.
    """

    evidence: Evidence
    point: FloatArray
    centre: FloatArray
    penalty: FloatArray
    stagnated: bool = False


@dataclass(frozen=True)
class BundleServer(CertifiedServer[BundleState]):
    """Server half of the level bundle, with or without prox cuts."""

    prox_cuts: bool
    per_site = ("centre", "penalty")
    partial_sums = True

    def asked(self, state: BundleState) -> FloatArray:
        """The point."""
        return state.point

    def init(self, problem: ServerProblem) -> BundleState:
        """Nothing known; the first point is zero."""
        n_sites, dimension = len(problem.sites), problem.dimension
        return BundleState(no_evidence(problem), np.zeros(dimension), np.zeros((n_sites, dimension)), np.zeros(n_sites))

    def messages(self, state: BundleState, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """The same point for every site, and its own prox centre and penalty."""
        messages = {site.site_id: {"point": state.point} for site in problem.sites}
        if self.prox_cuts:
            for g, site in enumerate(problem.sites):
                messages[site.site_id] |= {"centre": state.centre[g], "penalty": np.array(state.penalty[g])}
        return messages

    def step(self, state: BundleState, problem: ServerProblem, answers: Mapping[str, Arrays]) -> BundleState:
        """Add the cuts, bound the optimum, project the best point on the level set."""
        evidence, model_minimiser = tighten_lower_bound(record(state.evidence, problem, state.point, answers), problem)
        model, best = cut_model(evidence, problem), evidence.best_point
        lowest = model.value(model_minimiser.point)
        height = evidence.upper if math.isfinite(evidence.upper) else model.value(best)
        level = lowest + problem.parameters["level"] * max(height - lowest, 0.0)
        level = float(without_needless_digits(np.array(level), problem.gap))
        found = project(model, best, level)
        moved = float(np.abs(found.point - best).max())
        stagnated = moved <= _STILL * (1.0 + float(np.abs(best).max())) or evidence.upper <= _STILL
        point = without_needless_digits(found.point, problem.gap)
        if not (self.prox_cuts and found.level_price > 0):
            return BundleState(evidence, point, state.centre, state.penalty, stagnated)
        return BundleState(evidence, point, *prox_questions(model, found, best, problem), stagnated)

    def answer_shapes(self, problem: ServerProblem) -> dict[str, tuple[int, ...]]:
        """Risk and its cut, and the prox minorant."""
        return (ProxCutSite() if self.prox_cuts else RiskSite()).shapes(problem.dimension, problem.n_swings)

    def status(self, state: BundleState, problem: ServerProblem) -> Status:
        """Certified at the wanted gap; stalled where no further progress is possible in float64."""
        status = super().status(state, problem)
        return Status.STALLED if status is Status.CONTINUE and state.stagnated else status

    def pack(self, state: BundleState) -> dict[str, FloatArray]:
        """Evidence and what is asked next."""
        asked = {"point": state.point, "centre": state.centre, "penalty": state.penalty}
        return {**state.evidence.pack(), **asked, "still": np.array(float(state.stagnated))}

    def unpack(self, arrays: Arrays) -> BundleState:
        """State from :meth:`pack`."""
        point, centre, penalty = (np.asarray(arrays[name]) for name in ("point", "centre", "penalty"))
        return BundleState(unpack_evidence(arrays), point, centre, penalty, bool(arrays["still"]))


def prox_questions(
    model: CutModel, found: ModelPoint, best: FloatArray, problem: ServerProblem
) -> tuple[FloatArray, FloatArray]:
    """Prox centre (G, D) and penalty (G,) of each site near a projection of ``best``."""
    penalty = problem.parameters["closeness"] / (found.level_price * np.maximum(found.mixture, _LEAST_WEIGHT))
    penalty = np.clip(penalty, _SOFTEST, _STIFFEST)
    penalty = np.array([float(without_needless_digits(each, problem.gap)) for each in penalty])
    slopes = _site_slopes(model, found, best)
    return without_needless_digits(found.point + slopes / penalty[:, None], problem.gap), penalty


def norm_and_sides(model: CutModel, found: ModelPoint, best: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What a unit of the norm (D,) and of each absolute weight (P,) adds to the slopes in a projection of ``best``.

    The weighted slopes sum to ``(best - point) / nu``; what the cuts' slopes leave of that is the absolute weights',
    and what those leave is the norm's.
    """
    left, sides = (best - found.point) / found.level_price - found.multipliers @ model.slope, np.zeros(model.n_features)
    if model.swing is not None:
        total = found.multipliers @ model.swing
        np.divide(left[: model.n_features], total, out=sides, where=total > 0)
        sides = np.clip(sides, -1.0, 1.0)
        left[: model.n_features] -= sides * total
    weight = float(model.floors_left(found.multipliers) @ model.floor + found.multipliers @ model.norm_weight)
    return (left / weight if weight > 0 else np.zeros_like(left)), sides


def _site_slopes(model: CutModel, found: ModelPoint, best: FloatArray) -> FloatArray:
    """Slope v_g that each site's model had in the projection, (G, D)."""
    model = model.with_mixture(found.mixture)
    of_norm, sides = norm_and_sides(model, found, best)
    slopes = np.zeros((model.site_weights.shape[0], found.point.shape[0]))
    np.add.at(slopes, model.site, found.multipliers[:, None] * model.flat(sides).slope)
    norm_weights = model.floors_left(found.multipliers) * model.floor
    np.add.at(norm_weights, model.site, found.multipliers * model.norm_weight)
    slopes = slopes + np.outer(norm_weights, of_norm)
    return np.asarray(slopes / np.maximum(model.site_weights, _LEAST_WEIGHT)[:, None])
