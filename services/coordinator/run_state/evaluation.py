"""What the sites find on their held-out rows, and the interval that they are asked to count."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from models.basics import Arrays, FloatArray
from models.evaluation.intervals import residual_interval
from models.problem import ServerProblem
from models.site_ambiguity.ball import worst_mixture
from services.contracts.evaluation.scores import COVERAGE_CONFIDENCE, REGRESSION_SUMS, added
from services.contracts.history.run import Run, SiteAnswer
from services.contracts.plans.plan import Plan
from services.coordinator.run_state.terms import cohorts_of, mixture_of


@dataclass(frozen=True)
class Evaluation:
    """What each site that answered found on its held-out part, by site id.

    ``confusion`` : counts (C, C) of a classification. ``sums`` : those of a regression, ``scores.REGRESSION_SUMS``.
    ``loss`` : mean training loss, the heads summed. ``risk`` : exact worst-case risk over the site's ball at the
    weights, the heads summed. ``worst_case_risk`` : that of the worst mixture in the ball of
    ``terms.mixture_of``, whatever the method minimised, infinite where it is not known; ``worst_weights`` : the
    mixture, the mean over the heads.
    ``all_confusion`` and ``all_sums`` : counts and sums over all sites, those that told none of their own among them.
    ``convicted`` : accounts of the sites whose risks contradict what they answered in the rounds, and ``evidence``
    files against them; the model is to be trained on without them. ``note`` : which cohorts' scores do not count.
    """

    confusion: Mapping[str, FloatArray]
    sums: Mapping[str, Mapping[str, float]]
    loss: Mapping[str, float]
    risk: Mapping[str, float]
    worst_case_risk: float
    worst_weights: Mapping[str, float]
    answers: tuple[SiteAnswer, ...]
    all_confusion: FloatArray | None = None
    all_sums: Mapping[str, float] | None = None
    convicted: tuple[SiteAnswer, ...] = ()
    evidence: Mapping[str, bytes] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class ScoresOnSums:
    """What cohorts found: mean risk (K,) and loss (), counts and sums; ``complete``: those of which no plant lacks.

    ``doubts`` : cohorts whose sums cannot be of true scores, and why; they are in none of the others.
    """

    scores: Mapping[str, Arrays]
    complete: frozenset[str]
    answers: tuple[SiteAnswer, ...] = ()
    doubts: Mapping[str, str] = field(default_factory=dict)

    @property
    def note(self) -> str:
        """The doubts in words."""
        return "; ".join(f"what {name} told does not count: {why}" for name, why in sorted(self.doubts.items()))


@dataclass(frozen=True)
class Scores:
    """Answers to an evaluation: the sites' ``own``, and ``together`` those of cohorts where not all told their own."""

    own: Mapping[str, Arrays]
    answers: tuple[SiteAnswer, ...]
    together: ScoresOnSums | None = None

    def worst_risk(self, run: Run, otherwise: float) -> tuple[float, dict[str, float]]:
        """Risk of the worst mixture in the ball, and the mixture; ``otherwise`` where it is not known."""
        if self.together is None:
            return worst_over_sites(run, {site: each["risk"] for site, each in self.own.items()}, otherwise)
        shares = {site.site_id: site.weight for site in run.members}
        cohorts = cohorts_of(run)
        if self.together.complete != cohorts.keys():
            return otherwise, shares
        found = self.together.scores
        weights = {name: sum(shares[site] for site in members) for name, members in cohorts.items()}
        return sum(weights[name] * float(found[name]["risk"].sum()) for name in cohorts), shares

    def of_cohorts(self, run: Run) -> dict[str, FloatArray]:
        """Mean risks (K,) of the cohorts of a run on sums, of those of which no plant's is missing."""
        if self.together is not None:
            return {name: self.together.scores[name]["risk"] for name in self.together.complete}
        shares = {site.site_id: site.weight for site in run.members}
        return {
            name: np.average([self.own[site]["risk"] for site in plants], axis=0, weights=[shares[s] for s in plants])
            for name, plants in cohorts_of(run).items() if self.own.keys() >= set(plants)
        }

    def evaluation(
        self, worst_case_risk: float, worst_weights: Mapping[str, float], convicted: tuple[SiteAnswer, ...] = (),
        evidence: Mapping[str, bytes] | None = None,
    ) -> Evaluation:
        """All of it by what it is."""
        whole = self.own if self.together is None else self.together.scores
        counts = [each["confusion"] for each in whole.values() if "confusion" in each]
        sums = [_sums(each) for each in whole.values() if REGRESSION_SUMS[0] in each]
        return Evaluation(
            confusion={site: each["confusion"] for site, each in self.own.items() if "confusion" in each},
            sums={site: _sums(each) for site, each in self.own.items() if REGRESSION_SUMS[0] in each},
            loss={site: float(each["loss"]) for site, each in self.own.items()},
            risk={site: float(each["risk"].sum()) for site, each in self.own.items()},
            worst_case_risk=worst_case_risk, worst_weights=worst_weights, answers=self.answers,
            all_confusion=np.add.reduce(counts) if counts else None, all_sums=added(sums) if sums else None,
            convicted=convicted, evidence=evidence or {}, note="" if self.together is None else self.together.note,
        )


def _sums(scores: Arrays) -> dict[str, float]:
    return {name: float(scores[name]) for name in REGRESSION_SUMS}


def worst_over_sites(run: Run, risks: Mapping[str, FloatArray], otherwise: float) -> tuple[float, dict[str, float]]:
    """Risk of the worst mixture in the ball from the risks (K,) of all sites, each head with its own mixture.

    Where a site's risk is missing: ``otherwise``, and no mixture.
    """
    names = [site.site_id for site in run.members]
    if any(name not in risks for name in names):
        return otherwise, {}
    centre, ball = np.array([site.weight for site in run.members]), mixture_of(run.plan).ball
    heads = [worst_mixture(head, centre, ball) for head in np.stack([risks[name] for name in names], axis=1)]
    shares = np.mean([head.weights for head in heads], axis=0)
    return sum(head.value for head in heads), dict(zip(names, shares.tolist(), strict=True))


def risk_bound(upper: float, risks: Mapping[str, float], problem: ServerProblem) -> float:
    """Bound on the expected loss in every mixture of the ball; see ``TrainedModel``."""
    known = np.array([risks[site.site_id] for site in problem.sites])
    if not np.isfinite(known).all():
        return upper
    return max(upper, worst_mixture(known, problem.weights, problem.mixture).value)


def interval_ends(plan: Plan, risk_bound: float) -> FloatArray:
    """Ends (2,) of the residual's interval; without a bound on the risk everything lies inside."""
    if not math.isfinite(risk_bound):
        return np.array([-1.0, 1.0]) * np.finfo(np.float64).max
    return np.array(residual_interval(plan.spec.loss.loss, risk_bound, COVERAGE_CONFIDENCE))
