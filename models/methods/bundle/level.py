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

The kin of DRFL (DRFL section 4.1) are the same without a ball at the sites, so they are solved exactly, too:

- standard federated training: fixed site weights, ``min sum_s q_s E_s L``;
- AFL (Mohri et al. 2019): ``min max_{q in Q} sum_s q_s E_s L``, Q the ball over the sites as the problem states it;
- the problem of DRFA (Deng et al. 2020): Q is the whole simplex, so the worst plant counts; the stochastic method of
  that paper is ``models.methods.local_sgd.drfa``.

Prefer it to ADMM wherever rounds are dear; it needs no step size. Absent sites enter by their cuts (MATH section 7).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from models.basics import Arrays, FloatArray, without_needless_digits
from models.cuts.bounds import record, tighten_lower_bound
from models.cuts.carried_proof import CarriedProof
from models.cuts.cut_model import CutModel, ModelPoint
from models.cuts.evidence import Evidence, cut_model
from models.cuts.reuse import reused_cuts, without_reused
from models.methods.bundle.asked_level import bottom, is_lowest, projected
from models.methods.certified import PointServer, PointState, is_still
from models.methods.site_answers import ProxCutSite, RiskSite
from models.problem import ServerProblem
from models.site_ambiguity.ball import WHOLE_SIMPLEX

_LEAST_WEIGHT = 1e-9
"""Least weight that is divided by: a site without one in the mixture gets a stiff step, not an infinite one."""
_SOFTEST, _STIFFEST = 1e-6, 1e9
"""Penalties at which a centre is so far off that rounding spoils the cut, and a prox point is its centre, risks and
features being of order one."""

_FEW_HELD = 200
"""Cuts with a multiplier up to which their sums are made as they stand: a sparse matrix costs more to make."""
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
"""Its multiples, less whole numbers, are spread over 0 to 1, each far from those before it."""


@dataclass(frozen=True)
class BundleState(PointState):
    """Evidence and what is asked next: ``point`` (D,), and for prox cuts ``centre`` (G, D) and ``penalty`` (G,).

    ``stagnated``: the next point is the best one again, or the risk is 0 but for rounding.
    """

    centre: FloatArray
    penalty: FloatArray


@dataclass(frozen=True)
class BundleServer(PointServer[BundleState]):
    """Server half of the level bundle, with or without prox cuts.

    ``ball``: whether the risks that the sites answer are over their balls.
    """

    prox_cuts: bool
    ball: bool = field(default=True, kw_only=True)
    state = BundleState
    per_site: ClassVar[tuple[str, ...]] = ("centre", "penalty")
    partial_sums = True
    cut_at_point = True

    @property
    def asks(self) -> RiskSite | ProxCutSite:
        """Risk and its cut, and the prox minorant where one is wanted."""
        return ProxCutSite() if self.prox_cuts else RiskSite()

    def init(self, problem: ServerProblem) -> BundleState:
        """Nothing known; the first point is zero."""
        n_sites, dimension = len(problem.sites), problem.dimension
        centre, penalty = np.zeros((n_sites, dimension)), np.zeros(n_sites)
        return BundleState(Evidence.empty(problem), np.zeros(dimension), centre, penalty)

    def warm(
        self, earlier: BundleState, before: ServerProblem, problem: ServerProblem, kept: Sequence[int]
    ) -> BundleState:
        """The cuts that still hold; asked first is the best point of the earlier run, near which each site looks again.

        Where it looks is no bound: a site that changed takes the prox centre that it was about to be sent.
        """
        point = earlier.evidence.best_point
        places = {site.site_id: place for place, site in enumerate(before.sites)}
        centre, penalty = np.tile(point, (len(problem.sites), 1)), np.zeros(len(problem.sites))
        for g, site in enumerate(problem.sites):
            if site.site_id in places:
                centre[g], penalty[g] = earlier.centre[places[site.site_id]], earlier.penalty[places[site.site_id]]
        return BundleState(reused_cuts(earlier.evidence, problem, kept), point, centre, penalty)

    def forget_earlier(self, state: BundleState, site: int) -> BundleState:
        """Without the cuts of the earlier run of a site."""
        return replace(state, evidence=without_reused(state.evidence, site))

    def messages(self, state: BundleState, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """The same point for every site, and its own prox centre and penalty."""
        messages = super().messages(state, problem)
        if self.prox_cuts:
            for g, site in enumerate(problem.sites):
                messages[site.site_id] |= {"centre": state.centre[g], "penalty": np.array(state.penalty[g])}
        return messages

    def step(self, state: BundleState, problem: ServerProblem, answers: Mapping[str, Arrays]) -> BundleState:
        """Add the cuts, bound the optimum, project the best point on the level set."""
        evidence, model_minimiser = tighten_lower_bound(record(state.evidence, problem, state.point, answers), problem)
        model, best = cut_model(evidence, problem), evidence.best_point
        lowest, towards = bottom(model, model_minimiser, evidence)
        height = evidence.upper if math.isfinite(evidence.upper) else model.value(best)
        level = lowest + problem.parameters["level"] * max(height - lowest, 0.0)
        level = float(without_needless_digits(np.array(level), problem.gap))
        found = projected(model, level, evidence, self._stated(problem), towards)
        evidence = evidence.using(found, problem)
        still = is_still(float(np.abs(found.point - best).max()), best, evidence.upper)
        stagnated = still or is_lowest(model, model_minimiser, evidence)
        point = not_again(without_needless_digits(found.point, problem.gap), evidence)
        if not (self.prox_cuts and found.level_price > 0):
            return BundleState(evidence, point, state.centre, state.penalty, stagnated=stagnated)
        return BundleState(evidence, point, *prox_questions(model, found, best, problem), stagnated=stagnated)

    def _stated(self, problem: ServerProblem) -> ServerProblem:
        """The problem whose risks the sites answer."""
        if self.ball:
            return problem
        return replace(problem, sites=tuple(replace(each, radius=0.0) for each in problem.sites))


@dataclass(frozen=True)
class WorstSiteServer(BundleServer):
    """The level bundle against the worst site, whatever ball over the sites the problem states."""

    def step(self, state: BundleState, problem: ServerProblem, answers: Mapping[str, Arrays]) -> BundleState:
        """As the bundle, on the whole simplex."""
        return super().step(state, replace(problem, mixture=WHOLE_SIMPLEX), answers)

    def mixture_weights(self, state: BundleState, problem: ServerProblem) -> dict[str, float]:
        """As the bundle, on the whole simplex."""
        return super().mixture_weights(state, replace(problem, mixture=WHOLE_SIMPLEX))

    def carried_proof(self, state: BundleState, problem: ServerProblem) -> CarriedProof | None:
        """As the bundle, on the whole simplex."""
        return super().carried_proof(state, replace(problem, mixture=WHOLE_SIMPLEX))


def not_again(point: FloatArray, evidence: Evidence) -> FloatArray:
    """The point (D,), or one on the way to it from the best point where it was asked before.

    A cut as high as the risk keeps the model's points from coming back. A guard that hides a row answers a looser one,
    and the same one to the same question: only another point leads on.
    """
    if not (evidence.points == point).all(axis=1).any():
        return point
    share = _GOLDEN * len(evidence.points) % 1.0
    return np.asarray(evidence.best_point + share * (point - evidence.best_point))


def prox_questions(
    model: CutModel, found: ModelPoint, best: FloatArray, problem: ServerProblem, near: float = 1.0
) -> tuple[FloatArray, FloatArray]:
    """Prox centre (G, D) and penalty (G,) of each site near a projection of ``best``; ``near`` scales the closeness."""
    penalty = near * problem.parameters["closeness"] / (found.level_price * np.maximum(found.mixture, _LEAST_WEIGHT))
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
    from scipy import sparse  # at the server, which alone comes here

    model = model.with_mixture(found.mixture)
    of_norm, sides = norm_and_sides(model, found, best)
    m, n_sites = model.site.shape[0], model.site_weights.shape[0]
    of_cuts, held = model.slope if model.swing is None else model.flat(sides).slope, found.multipliers.nonzero()[0]
    if held.size <= _FEW_HELD:
        slopes = np.zeros((n_sites, of_cuts.shape[1]))
        np.add.at(slopes, model.site[held], found.multipliers[held, None] * of_cuts[held])
    else:
        slopes = sparse.csc_array((found.multipliers, model.site, np.arange(m + 1)), shape=(n_sites, m)) @ of_cuts
    norm_weights = model.floors_left(found.multipliers) * model.floor
    np.add.at(norm_weights, model.site, found.multipliers * model.norm_weight)
    slopes = slopes + np.outer(norm_weights, of_norm)
    return np.asarray(slopes / np.maximum(model.site_weights, _LEAST_WEIGHT)[:, None])
