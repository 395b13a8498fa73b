"""What the server knows from the answers: cuts that hold to the last bit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from models.cuts.evidence import Evidence, cut_model, with_answers
from tests.models.cuts.told import answer_of, problem_of


@pytest.mark.parametrize("size", [1.0, 1e6])
def test_no_cut_is_above_its_risk_even_by_rounding(size: float) -> None:
    """Far from zero the terms of a cut cancel; in exact arithmetic it is at or below the risk that it came from."""
    random, problem = np.random.default_rng(2), problem_of(transport_norm="l1")
    for _ in range(50):
        point, slope = size * random.normal(size=3), random.normal(size=3)
        risk, weight = random.uniform(), random.uniform()
        answers = {"a": answer_of(risk, slope, weight)}
        known = with_answers(Evidence.empty(problem), problem, point, answers)
        norm = max(abs(Fraction(value)) for value in point[:2])
        terms = [Fraction(s) * Fraction(w) for s, w in zip(slope, point, strict=True)]
        value = Fraction(known.cut_offset[0]) + sum(terms) + Fraction(weight) * norm
        assert value <= Fraction(risk)
        assert float(value) == pytest.approx(risk, abs=1e-12 * size)


def test_a_cut_touches_its_risk_in_the_units_of_the_features() -> None:
    problem = problem_of(feature_scale=np.array([2.0, 0.5]))
    point = np.array([1.0, -3.0, 0.5])
    known = with_answers(Evidence.empty(problem), problem, point, {"b": answer_of(1.7, (0.1, 0.2, 0.3), 0.4)})
    assert cut_model(known, problem).site_values(point[None])[0, 1] == pytest.approx(1.7, rel=1e-12)


def test_the_floor_of_a_site_is_its_largest_norm_weight() -> None:
    problem = problem_of()
    known = Evidence.empty(problem)
    for number, weight in enumerate((0.05, 0.1)):
        known = with_answers(known, problem, np.full(3, float(number)), {"a": answer_of(1.0, norm_weight=weight)})
    assert cut_model(known, problem).floor.tolist() == [0.1, 0.0, 0.0, 0.0, 0.0]
