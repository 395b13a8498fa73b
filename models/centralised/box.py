r"""Training on a box support where all sites' rows are in this process: a level bundle in units of its own.

On a box a site's cut speaks of each weight and its absolute value alone (the norm has no part of its own), so the
weights may be put in any units without changing the problem: each feature is divided by its spread, and centred where
an intercept takes that up. Radius, label flip cost and risk stay those of the features as given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from models.basics import Arrays, FloatArray, ProblemError
from models.centralised.feature_scaling import Units
from models.cuts.certificate import check_certificate
from models.geometry.supports import BoxSupport
from models.methods.site_answers import cut_answer
from models.problem import SiteProblem
from models.simulation.federation import Training, train
from models.worst_case.risk import site_cut, site_risk


def train_pooled_box(
    sites: Mapping[str, SiteProblem],
    *,
    weights: Mapping[str, float] | None = None,
    gap: float = 1e-4,
    absolute_gap: float | None = None,
    max_rounds: int = 500,
) -> Training:
    """Minimise the federated risk over sites with box support; parameters as in :func:`~models.simulation.train`."""
    if any(not isinstance(site.spec.support, BoxSupport) for site in sites.values()):
        raise ProblemError("every site needs a support box here; without one use train_pooled")
    units = Units.of(list(sites.values()))
    centred = {name: _centred(site, units.centre) for name, site in sites.items()}
    spread = np.append(units.spread, 1.0) if next(iter(sites.values())).spec.fit_intercept else units.spread
    found = train(
        centred, weights=weights, method="level-bundle-plain", gap=gap, absolute_gap=absolute_gap,
        max_rounds=max_rounds, site_half=_Scaled(spread),
    )
    plane = units.back(found.weights)
    risks = {name: site_risk(plane, site).value for name, site in sites.items()}
    site_weights = weights if weights is not None else dict.fromkeys(sites, 1.0 / len(sites))
    upper = float(sum(site_weights[name] * risks[name] for name in sites if site_weights[name] > 0))
    bounds = check_certificate(replace(found.certificate, upper=upper))
    return replace(found, weights=plane, certificate=bounds, site_risks=risks, last_point=plane)


@dataclass(frozen=True)
class _Scaled:
    """Site half of the plain bundle for weights that are ``spread`` (D,) times those of the features."""

    spread: FloatArray

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        cut = site_cut(message["point"] / self.spread, problem)
        swing = None if cut.swing is None else cut.swing / self.spread[: cut.swing.shape[0]]
        return cut_answer(replace(cut, slope=cut.slope / self.spread, swing=swing))


def _centred(site: SiteProblem, centre: FloatArray) -> SiteProblem:
    box = site.spec.support
    if not isinstance(box, BoxSupport):
        return site
    spec = replace(site.spec, support=replace(box, low=box.low - centre, high=box.high - centre))
    return SiteProblem(site.features - centre, site.labels, spec, site.row_weights)
