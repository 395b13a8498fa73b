r"""DRFL where all rows are in this process: every loss, support and ball over the sites, solved to a certified gap.

The interior point of ``hinge`` is the quickest where it fits (hinge, fixed weights). All else goes to the level
bundle of ``models.methods``, as a federated run would, but in units of its own: with features x, centre c and spread s

    v = s w,   v_0 = b + <w, c>,      so that   <w, x> + b = <v, (x - c) / s> + v_0

all weights are of one size however the features are measured, and what the intercept does is apart from what the
weights do. Radius, label flip cost and risk stay those of the features as given: the risks meet ``||v / s||_*``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from models.basics import Arrays, FloatArray
from models.centralised.feature_scaling import Units
from models.centralised.hinge import train_pooled
from models.cuts.certificate import check_certificate
from models.features.common_units import CommonUnits
from models.geometry.norms import steepest_move
from models.geometry.supports import BoxSupport, PolytopeSupport
from models.losses.classification import Hinge
from models.methods.answer_arrays import cut_answer, minorant_arrays
from models.methods.guard import step_minorant
from models.methods.site_answers import asked_penalty
from models.problem import SiteProblem
from models.prox.bundle import RiskPenalty, local_step
from models.simulation.federation import Training, train
from models.site_ambiguity.ball import MixtureBall, worst_mixture
from models.validation import check_site_problem
from models.worst_case.risk import RiskCut, site_cut, site_risk

ROUGH, ROUGH_CUTS, DEAR_CUTS = 1e-2, 15, 3
"""Relative gap and number of exact risks at which a prox cut is good enough; dear: where each is a program."""


def train_at_hand(
    sites: Mapping[str, SiteProblem],
    *,
    weights: Mapping[str, float] | None = None,
    mixture: MixtureBall,
    gap: float = 1e-4,
    absolute_gap: float | None = None,
    max_rounds: int = 1000,
) -> Training:
    """Minimise ``max_{q in Q} sum_g q_g r_g(w)``; parameters as in :func:`models.simulation.federation.train`."""
    for site in sites.values():
        check_site_problem(site)
    common = CommonUnits.of(sites)
    least = None if absolute_gap is None else absolute_gap / common.risk
    found = _train(common.stated(sites), weights, mixture, gap, least, max_rounds)
    return found.as_given(common, next(iter(sites.values())).features.shape[1])


def _train(
    sites: Mapping[str, SiteProblem],
    weights: Mapping[str, float] | None,
    mixture: MixtureBall,
    gap: float,
    absolute_gap: float | None,
    max_rounds: int,
) -> Training:
    specs = [site.spec for site in sites.values()]
    fixed_hinge = mixture.radius == 0 and all(isinstance(spec.loss, Hinge) for spec in specs)
    if fixed_hinge and all(spec.support is None for spec in specs):
        return train_pooled(sites, weights=weights, gap=gap, absolute_gap=absolute_gap)
    # On a box the hinge's risk is cheap beside a prox step, and has no norm that other units would change.
    plain = fixed_hinge and all(isinstance(spec.support, BoxSupport) for spec in specs)
    units = Units.of(list(sites.values()))
    found = train(
        sites, weights=weights, mixture=mixture, method="level-bundle-plain" if plain else "level-bundle", gap=gap,
        absolute_gap=absolute_gap, max_rounds=max_rounds, site_half=UnitSite(units, plain),
        feature_scale=None if plain else 1.0 / units.spread,
    )
    plane = units.back(found.weights)
    risks = {name: site_risk(plane, site).value for name, site in sites.items()}
    site_weights = np.array([1.0 / len(sites) if weights is None else weights[name] for name in sites])
    worst = worst_mixture(np.array(list(risks.values())), site_weights, mixture)
    bounds = check_certificate(replace(found.certificate, upper=worst.value))
    shown = dict(zip(sites, worst.weights.tolist(), strict=True))
    return replace(
        found, weights=plane, certificate=bounds, site_risks=risks, mixture_weights=shown, last_point=plane
    )


@dataclass(frozen=True)
class UnitSite:
    """Site half of the level bundle for weights in units of their own; messages and answers are in those.

    ``plain``: without prox steps.
    """

    units: Units
    plain: bool = False

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """Exact risk at the point; unless ``plain``, the minorant of a rough prox step, its norm part in the slope."""
        cut = site_cut(self.units.back(message["point"]), problem)
        slope = self.units.slope(cut.slope)
        answer = cut_answer(replace(cut, slope=slope, swing=self._swing(cut)))
        if self.plain:
            return answer
        penalty = asked_penalty(message, cut.risk, slope) or 1.0

        def plane(point: FloatArray) -> RiskCut:
            return self._plane(problem, point)

        most = DEAR_CUTS if isinstance(problem.spec.support, PolytopeSupport) else ROUGH_CUTS
        step = local_step(
            problem, message["centre"], RiskPenalty(1.0 / penalty), tolerance=ROUGH, max_cuts=most, oracle=plane
        )
        return {**answer, **minorant_arrays(step_minorant(step))}

    def _plane(self, problem: SiteProblem, point: FloatArray) -> RiskCut:
        """Cut whose norm part is put into the slope: a norm in other units has no projection in closed form."""
        n, plane = self.units.centre.shape[0], self.units.back(point)
        cut = site_cut(plane, problem)
        slope = cut.slope.copy()
        slope[:n] += cut.norm_weight * steepest_move(plane[:n], problem.spec.transport_norm)
        return replace(cut, slope=self.units.slope(slope), norm_weight=0.0, swing=self._swing(cut))

    def _swing(self, cut: RiskCut) -> FloatArray | None:
        """The cut's swing in these units: ``|w| = |v| / s``, whatever the centre."""
        return None if cut.swing is None else cut.swing / self.units.spread
