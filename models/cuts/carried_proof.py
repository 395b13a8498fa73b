"""What a finished run carries so that others can check its bounds: the best point, the cuts that count, multipliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.cuts.cut_model import minimise
from models.cuts.evidence import Evidence, cut_model
from models.cuts.lower_bound import strongest_proof
from models.problem import ServerProblem
from models.site_ambiguity.ball import MixtureBall


@dataclass(frozen=True)
class CarriedProof:
    """Evidence of one head that proves its bounds over the mixtures of ``ball``.

    ``weights`` (D,), ``risks`` (G,) there (NaN: not answered), ``mixture`` (G,); by cut ``site``, ``offset``,
    ``norm_weight``, ``multipliers``, ``around`` and ``rounds`` (m,), ``slope`` (m, D), ``swing`` (m, P or 0). Cuts that
    neither prove nor bound anything are left out. ``rounds`` says in which exchange of messages a cut was answered.
    """

    weights: FloatArray
    risks: FloatArray
    mixture: FloatArray
    site: NDArray[np.intp]
    offset: FloatArray
    slope: FloatArray
    norm_weight: FloatArray
    swing: FloatArray
    multipliers: FloatArray
    around: FloatArray
    rounds: FloatArray
    upper: float
    lower: float
    ball: MixtureBall


def carried_proof(evidence: Evidence, problem: ServerProblem) -> CarriedProof | None:
    """Proof of the bounds of the evidence; None where there is no cut, no best point, or a scale of features."""
    if evidence.best < 0 or not evidence.cut_site.size or problem.feature_scale is not None:
        return None
    model, near = cut_model(evidence, problem), evidence.best_point
    found = minimise(model, near)
    proof = strongest_proof(model.with_mixture(found.mixture), found.multipliers, near)
    keep = _that_count(evidence, proof.multipliers + proof.around)
    cuts = evidence.kept_cuts(keep)
    return CarriedProof(
        weights=near, risks=evidence.risks[evidence.best], mixture=found.mixture, site=cuts.cut_site.astype(np.intp),
        offset=cuts.cut_offset, slope=cuts.cut_slope, norm_weight=cuts.cut_norm_weight, swing=cuts.cut_swing,
        multipliers=proof.multipliers[keep], around=proof.around[keep], rounds=cuts.cut_round,
        upper=evidence.upper, lower=evidence.certificate.lower, ball=problem.mixture,
    )


def _that_count(evidence: Evidence, multipliers: FloatArray) -> NDArray[np.bool_]:
    """Cuts with a multiplier, those that make the floors, and all of the sites that did not answer at the best point.

    The floor of a site is its largest norm weight, so one cut of it that has that is kept.
    """
    missing = np.flatnonzero(np.isnan(evidence.risks[evidence.best]))
    keep = (multipliers > 0) | np.isin(evidence.cut_site, missing)
    for g in np.unique(evidence.cut_site):
        own = np.flatnonzero(evidence.cut_site == g)
        keep[own[int(np.argmax(evidence.cut_norm_weight[own]))]] = True
    return np.asarray(keep)
