"""What a finished run carries so that others can check its bounds: the best point, the cuts that count, multipliers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.cuts.best_weights import analytic_centre
from models.cuts.cut_program import minimise
from models.cuts.evidence import Evidence, cut_model
from models.cuts.lower_bound import strongest_proof
from models.problem import REACH, ServerProblem, SiteTerms
from models.site_ambiguity.ball import MixtureBall

_LAST_DIGITS, _OF_THE_GAP = 1e-6, 1e-3
"""Shares of the risk, or of what the bounds are apart, by which the cuts of the end may prove less than those of an
earlier round did, which are not kept, or than other multipliers of the same cuts."""


@dataclass(frozen=True)
class CarriedProof:
    """Evidence of one head that proves its bounds over the mixtures of ``ball``.

    ``weights`` (D,), ``risks`` (G,) there (NaN: not answered), ``mixture`` (G,); by cut ``site``, ``offset``,
    ``norm_weight``, ``multipliers``, ``around`` and ``rounds`` (m,), ``slope`` (m, D), ``swing`` (m, P or 0). Cuts that
    neither prove nor bound anything are left out. ``sites`` (G of them) are those of the server's problem: cohorts
    where it saw sums. ``rounds`` says in which exchange of messages a cut was answered. ``centred`` (m,): other
    multipliers that may stand for ``around``, with cuts that are ``spare`` without them. ``lower`` is the bound of the
    evidence, without the last digits that cuts proved which were dropped since.
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
    sites: tuple[SiteTerms, ...]
    centred: FloatArray | None
    spare: NDArray[np.bool_]

    def plain(self) -> CarriedProof:
        """Without the cuts that :meth:`around_the_centre` alone needs."""
        return self._with(~self.spare, self.around)

    def around_the_centre(self) -> CarriedProof | None:
        """The same with other multipliers ``around``, those of the analytic centre; None where there are none.

        Near a tight bound those of the proof may hardly bound the best weights: enclosed arithmetic then proves none.
        """
        return None if self.centred is None else self._with(np.ones_like(self.spare), self.centred)

    def _with(self, kept: NDArray[np.bool_], around: FloatArray) -> CarriedProof:
        of_cuts = ("site", "offset", "slope", "norm_weight", "swing", "multipliers", "rounds", "spare")
        changes: dict[str, Any] = {name: getattr(self, name)[kept] for name in of_cuts}
        return replace(self, **changes, around=around[kept], centred=None)


def carried_proof(evidence: Evidence, problem: ServerProblem) -> CarriedProof | None:
    """Proof of the bounds of the evidence; None where there is no cut, no best point, or a scale of features."""
    if evidence.best < 0 or not evidence.cut_site.size or problem.feature_scale is not None:
        return None
    model, near = cut_model(evidence, problem), evidence.best_point
    found = minimise(model, near)
    mixed = model.with_mixture(found.mixture)
    proof = strongest_proof(mixed, found.multipliers, near)
    missing = proof.bound <= _least(evidence) or not _ended(evidence, problem)
    # Cuts that are flat but for rounding along some weights, as of rows without a say in them, prove little of all.
    if missing and not np.isfinite(mixed.reach):
        within_reach = strongest_proof(replace(mixed, reach=_reach_around(near)), found.multipliers, near)
        proof = max(proof, within_reach, key=lambda each: each.bound)
    centred = None if mixed.floor.any() or mixed.swing is not None else analytic_centre(mixed, near)
    used = _that_count(evidence, proof.multipliers + proof.around)
    keep = used if centred is None else used | (centred > 0)
    cuts = evidence.kept_cuts(keep)
    return CarriedProof(
        weights=near, risks=evidence.risks[evidence.best], mixture=found.mixture, site=cuts.cut_site.astype(np.intp),
        offset=cuts.cut_offset, slope=cuts.cut_slope, norm_weight=cuts.cut_norm_weight, swing=cuts.cut_swing,
        multipliers=proof.multipliers[keep], around=proof.around[keep], rounds=cuts.cut_round,
        upper=evidence.upper, lower=_told(evidence, problem, proof.bound), ball=problem.mixture,
        sites=problem.sites, centred=None if centred is None else centred[keep], spare=~used[keep],
    )


def _reach_around(weights: FloatArray) -> float:
    """The reach, or the next power of two that lets these weights (D,) lie within: single answers hold at any."""
    reach, far = REACH, float(np.abs(weights).max())
    while reach < far:
        reach *= 2.0
    return reach


def last_digits(upper: float, lower: float) -> float:
    """By how much less may be proven than these bounds say: a millionth of the risk, or a thousandth of their gap."""
    return max(_LAST_DIGITS * upper, _OF_THE_GAP * (upper - lower))


def _told(evidence: Evidence, problem: ServerProblem, proven: float) -> float:
    """The bound of the evidence, or what is ``proven`` at the end: where no more than last digits are missing from it.

    Where the bounds are not as near as was wanted, what is proven whatever is missing: others can check that.
    """
    tells = proven >= _least(evidence) or (proven > 0.0 and not _ended(evidence, problem))
    return min(proven, evidence.upper) if tells else evidence.certificate.lower


def _ended(evidence: Evidence, problem: ServerProblem) -> bool:
    """Whether the bounds are as near as was wanted."""
    return evidence.certificate.meets(problem.gap, problem.absolute_gap)


def _least(evidence: Evidence) -> float:
    """What may be said in place of the bound of the evidence."""
    lower = evidence.certificate.lower
    return lower - last_digits(evidence.upper, lower)


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
