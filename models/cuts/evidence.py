r"""What the server knows of the sites' risks: every point asked, every risk answered, every cut.

All methods keep it the same way, so all end with the same certificate:

- upper bound: the least over the visited points k of ``max_{q in Q} sum_g q_g u_gk``, with ``u_gk`` the risk that site
  g answered at k; where it did not answer there and is absent in this round, its cut model; where it is present, the
  point is left out;
- lower bound: the cut model of all sites (a site that never answered counts 0), see ``models.lower_bound``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from models.ambiguity import dual_norm
from models.certificates import check_certificate
from models.cut_model import CutModel, ModelPoint, minimise
from models.lower_bound import lower_bound
from models.mixture import worst_mixture
from models.problem import Arrays, Certificate, FloatArray, ServerProblem

_ROUNDING = 8 * float(np.finfo(np.float64).eps)
_ARRAYS = ("points", "risks", "cut_site", "cut_offset", "cut_slope", "cut_norm_weight")


@dataclass(frozen=True)
class Evidence:
    """Rounds k = 1..K at points (K, D) with risks (K, G), NaN where a site did not answer; m cuts; the bounds.

    ``best`` is the index of the point that attains ``upper``, -1 where no point does (``upper`` is infinite then).
    ``fresh_weight`` is the share of the site weight (the centre of Q) that answered the last round.
    """

    points: FloatArray
    risks: FloatArray
    cut_site: FloatArray
    cut_offset: FloatArray
    cut_slope: FloatArray
    cut_norm_weight: FloatArray
    upper: float = math.inf
    lower: float = 0.0
    fresh_weight: float = 0.0
    best: int = -1

    @property
    def best_point(self) -> FloatArray:
        """The point that attains the upper bound; the last one where none does, zero before the first round."""
        return self.points[self.best] if self.points.shape[0] else np.zeros(self.points.shape[1])

    @property
    def certificate(self) -> Certificate:
        """Certificate after the last round; raises ``CertificateError`` where it does not hold."""
        return check_certificate(Certificate(self.upper, self.lower, self.fresh_weight))

    def best_risks(self, problem: ServerProblem) -> dict[str, float]:
        """Risk of each site at the best point; NaN where it did not answer there."""
        known = self.risks[self.best] if self.best >= 0 else np.full(len(problem.sites), np.nan)
        return {site.site_id: float(risk) for site, risk in zip(problem.sites, known, strict=True)}

    def worst_mixture(self, problem: ServerProblem) -> dict[str, float]:
        """Worst mixture of the sites at the best point: the weights where the ball over the sites has radius 0."""
        weights = _shares(problem)
        if self.best >= 0 and problem.mixture.radius > 0:
            risks = risks_or_models(self, problem, self.best)
            weights = worst_mixture(risks, weights, problem.mixture).weights
        return {site.site_id: float(weight) for site, weight in zip(problem.sites, weights, strict=True)}

    def pack(self) -> dict[str, FloatArray]:
        """All of it as float64 arrays, exactly."""
        bounds = np.array([self.upper, self.lower, self.fresh_weight, self.best])
        return {name: getattr(self, name) for name in _ARRAYS} | {"bounds": bounds}


def no_evidence(problem: ServerProblem) -> Evidence:
    """Evidence before the first round."""
    n_sites, dimension = len(problem.sites), problem.dimension
    return Evidence(
        points=np.zeros((0, dimension)),
        risks=np.zeros((0, n_sites)),
        cut_site=np.zeros(0),
        cut_offset=np.zeros(0),
        cut_slope=np.zeros((0, dimension)),
        cut_norm_weight=np.zeros(0),
    )


def unpack_evidence(arrays: Arrays) -> Evidence:
    """Evidence from :meth:`Evidence.pack`; other arrays are left alone."""
    upper, lower, fresh_weight, best = (float(bound) for bound in arrays["bounds"])
    parts = {name: np.asarray(arrays[name]) for name in _ARRAYS}
    return Evidence(**parts, upper=upper, lower=lower, fresh_weight=fresh_weight, best=int(best))


def cut_model(evidence: Evidence, problem: ServerProblem) -> CutModel:
    """Cut model of all the evidence; the floor of a site is the largest norm weight seen of it."""
    site = evidence.cut_site.astype(np.intp)
    floor = np.zeros(len(problem.sites))
    np.maximum.at(floor, site, evidence.cut_norm_weight)
    return CutModel(
        shares=_shares(problem),
        floor=floor,
        site=site,
        offset=evidence.cut_offset,
        slope=evidence.cut_slope,
        norm_weight=evidence.cut_norm_weight,
        transport_norm=problem.transport_norm,
        n_features=problem.n_features,
        mixture=problem.mixture,
        stretch=problem.stretch,
    )


def record(evidence: Evidence, problem: ServerProblem, point: FloatArray, answers: Mapping[str, Arrays]) -> Evidence:
    """Add a round: risks and cuts at ``point``, and the prox minorants where the answers have them."""
    risks = np.full(len(problem.sites), np.nan)
    sites: list[float] = []
    offsets: list[float] = []
    slopes: list[FloatArray] = []
    norm_weights: list[float] = []
    stretched = point[: problem.n_features] * (1.0 if problem.stretch is None else problem.stretch)
    norm = dual_norm(stretched, problem.transport_norm)
    for g, site in enumerate(problem.sites):
        answer = answers.get(site.site_id)
        if answer is None:
            continue
        risks[g] = answer["risk"]
        weight = float(answer["norm_weight"])
        offset = float(answer["risk"]) - float(answer["slope"] @ point) - weight * norm
        # Far from zero large terms cancel: the cut is lowered by what their rounding may have raised it.
        size = abs(float(answer["risk"])) + float(np.abs(answer["slope"]) @ np.abs(point)) + abs(weight) * norm
        offset -= _ROUNDING * size
        cuts = [(offset, answer["slope"], weight)]
        if "minorant_slope" in answer:
            cuts.append(
                (float(answer["minorant_offset"]), answer["minorant_slope"], float(answer["minorant_norm_weight"]))
            )
        sites += [float(g)] * len(cuts)
        offsets += [cut[0] for cut in cuts]
        slopes += [cut[1] for cut in cuts]
        norm_weights += [cut[2] for cut in cuts]
    grown = replace(
        evidence,
        points=np.vstack([evidence.points, point]),
        risks=np.vstack([evidence.risks, risks]),
        cut_site=np.append(evidence.cut_site, sites),
        cut_offset=np.append(evidence.cut_offset, offsets),
        cut_slope=np.vstack([evidence.cut_slope, *slopes]),
        cut_norm_weight=np.append(evidence.cut_norm_weight, norm_weights),
    )
    best, upper = _best_round(grown, problem)
    fresh_weight = float(_shares(problem)[~np.isnan(risks)].sum())
    return replace(grown, upper=upper, best=best, fresh_weight=fresh_weight)


def risks_or_models(evidence: Evidence, problem: ServerProblem, k: int) -> FloatArray:
    """Risks (G,) at the visited point k; where a site did not answer there, its cut model."""
    risks = evidence.risks[k]
    missing = np.isnan(risks)
    if not missing.any():
        return np.asarray(risks)
    modelled = cut_model(evidence, problem).site_values(evidence.points[k][None])[0]
    return np.asarray(np.where(missing, modelled, risks))


def raise_lower(evidence: Evidence, problem: ServerProblem) -> tuple[Evidence, ModelPoint]:
    """Evidence with the best lower bound its cuts give, and the minimiser of the cut model near the best point."""
    model = cut_model(evidence, problem)
    bottom = minimise(model, evidence.best_point)
    lower = lower_bound(model.with_mixture(bottom.mixture), bottom.multipliers, evidence.best_point)
    return replace(evidence, lower=max(evidence.lower, lower)), bottom


def _shares(problem: ServerProblem) -> FloatArray:
    return np.array([site.weight for site in problem.sites])


def _best_round(evidence: Evidence, problem: ServerProblem) -> tuple[int, float]:
    """Visited point of least ``max_q sum_g q_g u_gk`` and that value; (-1, inf) where no point counts."""
    shares, ball = _shares(problem), problem.mixture
    risks, missing = evidence.risks, np.isnan(evidence.risks)
    counted = (shares > 0) | (ball.radius > 0)
    absent = missing[-1] & counted
    if absent.any():
        modelled = cut_model(evidence, problem).site_values(evidence.points)
        risks = np.where(missing & absent, modelled, risks)
    left_out = np.asarray((np.isnan(risks) & counted).any(axis=1))
    risks = np.where(counted, np.nan_to_num(risks), 0.0)
    totals = np.where(left_out, np.inf, risks @ shares)
    if ball.radius == 0:
        best = int(np.argmin(totals))
        return (best, float(totals[best])) if np.isfinite(totals[best]) else (-1, math.inf)
    if evidence.best >= 0 and not left_out[evidence.best]:
        # What is worst for the best point so far is near the worst for most others: few are left to judge exactly.
        totals = np.maximum(totals, risks @ worst_mixture(risks[evidence.best], shares, ball).weights)
    best, upper = -1, math.inf
    for k in np.argsort(totals, kind="stable"):
        # The total under one mixture of the ball is at most that under the worst, so no later point can be better.
        if totals[k] >= upper:
            break
        if (value := worst_mixture(risks[k], shares, ball).value) < upper:
            best, upper = int(k), value
    return best, upper
