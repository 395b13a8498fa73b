"""What the server may conclude from the answers: bounds over the points that count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models.basics import Arrays
from models.cuts import bounds as subject
from models.cuts.evidence import Evidence
from models.methods.bundle.level import BundleServer
from models.problem import ServerProblem, SiteTerms, Status
from models.site_ambiguity.ball import MixtureNorm, worst_mixture
from tests.models.cuts.told import NAMES, answer_of, problem_of


def _answers(*risks: float) -> dict[str, Arrays]:
    """Answers of the first sites, flat cuts."""
    return {name: answer_of(risk) for name, risk in zip(NAMES, risks, strict=False)}


def _recorded(problem: ServerProblem, *rounds: Mapping[str, Arrays]) -> Evidence:
    known = Evidence.empty(problem)
    for number, answers in enumerate(rounds):
        known = subject.record(known, problem, np.full(3, float(number)), answers)
    return known


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("radius", [0.05, 0.4, 2.0])
def test_upper_bound_is_the_least_worst_total_and_few_points_are_judged(
    monkeypatch: pytest.MonkeyPatch, norm: MixtureNorm, radius: float
) -> None:
    problem, random, rounds = problem_of(norm, radius), np.random.default_rng(3), 200
    judged = []

    def counted(risks: Any, site_weights: Any, ball: Any) -> Any:
        judged.append(risks)
        return worst_mixture(risks, site_weights, ball)

    monkeypatch.setattr(subject, "worst_mixture", counted)
    known, totals = Evidence.empty(problem), []
    level = random.uniform(0.5, 1.5, size=5)
    for k in range(rounds):
        # falling risks, as of a method that converges, with one site worse than the others
        risks = level * (0.3 + 1 / (k + 1)) + 0.02 * random.uniform(size=5)
        known = subject.record(known, problem, random.normal(size=3), _answers(*risks))
        totals.append(worst_mixture(risks, np.full(5, 0.2), problem.mixture).value)
        assert known.upper == pytest.approx(min(totals), rel=1e-14)
        assert known.best == int(np.argmin(totals))
    assert len(judged) <= 5 * rounds


def test_a_point_where_a_present_site_never_answered_does_not_count() -> None:
    """Its risk there could be anything; once the site is away, its cuts stand for it."""
    every, four = _answers(0.9, 0.9, 0.9, 0.9, 0.9), _answers(0.1, 0.1, 0.1, 0.1)
    known = _recorded(problem_of(), four, every)
    assert (known.best, known.upper) == (1, pytest.approx(0.9))
    # Of the three that did not answer the first point one is away now: what the other two have there is not known.
    known = _recorded(problem_of(), _answers(0.0, 0.0), _answers(*[0.3] * 5), _answers(*[0.3] * 4))
    assert known.upper == pytest.approx(0.3)
    known = _recorded(problem_of(), every, four)
    assert (known.best, known.upper) == (1, pytest.approx(0.8 * 0.1 + 0.2 * 0.9))
    assert _recorded(problem_of(), four).upper == pytest.approx(0.8 * 0.1)


@pytest.mark.parametrize(("radius", "best", "upper"), [(0.0, 0, 0.1), (0.4, 1, 0.9)])
def test_in_a_ball_a_site_without_weight_keeps_a_point_from_counting_too(
    radius: float, best: int, upper: float
) -> None:
    """A mixture of the ball gives it some; with fixed weights what its risk is plays no part."""
    weights = (0.0, 0.25, 0.25, 0.25, 0.25)
    terms = tuple(SiteTerms(name, weight, 0.1, 1.0) for name, weight in zip(NAMES, weights, strict=True))
    others = {name: answer_of(0.1) for name in NAMES[1:]}
    known = _recorded(problem_of(radius=radius, sites=terms), others, _answers(*[0.9] * 5))
    assert (known.best, known.upper) == (best, pytest.approx(upper))


def test_fresh_weight_is_that_of_the_last_round() -> None:
    known = _recorded(problem_of(), _answers(1.0, 1.0, 1.0, 1.0, 1.0), _answers(1.0, 1.0))
    assert known.fresh_weight == pytest.approx(0.4)


def test_a_lower_bound_that_was_proven_stays() -> None:
    problem = problem_of()
    known = replace(_recorded(problem, _answers(0.5, 0.5, 0.5, 0.5, 0.5)), lower=0.499999)
    assert subject.tighten_lower_bound(replace(known, lower=0.0), problem)[0].lower == pytest.approx(0.5)
    worse = replace(known, cut_offset=known.cut_offset - 0.1)
    assert subject.tighten_lower_bound(worse, problem)[0].lower == 0.499999


@pytest.mark.parametrize(("gap", "status"), [(0.011, Status.CERTIFIED), (0.009, Status.CONTINUE)])
def test_certified_means_at_or_below_the_wanted_gap(gap: float, status: Status) -> None:
    problem, server = problem_of(gap=gap, parameters={"level": 0.2}), BundleServer(prox_cuts=False)
    known = replace(_recorded(problem, _answers(1.0, 1.0, 1.0, 1.0, 1.0)), lower=0.99)
    assert server.status(replace(server.init(problem), evidence=known), problem) is status


@pytest.mark.parametrize("left", [1e-19, 1e-17, 1e-11])
def test_a_norm_weight_that_rounding_left_takes_nothing_off_the_bound(left: float) -> None:
    """Without a cut at zero, as in a run that goes on from an earlier one, no norm weight but these is known."""
    random, problem = np.random.default_rng(8), problem_of(transport_norm="l1")
    slopes = random.normal(size=(12, 3))
    slopes -= slopes.mean(axis=0)
    bounds = []
    for weight in (0.0, left):
        known = Evidence.empty(problem)
        for slope in slopes:
            known = subject.record(known, problem, np.zeros(3), {name: answer_of(0.4, slope, weight) for name in NAMES})
        bounds.append(subject.tighten_lower_bound(known, problem)[0].lower)
    assert bounds[0] == pytest.approx(0.4, rel=1e-9) and bounds[1] == pytest.approx(bounds[0], rel=1e-9)
