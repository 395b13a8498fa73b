r"""What is known of the risks of one lift with one fold held out: cuts that serve every candidate, whoever asked.

The worst case over a ball of radius rho and flip cost kappa at a point flips some share phi of the rows and spends what
is left, ``rho - kappa phi``, on moving features without bounds (FDR eq. 9; DRFL Corollaries B.4 to B.6). The same flips
are open to every ball with ``rho' >= kappa' phi``, so a cut that was answered for one candidate,

    r(u) >= offset + <slope, u> + L (rho - kappa phi) ||u||_*,

is one of the other's risk with the norm weight ``L (rho' - kappa' phi)``, and phi follows from the norm weight told. Of
a sum over sites the mean phi is known, which is enough to look for weights by: a tuning proves nothing. A regression
has no flips: its radius adds ``rho L max(||u||_*, 1 / kappa)`` (Corollaries B.1 to B.3), which is taken off and put on.
On a box and a polytope a cut serves the candidate of which it is, and those that differ in the ball over the sites
alone.

Where no row flips at a point u (phi = 0 at every site), its risk is known for every radius with the same flip cost,
``r' = r + L (rho' - rho) ||u||_*``, of a regression at every point with ``max(||u||_*, 1 / kappa)`` for the norm. So
the best point that a candidate knows may have been asked for another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from models.basics import Arrays, FloatArray, without_needless_digits
from models.cuts.cut_model import CutModel
from models.cuts.cut_program import minimise, project
from models.cuts.farthest import Farthest
from models.geometry.norms import dual_norm
from models.problem import SiteTerms
from models.site_ambiguity.ball import MixtureBall, worst_mixture
from models.tuning.candidates import Candidate
from models.tuning.terms import Step, TuningTerms
from models.worst_case.risk import RiskCut

COARSE = 5e-2
"""Relative gap below which held-out scores hardly move any more, so no further cut is asked."""
DIGITS = 1e-3
"""Of a point that is asked: as of a training to this gap."""
_LEVEL = 0.3  # as the level bundle of a training has it
_RANK = 1e-12  # of the largest singular value: below it a direction is rounding
_NO_FLIPS = 1e-9  # share of a radius that is rounding


@dataclass(frozen=True)
class _Cut:
    site: int
    offset: float
    slope: FloatArray
    norm_weight: float
    asked: Candidate


@dataclass(frozen=True)
class _Told:
    """Risks (G,) of all sites at a point for the candidate that was ``asked``; ``still``: no row flips there."""

    point: FloatArray
    risks: FloatArray
    norm: float
    still: bool
    asked: Candidate


@dataclass
class SharedCuts:
    """Cuts of one lift, fold and head.

    Nothing of another fold is in it: weights that saw the held-out rows must not be where a training begins.
    """

    terms: TuningTerms
    n_features: int
    _cuts: list[_Cut] = field(default_factory=list)
    _told: list[_Told] = field(default_factory=list)

    @property
    def dimension(self) -> int:
        """Length of a point."""
        return self.n_features + int(self.terms.fit_intercept)

    def asked(self, candidate: Candidate) -> int:
        """How often a candidate's own risk was asked."""
        return sum(each.asked == candidate for each in self._told)

    def add(self, candidate: Candidate, point: FloatArray, answers: Mapping[str, Arrays]) -> None:
        """Take in what all sites answered for a candidate at a point: risk, cut height, slope, norm weight."""
        norm, risks = float(dual_norm(point[: self.n_features], self.terms.transport_norm)), []
        still = True
        for number, site in enumerate(self.terms.sites):
            told = answers[site.site_id]
            cut = RiskCut(
                float(told["risk"]), float(told["cut_height"]), told["slope"], float(told["norm_weight"]),
                told.get("swing"),
            )
            risks.append(cut.risk)
            still = still and self._is_still(site, cut.norm_weight, candidate)
            self._cuts.append(_Cut(number, *self._plain(cut, point, norm), candidate))
        self._told.append(_Told(point, np.array(risks), norm, still, candidate))

    def step(self, candidate: Candidate) -> Step:
        """Next point of a candidate, its best known one, and how near that is to its optimum."""
        known = self.known(candidate)
        upper, best = min(known, key=lambda each: each[0], default=(math.inf, self._near(candidate)))
        if not self._cuts:
            return Step(best, best, math.inf)
        basis = self._basis(best)
        model, near = self._within(self.model(candidate), basis), _seen(best, basis)
        lowest = model.value(minimise(model, near).point)
        height = upper if math.isfinite(upper) else model.value(near)
        gap = (upper - lowest) / upper if 0 < upper < math.inf else (math.inf if upper else 0.0)
        found = project(model, near, lowest + _LEVEL * max(height - lowest, 0.0)).point
        if basis is not None:
            found = np.append(basis @ found[: basis.shape[1]], found[basis.shape[1] :])
        upper = upper if math.isfinite(upper) else max(height, 1.0)  # losses are of order one
        found = self._farthest(candidate).drawn_in(found, best, min(upper, self._at_zero(candidate)))
        return Step(without_needless_digits(found, DIGITS), best, max(gap, 0.0))

    def _at_zero(self, candidate: Candidate) -> float:
        """Risk at zero weights, which of classes no ball and no cost of a flip changes; infinite where it is not known.

        A candidate may know its risk at one point alone, which is worse.
        """
        if self.terms.loss.task == "regression":
            return math.inf
        known = (self._worst(told.risks, candidate) for told in self._told if not told.point.any())
        return min(known, default=math.inf)

    def _farthest(self, candidate: Candidate) -> Farthest:
        radius = candidate.radius * max(site.radius for site in self.terms.sites)
        return Farthest(self.n_features, radius, self.terms.transport_norm, box=not self.terms.unbounded)

    def model(self, candidate: Candidate) -> CutModel:
        """Cut model of a candidate's risk from every cut that holds for it."""
        held = [restated for cut in self._cuts if (restated := self._restated(cut, candidate)) is not None]
        floor = np.zeros(len(self.terms.sites))
        for cut in held:
            floor[cut.site] = max(floor[cut.site], cut.norm_weight)
        return CutModel(
            site_weights=self.terms.weights, floor=floor, site=np.array([cut.site for cut in held], dtype=np.intp),
            offset=np.array([cut.offset for cut in held]),
            slope=np.array([cut.slope for cut in held]).reshape(len(held), self.dimension),
            norm_weight=np.array([cut.norm_weight for cut in held]),
            transport_norm=self.terms.transport_norm, n_features=self.n_features,
            mixture=self._ball(candidate),
        )

    def _basis(self, best: FloatArray) -> FloatArray | None:
        """Orthonormal columns (P, R) that span slopes and best point; None where that is no smaller, or not enough.

        With the Euclidean norm nothing outside the span lowers a cut: few cuts of a large lift make a small program.
        """
        if self.terms.transport_norm != "l2" or len(self._cuts) >= self.n_features:
            return None
        slopes = [cut.slope[: self.n_features] for cut in self._cuts]
        left, sizes, _ = np.linalg.svd(np.stack([*slopes, best[: self.n_features]], axis=1), full_matrices=False)
        return np.asarray(left[:, sizes > _RANK * sizes[0]]) if sizes[0] > 0 else None

    def _within(self, model: CutModel, basis: FloatArray | None) -> CutModel:
        if basis is None:
            return model
        slope = np.hstack([model.slope[:, : self.n_features] @ basis, model.slope[:, self.n_features :]])
        return replace(model, slope=slope, n_features=basis.shape[1])

    def _plain(self, cut: RiskCut, point: FloatArray, norm: float) -> tuple[float, FloatArray, float]:
        """Offset, slope and norm weight; a swing as the plane that it is on the point's side."""
        offset, slope = cut.offset(point, norm), cut.slope
        if cut.swing is not None:
            slope = slope.copy()
            slope[: self.n_features] += np.sign(point[: self.n_features]) * cut.swing
        return offset, slope, cut.norm_weight

    def _restated(self, cut: _Cut, wanted: Candidate) -> _Cut | None:
        """The cut as one of another candidate's risk; None where it is not known to be one."""
        asked, radius, steep = cut.asked, self.terms.sites[cut.site].radius, self.terms.loss.lipschitz
        if (asked.radius, asked.label_flip_cost) == (wanted.radius, wanted.label_flip_cost):
            return cut
        if not self.terms.unbounded or not math.isfinite(steep):
            return None
        if self.terms.loss.task == "regression":
            paid = 0.0 if cut.norm_weight > 0 else steep * radius * asked.radius / asked.label_flip_cost
            return _Cut(cut.site, cut.offset - paid, cut.slope, steep * radius * wanted.radius, wanted)
        # What was not spent on moving was spent on flips; a cost may be infinite where there are none.
        spent = radius * asked.radius - cut.norm_weight / steep
        if spent <= _NO_FLIPS * radius * asked.radius:
            return _Cut(cut.site, cut.offset, cut.slope, steep * radius * wanted.radius, wanted)
        left = radius * wanted.radius - spent * wanted.label_flip_cost / asked.label_flip_cost
        return _Cut(cut.site, cut.offset, cut.slope, steep * left, wanted) if left >= 0 else None

    def known(self, candidate: Candidate) -> list[tuple[float, FloatArray]]:
        """Risk of a candidate under the worst mixture of the sites, and the point (D,), wherever it is known."""
        found = []
        for told in self._told:
            risks = self._risks_of(told, candidate)
            if risks is not None:
                found.append((self._worst(risks, candidate), told.point))
        return found

    def _risks_of(self, told: _Told, wanted: Candidate) -> FloatArray | None:
        """Risks (G,) of a candidate at a point that was asked; None where they are not known."""
        asked = told.asked
        if (asked.radius, asked.label_flip_cost) == (wanted.radius, wanted.label_flip_cost):
            return told.risks
        if not told.still or asked.label_flip_cost != wanted.label_flip_cost:
            return None
        paid = told.norm
        if self.terms.loss.task == "regression":
            paid = max(paid, 1.0 / asked.label_flip_cost)
        radii = np.array([site.radius for site in self.terms.sites])
        return np.asarray(told.risks + self.terms.loss.lipschitz * (wanted.radius - asked.radius) * radii * paid)

    def _is_still(self, site: SiteTerms, norm_weight: float, asked: Candidate) -> bool:
        """Whether all that a site's ball allows was spent on moving: then no row flips there in any ball."""
        steep = self.terms.loss.lipschitz
        if not self.terms.unbounded or not math.isfinite(steep):
            return False
        whole = steep * site.radius * asked.radius
        return self.terms.loss.task == "regression" or norm_weight >= (1.0 - _NO_FLIPS) * whole

    def _worst(self, risks: FloatArray, candidate: Candidate) -> float:
        return worst_mixture(risks, self.terms.weights, self._ball(candidate)).value

    def _ball(self, candidate: Candidate) -> MixtureBall:
        return MixtureBall(self.terms.mixture_norm, candidate.mixture_radius)

    def _near(self, candidate: Candidate) -> FloatArray:
        """Where a candidate begins that was not asked: where the one with the nearest terms was best, else zero."""
        if not self._told:
            return np.zeros(self.dimension)

        def far(other: Candidate) -> float:
            pairs = ((other.radius, candidate.radius), (other.label_flip_cost, candidate.label_flip_cost))
            return sum(abs(math.log(a / b)) if math.isfinite(a / b) and a / b > 0 else 0.0 for a, b in pairs)

        other = min((each.asked for each in self._told), key=far)
        return min(self.known(other), key=lambda each: each[0])[1]


def _seen(point: FloatArray, basis: FloatArray | None) -> FloatArray:
    """A point (D,) in a basis of the features (P, R): (R,), and the intercept."""
    if basis is None:
        return point
    return np.append(basis.T @ point[: basis.shape[0]], point[basis.shape[0] :])
