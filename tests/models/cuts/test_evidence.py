"""What the server knows from the answers: cuts that hold to the last bit."""

from __future__ import annotations

from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pytest

from models.cuts.certificate import CertificateError
from models.cuts.cut_model import ModelPoint
from models.cuts.evidence import Evidence, cut_model, risks_or_models, with_answers, with_exchange
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
    for number, weight in enumerate((0.05, 0.1, 0.02)):
        known = with_answers(known, problem, np.full(3, float(number)), {"a": answer_of(1.0, norm_weight=weight)})
    assert cut_model(known, problem).floor.tolist() == [0.1, 0.0, 0.0, 0.0, 0.0]


def known() -> Evidence:
    """Three exchanges: at 0 of a and b, at two points of one exchange of c and d, at 3 of a with two cuts."""
    problem = problem_of()
    evidence = with_answers(Evidence.empty(problem), problem, np.zeros(3), {"a": answer_of(1.0), "b": answer_of(3.0)})
    both = [{"c": answer_of(2.0)}, {"d": answer_of(4.0, norm_weight=0.3)}]
    evidence = with_exchange(evidence, problem, np.ones((2, 3)), both)
    return with_answers(evidence, problem, np.full(3, 3.0), {"a": answer_of(5.0, (1.0, 0.0, 0.0))})


def test_points_risks_and_cuts_say_in_which_exchange_they_came() -> None:
    found = known()
    assert found.exchanges == 3 and found.point_round.tolist() == [1.0, 2.0, 2.0, 3.0]
    assert found.cut_round.tolist() == found.cut_used.tolist() == [1.0, 1.0, 2.0, 2.0, 3.0]
    assert found.cut_site.tolist() == [0.0, 1.0, 2.0, 3.0, 0.0]
    np.testing.assert_array_equal(found.risks[:, :4], [
        [1.0, 3.0, np.nan, np.nan], [np.nan, np.nan, 2.0, np.nan], [np.nan, np.nan, np.nan, 4.0],
        [5.0, np.nan, np.nan, np.nan],
    ])
    assert found.passed().exchanges == 4 and (found.passed().points == found.points).all()


def test_what_is_packed_is_read_again_with_the_exchange_in_which_each_cut_counted_last() -> None:
    """A run that is resumed takes the same cuts into its programs, or it goes another way."""
    used = replace(known().judged_by(np.array([4.0, 2.0, 3.0, 5.0])), cut_used=np.array([3.0, 1.0, 3.0, 2.0, 3.0]))
    packed = used.pack()
    found = Evidence.unpack(packed)
    for each in fields(Evidence):
        np.testing.assert_array_equal(getattr(found, each.name), getattr(used, each.name), err_msg=each.name)
    before = {name: array for name, array in packed.items() if name != "cut_used"}
    assert Evidence.unpack(before).cut_used.tolist() == used.cut_round.tolist(), "as states of version 0.1 are read"


def test_an_exchange_in_which_nobody_answered_is_one_without_cuts() -> None:
    found, before = with_answers(known(), problem_of(), np.full(3, 7.0), {}), known()
    assert found.exchanges == 4 and np.isnan(found.risks[-1]).all() and (found.points[-1] == 7.0).all()
    np.testing.assert_array_equal(found.cut_slope, before.cut_slope)
    np.testing.assert_array_equal(found.cut_site, before.cut_site)


def test_of_some_sites_nothing_is_left_of_the_bounds_or_of_the_others() -> None:
    """In the order that is wanted; where a cut came is kept."""
    left = replace(known(), upper=2.0, lower=1.5, fresh_weight=0.4, best=1).of_sites([3, 0])
    assert (left.upper, left.lower, left.fresh_weight, left.best) == (np.inf, 0.0, 0.0, -1)
    assert left.cut_site.tolist() == [1.0, 0.0, 1.0] and left.cut_round.tolist() == [1.0, 2.0, 3.0]
    assert left.cut_norm_weight.tolist() == [0.0, 0.3, 0.0]
    np.testing.assert_array_equal(left.risks, known().risks[:, [3, 0]])


def test_the_scale_is_the_mean_that_was_answered_first_or_that_of_the_run_before() -> None:
    assert known().scale == 2.0 and replace(known(), scale_before=0.25).scale == 0.25
    assert Evidence.empty(problem_of()).scale == 0.0


def test_a_lower_bound_rises_and_does_not_cross_the_upper_one() -> None:
    held = replace(known(), upper=2.0, lower=1.0)
    assert held.with_lower(1.5).lower == 1.5 and held.with_lower(0.5).lower == 1.0
    with pytest.raises(CertificateError):
        held.with_lower(2.1)


def test_the_least_total_is_the_upper_bound_and_points_without_one_do_not_count() -> None:
    held = known().judged_by(np.array([np.inf, 3.0, 2.5, np.inf]))
    assert (held.upper, held.best) == (2.5, 2) and (held.best_point == 1.0).all()
    none = held.judged_by(np.full(4, np.inf))
    assert (none.upper, none.best) == (np.inf, -1) and (none.best_point == 3.0).all()


def test_cuts_that_hold_a_solution_up_or_would_are_used() -> None:
    """A multiplier above a thousandth of the site's weight, or a cut that was left out above the solution."""
    multipliers = np.array([0.1, 1e-4, 3e-4, 0.0, 0.0])
    found = ModelPoint(np.zeros(3), multipliers, 0.0, np.full(5, 0.2))
    later = replace(known(), exchanges=9)
    assert later.using(found, problem_of()).cut_used.tolist() == [9.0, 1.0, 9.0, 2.0, 3.0]
    missed = replace(found, missed=np.array([False, False, False, True, False]))
    used = later.using(missed, problem_of())
    assert used.cut_used.tolist() == [9.0, 1.0, 9.0, 9.0, 3.0]
    model = cut_model(used, problem_of())
    assert model.idle is not None and model.idle.tolist() == [0.0, 8.0, 0.0, 0.0, 6.0]


def test_where_a_site_did_not_answer_its_model_stands_for_it() -> None:
    """Its highest cut or its floor; who answered has the risk as told, above its own cuts."""
    told = known()
    told = replace(told, risks=np.where(told.risks == 5.0, 6.0, told.risks))
    found = risks_or_models(told, problem_of(), 3)
    assert found == pytest.approx([6.0, 3.0, 2.0, 4.0 + 0.3 * (np.hypot(3.0, 3.0) - np.hypot(1.0, 1.0)), 0.0])
