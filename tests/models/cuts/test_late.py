"""Answers that come late: which points count from above, and of whom a bound then speaks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models.basics import Arrays
from models.cuts.evidence import Evidence, with_answers
from models.cuts.late import hoped_for, with_exact_upper, with_late_answers
from models.methods.answer_arrays import cut_answer
from models.worst_case.risk import RiskCut
from tests.models.cuts.told import NAMES, answer_of, problem_of


def guarded(risk: float) -> Arrays:
    """An answer whose cut lies below the risk at its own point, as a site's guard may give it."""
    return cut_answer(RiskCut(risk, 0.1, np.zeros(3), 0.0))


def test_what_was_told_at_a_point_counts_in_every_row_of_it() -> None:
    """Cuts below the risks make the row of before look the better one, in which the risks are missing."""
    problem, none = problem_of(), np.zeros(5, dtype=bool)
    first = with_answers(Evidence.empty(problem), problem, np.zeros(3), {name: guarded(0.9) for name in NAMES})
    two = with_late_answers(first, problem, np.ones(3), {name: guarded(0.4) for name in ("a", "b")}, {}, asked=True)
    assert np.isnan(two.risks[hoped_for(two, problem).best]).tolist() == [False, False, True, True, True]
    late = {name: guarded(0.4) for name in ("c", "d")}
    four = with_late_answers(two, problem, np.ones(3), late, dict.fromkeys(late, 2))
    hoped = hoped_for(four, problem)
    assert np.isnan(four.risks[hoped.best]).tolist() == [False, False, False, False, True]
    assert hoped.upper == pytest.approx(0.8 * 0.4 + 0.2 * 0.1)
    all_told = with_late_answers(four, problem, np.ones(3), {"e": guarded(0.8)}, {"e": 2})
    found = with_exact_upper(all_told, problem, np.array([name == "e" for name in NAMES]))
    assert found.upper == with_exact_upper(all_told, problem, none).upper == pytest.approx(0.8 * 0.4 + 0.2 * 0.8)
    assert found.fresh_weight == pytest.approx(1.0), "its own word, not its cut, though it is away now"


def test_beside_a_site_that_is_away_one_that_is_at_work_still_keeps_a_point_from_counting() -> None:
    """Its risk there could be anything; the one that is away enters by its cuts, and the weight says so."""
    problem, away = problem_of(), np.array([name == "e" for name in NAMES])
    everybody = {name: answer_of(0.9) for name in NAMES}
    first = with_answers(Evidence.empty(problem), problem, np.zeros(3), everybody)
    three = with_answers(first, problem, np.ones(3), {name: answer_of(0.2) for name in ("a", "b", "c")})
    found = with_exact_upper(three, problem, away)
    assert (found.best, found.upper, found.fresh_weight) == (0, pytest.approx(0.9), pytest.approx(1.0))
    four = with_answers(first, problem, np.ones(3), {name: answer_of(0.2) for name in ("a", "b", "c", "d")})
    found = with_exact_upper(four, problem, away)
    assert (found.best, found.upper) == (1, pytest.approx(0.8 * 0.2 + 0.2 * 0.9))
    assert found.fresh_weight == pytest.approx(0.8)
    nobody = with_exact_upper(four, problem, np.zeros(5, dtype=bool))
    assert (nobody.best, nobody.upper) == (0, pytest.approx(0.9))
    only = with_answers(Evidence.empty(problem), problem, np.ones(3), {"a": answer_of(0.2), "e": answer_of(0.2)})
    nothing = with_exact_upper(only, problem, away)
    assert (nothing.best, nothing.upper, nothing.fresh_weight) == (-1, math.inf, 0.0)


def test_an_exchange_is_the_same_in_whatever_order_its_answers_came() -> None:
    """Those to earlier questions first: a run that is resumed, or played again, has the rows that it had."""
    problem = problem_of()
    at_zero = {name: guarded(0.9) for name in ("a", "b", "c")}
    first = with_answers(Evidence.empty(problem), problem, np.zeros(3), at_zero)
    two = with_late_answers(first, problem, np.ones(3), {name: guarded(0.4) for name in ("a", "b")}, {}, asked=True)
    asked_in, packs = {"e": 1, "c": 2, "d": 2}, []
    for order in ("abcde", "edcba", "dbeca"):
        answers = {name: guarded(0.1 + 0.1 * NAMES.index(name)) for name in order}
        packs.append(with_late_answers(two, problem, np.full(3, 2.0), answers, asked_in, asked=True).pack())
        assert packs[-1]["point_round"].tolist() == [1, 2, 1, 2, 3]
        assert packs[-1]["points"][:, 0].tolist() == [0, 1, 0, 1, 2]
    for name, array in packs[0].items():
        for other in packs[1:]:
            np.testing.assert_array_equal(array, other[name])


def test_a_late_answer_is_one_at_the_point_of_its_question_however_many_rows_stand_before_it() -> None:
    """Late answers add rows, so the rows of a point are not those of its number."""
    problem = problem_of()
    known = with_answers(Evidence.empty(problem), problem, np.zeros(3), {name: guarded(0.9) for name in ("a", "b")})
    for number, late in ((2, 1), (3, 2), (4, 3)):
        answers = {"a": guarded(0.5), "c": guarded(0.5)}
        known = with_late_answers(known, problem, np.full(3, number - 1.0), answers, {"c": late}, asked=True)
    assert known.point_round.tolist() == [1, 1, 2, 2, 3, 3, 4]
    assert known.points[:, 0].tolist() == [0, 0, 1, 1, 2, 2, 3]
