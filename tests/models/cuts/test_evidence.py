"""What the server may conclude from the answers: bounds over the points that count, cuts that hold to the last bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from models.basics import Arrays
from models.cuts import evidence as subject
from models.methods.bundle.level import BundleServer
from models.methods.site_answers import cut_answer
from models.problem import ServerProblem, SiteTerms, Status
from models.site_ambiguity.ball import MixtureBall, MixtureNorm, worst_mixture
from models.worst_case.risk import RiskCut

NAMES = ("a", "b", "c", "d", "e")


def _problem(norm: MixtureNorm = "l2", radius: float = 0.0, **changes: Any) -> ServerProblem:
    sites = tuple(SiteTerms(name, 0.2, 0.1, 1.0) for name in NAMES)
    return replace(ServerProblem(2, sites, "l2", True, mixture=MixtureBall(norm, radius)), **changes)


def _answer(risk: float, slope: Any = (0.0, 0.0, 0.0), norm_weight: float = 0.0) -> Arrays:
    return cut_answer(RiskCut(risk, risk, np.array(slope, dtype=float), norm_weight))


def _answers(*risks: float) -> dict[str, Arrays]:
    """Answers of the first sites, flat cuts."""
    return {name: _answer(risk) for name, risk in zip(NAMES, risks, strict=False)}


def _recorded(problem: ServerProblem, *rounds: Mapping[str, Arrays]) -> subject.Evidence:
    known = subject.Evidence.empty(problem)
    for number, answers in enumerate(rounds):
        known = subject.record(known, problem, np.full(3, float(number)), answers)
    return known


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("radius", [0.05, 0.4, 2.0])
def test_upper_bound_is_the_least_worst_total_and_few_points_are_judged(
    monkeypatch: pytest.MonkeyPatch, norm: MixtureNorm, radius: float
) -> None:
    problem, random, rounds = _problem(norm, radius), np.random.default_rng(3), 200
    judged = []

    def counted(risks: Any, site_weights: Any, ball: Any) -> Any:
        judged.append(risks)
        return worst_mixture(risks, site_weights, ball)

    monkeypatch.setattr(subject, "worst_mixture", counted)
    known, totals = subject.Evidence.empty(problem), []
    level = random.uniform(0.5, 1.5, size=5)
    for k in range(rounds):
        # falling risks, as of a method that converges, with one site worse than the others
        risks = level * (0.3 + 1 / (k + 1)) + 0.02 * random.uniform(size=5)
        known = subject.record(known, problem, random.normal(size=3), _answers(*risks))
        totals.append(worst_mixture(risks, np.full(5, 0.2), problem.mixture).value)
        assert known.upper == pytest.approx(min(totals), rel=1e-14)
        assert known.best == int(np.argmin(totals))
    assert len(judged) <= 5 * rounds


@pytest.mark.parametrize("size", [1.0, 1e6])
def test_no_cut_is_above_its_risk_even_by_rounding(size: float) -> None:
    """Far from zero the terms of a cut cancel; in exact arithmetic it is at or below the risk that it came from."""
    random, problem = np.random.default_rng(2), _problem(transport_norm="l1")
    for _ in range(50):
        point, slope = size * random.normal(size=3), random.normal(size=3)
        risk, weight = random.uniform(), random.uniform()
        answers = {"a": _answer(risk, slope, weight)}
        known = subject.record(subject.Evidence.empty(problem), problem, point, answers)
        norm = max(abs(Fraction(value)) for value in point[:2])
        terms = [Fraction(s) * Fraction(w) for s, w in zip(slope, point, strict=True)]
        value = Fraction(known.cut_offset[0]) + sum(terms) + Fraction(weight) * norm
        assert value <= Fraction(risk)
        assert float(value) == pytest.approx(risk, abs=1e-12 * size)


def test_a_cut_touches_its_risk_in_the_units_of_the_features() -> None:
    problem = _problem(feature_scale=np.array([2.0, 0.5]))
    point = np.array([1.0, -3.0, 0.5])
    known = subject.record(
        subject.Evidence.empty(problem), problem, point, {"b": _answer(1.7, (0.1, 0.2, 0.3), 0.4)}
    )
    assert subject.cut_model(known, problem).site_values(point[None])[0, 1] == pytest.approx(1.7, rel=1e-12)


def test_the_floor_of_a_site_is_its_largest_norm_weight() -> None:
    problem = _problem()
    known = _recorded(problem, {"a": _answer(1.0, norm_weight=0.05)}, {"a": _answer(1.0, norm_weight=0.1)})
    assert subject.cut_model(known, problem).floor.tolist() == [0.1, 0.0, 0.0, 0.0, 0.0]


def test_a_point_where_a_present_site_never_answered_does_not_count() -> None:
    """Its risk there could be anything; once the site is away, its cuts stand for it."""
    every, four = _answers(0.9, 0.9, 0.9, 0.9, 0.9), _answers(0.1, 0.1, 0.1, 0.1)
    known = _recorded(_problem(), four, every)
    assert (known.best, known.upper) == (1, pytest.approx(0.9))
    # Of the three that did not answer the first point one is away now: what the other two have there is not known.
    known = _recorded(_problem(), _answers(0.0, 0.0), _answers(*[0.3] * 5), _answers(*[0.3] * 4))
    assert known.upper == pytest.approx(0.3)
    known = _recorded(_problem(), every, four)
    assert (known.best, known.upper) == (1, pytest.approx(0.8 * 0.1 + 0.2 * 0.9))
    assert _recorded(_problem(), four).upper == pytest.approx(0.8 * 0.1)


def test_fresh_weight_is_that_of_the_last_round() -> None:
    known = _recorded(_problem(), _answers(1.0, 1.0, 1.0, 1.0, 1.0), _answers(1.0, 1.0))
    assert known.fresh_weight == pytest.approx(0.4)


def test_a_lower_bound_that_was_proven_stays() -> None:
    problem = _problem()
    known = replace(_recorded(problem, _answers(0.5, 0.5, 0.5, 0.5, 0.5)), lower=0.499999)
    assert subject.tighten_lower_bound(replace(known, lower=0.0), problem)[0].lower == pytest.approx(0.5)
    worse = replace(known, cut_offset=known.cut_offset - 0.1)
    assert subject.tighten_lower_bound(worse, problem)[0].lower == 0.499999


@pytest.mark.parametrize(("gap", "status"), [(0.011, Status.CERTIFIED), (0.009, Status.CONTINUE)])
def test_certified_means_at_or_below_the_wanted_gap(gap: float, status: Status) -> None:
    problem, server = _problem(gap=gap, parameters={"level": 0.2}), BundleServer(prox_cuts=False)
    known = replace(_recorded(problem, _answers(1.0, 1.0, 1.0, 1.0, 1.0)), lower=0.99)
    assert server.status(replace(server.init(problem), evidence=known), problem) is status
