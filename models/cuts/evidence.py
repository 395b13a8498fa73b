"""What the server knows of the sites' risks: points asked, risks answered, cuts, and the bounds so far."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from models.basics import Arrays, FloatArray
from models.cuts.answered import answered, with_swings
from models.cuts.certificate import check_certificate
from models.cuts.cut_model import CutModel, ModelPoint
from models.problem import Certificate, ServerProblem
from models.site_ambiguity.ball import worst_mixture

_GROWING_CUTS = ("cut_site", "cut_offset", "cut_slope", "cut_norm_weight", "cut_swing", "cut_round")
_CUTS = (*_GROWING_CUTS, "cut_used")
_COUNTED = 1e-3
"""Share of a site's weight from which on a multiplier counts."""
EARLIER_RUN = 0
"""In place of the number of an exchange: a cut that came in an earlier run, and still holds."""
GROWING = ("points", "risks", "point_round", *_GROWING_CUTS)
"""Arrays of a packed evidence to which rounds add rows."""


@dataclass(frozen=True)
class Evidence:
    """Rounds k = 1..K at points (K, D) with risks (K, G), NaN where a site did not answer; m cuts; the bounds.

    ``best`` is the index of the point that attains ``upper``, -1 where no point does (``upper`` is infinite then).
    ``fresh_weight`` is the share of the site weight (the centre of Q) that answered the last round. ``point_round``
    (K,) and ``cut_round`` (m,) say in which exchange of messages a point was asked and a cut answered, counted from 1;
    ``exchanges`` is the number of the last one. ``cut_swing`` is (m, P), or (m, 0) before any cut has a swing.
    ``cut_used`` (m,): in which exchange a cut last held up a solution on the cut model, or came.
    ``scale_before``: the :attr:`scale` of an earlier run from which this one goes on; 0: it began with nothing.
    """

    points: FloatArray
    risks: FloatArray
    point_round: FloatArray
    cut_site: FloatArray
    cut_offset: FloatArray
    cut_slope: FloatArray
    cut_norm_weight: FloatArray
    cut_swing: FloatArray
    cut_round: FloatArray
    cut_used: FloatArray
    upper: float = math.inf
    lower: float = 0.0
    fresh_weight: float = 0.0
    best: int = -1
    exchanges: int = 0
    scale_before: float = 0.0

    @property
    def best_point(self) -> FloatArray:
        """The point that attains the upper bound; the last one where none does, zero before the first round."""
        return self.points[self.best] if self.points.shape[0] else np.zeros(self.points.shape[1])

    @property
    def certificate(self) -> Certificate:
        """Certificate after the last round; raises ``CertificateError`` where it does not hold."""
        return check_certificate(Certificate(self.upper, self.lower, self.fresh_weight, self.scale))

    @property
    def scale(self) -> float:
        """Mean of the risks that were answered at the first point (zero weights); 0 where none was.

        A run that goes on from an earlier one does not ask there: it has that one's.
        """
        if self.scale_before > 0:
            return self.scale_before
        answered = self.risks[:1][~np.isnan(self.risks[:1])]
        return float(answered.mean()) if answered.size else 0.0

    def best_risks(self, problem: ServerProblem) -> dict[str, float]:
        """Risk of each site at the best point; NaN where it did not answer there."""
        known = self.risks[self.best] if self.best >= 0 else np.full(len(problem.sites), np.nan)
        return {site.site_id: float(risk) for site, risk in zip(problem.sites, known, strict=True)}

    def worst_mixture(self, problem: ServerProblem) -> dict[str, float]:
        """Worst mixture of the sites at the best point: the weights where the ball over the sites has radius 0."""
        weights = problem.weights
        if self.best >= 0 and problem.mixture.radius > 0:
            risks = risks_or_models(self, problem, self.best)
            weights = worst_mixture(risks, weights, problem.mixture).weights
        return {site.site_id: float(weight) for site, weight in zip(problem.sites, weights, strict=True)}

    def pack(self) -> dict[str, FloatArray]:
        """All of it as float64 arrays, exactly."""
        bounds = np.array([self.upper, self.lower, self.fresh_weight, self.best, self.exchanges, self.scale_before])
        return {name: getattr(self, name) for name in (*GROWING, "cut_used")} | {"bounds": bounds}

    @staticmethod
    def unpack(arrays: Arrays) -> Evidence:
        """Evidence from :meth:`pack`; other arrays are left alone."""
        count, n_cuts = len(arrays["points"]), len(arrays["cut_site"])
        # A state of version 0.1 does not say in which exchange its parts came: 0 stands for an earlier one. Nor had its
        # cuts swings: they were planes on a box.
        unknown = {"point_round": np.zeros(count), "cut_round": np.zeros(n_cuts), "cut_swing": np.zeros((n_cuts, 0))}
        parts = {name: np.asarray(arrays[name] if name in arrays else unknown[name]) for name in GROWING}
        parts["cut_used"] = np.asarray(arrays.get("cut_used", parts["cut_round"]))
        bounds = [float(each) for each in arrays["bounds"]]
        upper, lower, fresh_weight, best, exchanges, before = (*bounds, *(float(count), 0.0)[len(bounds) - 4 :])
        return Evidence(
            **parts, upper=upper, lower=lower, fresh_weight=fresh_weight, best=int(best), exchanges=int(exchanges),
            scale_before=before,
        )

    @staticmethod
    def empty(problem: ServerProblem) -> Evidence:
        """Evidence before the first round."""
        n_sites, dimension = len(problem.sites), problem.dimension
        return Evidence(
            points=np.zeros((0, dimension)),
            risks=np.zeros((0, n_sites)),
            point_round=np.zeros(0),
            cut_site=np.zeros(0),
            cut_offset=np.zeros(0),
            cut_slope=np.zeros((0, dimension)),
            cut_norm_weight=np.zeros(0),
            cut_swing=np.zeros((0, 0)),
            cut_round=np.zeros(0),
            cut_used=np.zeros(0),
        )

    def passed(self) -> Evidence:
        """Evidence after an exchange of messages that told of no risk."""
        return replace(self, exchanges=self.exchanges + 1)

    def of_sites(self, kept: Sequence[int]) -> Evidence:
        """Evidence of some of the sites alone, by index, in that order; its bounds are those of the next round."""
        places = np.full(self.risks.shape[1], -1.0)
        places[list(kept)] = np.arange(len(kept))
        site = places[self.cut_site.astype(np.intp)]
        cuts = replace(self, cut_site=site).kept_cuts(site >= 0)
        return replace(cuts, risks=self.risks[:, list(kept)], upper=math.inf, lower=0.0, fresh_weight=0.0, best=-1)

    def using(self, found: ModelPoint, problem: ServerProblem) -> Evidence:
        """Evidence that remembers which cuts hold up a solution on all of them, or would."""
        counted = found.multipliers > _COUNTED * problem.weights[self.cut_site.astype(np.intp)]
        counted = counted if found.missed is None else counted | found.missed
        return replace(self, cut_used=np.where(counted, self.exchanges, self.cut_used))

    def kept_cuts(self, keep: NDArray[np.bool_]) -> Evidence:
        """Evidence with some of its cuts, ``keep`` (m,)."""
        return replace(self, **{name: getattr(self, name)[keep] for name in _CUTS})

    def judged_by(self, totals: FloatArray) -> Evidence:
        """Evidence whose best point has the least of totals (K,), its upper bound; infinite: a point does not count."""
        best = int(np.argmin(totals)) if np.isfinite(totals).any() else -1
        return replace(self, upper=float(totals[best]) if best >= 0 else math.inf, best=best)

    def with_lower(self, bound: float) -> Evidence:
        """Evidence with a lower bound where it is the better one; ``CertificateError`` where the bounds then cross."""
        held = check_certificate(Certificate(self.upper, max(self.lower, bound), self.fresh_weight))
        return replace(self, lower=held.lower)


def cut_model(evidence: Evidence, problem: ServerProblem) -> CutModel:
    """Cut model of all the evidence; the floor of a site is the largest norm weight seen of it."""
    site = evidence.cut_site.astype(np.intp)
    floor = np.zeros(len(problem.sites))
    np.maximum.at(floor, site, evidence.cut_norm_weight)
    return CutModel(
        site_weights=problem.weights,
        floor=floor,
        site=site,
        offset=evidence.cut_offset,
        slope=evidence.cut_slope,
        norm_weight=evidence.cut_norm_weight,
        transport_norm=problem.transport_norm,
        n_features=problem.n_features,
        mixture=problem.mixture,
        feature_scale=problem.feature_scale,
        swing=evidence.cut_swing if evidence.cut_swing.any() else None,
        idle=evidence.exchanges - evidence.cut_used,
        reach=problem.reach,
    )


def with_answers(
    evidence: Evidence, problem: ServerProblem, point: FloatArray, answers: Mapping[str, Arrays]
) -> Evidence:
    """Add a round: risks and cuts at ``point``, and the prox minorants where the answers have them; not its bounds."""
    return with_exchange(evidence, problem, point[None], [answers])


def with_exchange(
    evidence: Evidence, problem: ServerProblem, points: FloatArray, answers: Sequence[Mapping[str, Arrays]]
) -> Evidence:
    """The same of several points (q, D) asked in one exchange, with the answers at each: one copy of what is known."""
    new = [answered(problem, point, told) for point, told in zip(points, answers, strict=True)]
    number = evidence.exchanges + 1
    sites, offsets, slopes, norm_weights, swings = (
        [part for each in new for part in getattr(each, name)]
        for name in ("sites", "offsets", "slopes", "norm_weights", "swings")
    )
    came = np.full(len(sites), number)
    return replace(
        evidence,
        points=np.vstack([evidence.points, points]),
        risks=np.vstack([evidence.risks, *(each.risks for each in new)]),
        point_round=np.append(evidence.point_round, np.full(len(new), number)),
        cut_site=np.append(evidence.cut_site, sites),
        cut_offset=np.append(evidence.cut_offset, offsets),
        cut_slope=np.vstack([evidence.cut_slope, *slopes]),
        cut_norm_weight=np.append(evidence.cut_norm_weight, norm_weights),
        cut_swing=with_swings(evidence.cut_swing, swings),
        cut_round=np.append(evidence.cut_round, came),
        cut_used=np.append(evidence.cut_used, came),
        exchanges=number,
    )


def risks_or_models(evidence: Evidence, problem: ServerProblem, k: int) -> FloatArray:
    """Risks (G,) at the visited point k; where a site did not answer there, its cut model."""
    risks = evidence.risks[k]
    missing = np.isnan(risks)
    if not missing.any():
        return np.asarray(risks)
    modelled = cut_model(evidence, problem).site_values(evidence.points[k][None])[0]
    return np.asarray(np.where(missing, modelled, risks))
