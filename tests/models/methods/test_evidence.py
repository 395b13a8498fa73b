"""The upper bound over all visited points, found without judging each of them in every round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.methods import evidence as subject
from models.mixture import MixtureBall, MixtureNorm, worst_mixture
from models.problem import ServerProblem, SiteTerms

NAMES = ("a", "b", "c", "d", "e")


def _problem(norm: MixtureNorm, radius: float) -> ServerProblem:
    sites = tuple(SiteTerms(name, 0.2, 0.1, 1.0) for name in NAMES)
    return ServerProblem(2, sites, "l2", True, mixture=MixtureBall(norm, radius))


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("radius", [0.05, 0.4, 2.0])
def test_upper_bound_is_the_least_worst_total_and_few_points_are_judged(
    monkeypatch: pytest.MonkeyPatch, norm: MixtureNorm, radius: float
) -> None:
    problem, random, rounds = _problem(norm, radius), np.random.default_rng(3), 200
    judged = []

    def counted(risks: Any, shares: Any, ball: Any) -> Any:
        judged.append(risks)
        return worst_mixture(risks, shares, ball)

    monkeypatch.setattr(subject, "worst_mixture", counted)
    known, totals = subject.no_evidence(problem), []
    level = random.uniform(0.5, 1.5, size=5)
    for k in range(rounds):
        # falling risks, as of a method that converges, with one site worse than the others
        risks = level * (0.3 + 1 / (k + 1)) + 0.02 * random.uniform(size=5)
        answers = {
            name: {"risk": np.array(risk), "slope": np.zeros(3), "norm_weight": np.array(0.0)}
            for name, risk in zip(NAMES, risks, strict=True)
        }
        known = subject.record(known, problem, random.normal(size=3), answers)
        totals.append(worst_mixture(risks, np.full(5, 0.2), problem.mixture).value)
        assert known.upper == pytest.approx(min(totals), rel=1e-14)
        assert known.best == int(np.argmin(totals))
    assert len(judged) <= 5 * rounds
