"""Whose own cuts keep the bounds apart: the site whose risk at the best point they stay below, and nobody else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.cuts.bounds import record
from models.cuts.evidence import Evidence
from models.cuts.held_open import held_open, left_open
from models.methods.answer_arrays import cut_answer
from models.problem import ServerProblem
from models.worst_case.risk import RiskCut
from tests.models.cuts.told import NAMES, answer_of, problem_of


def told(problem: ServerProblem, low: dict[str, float], away: tuple[str, ...] = ()) -> Evidence:
    """One round at zero: every site has the risk 1; ``low`` is how far a site's cut stays below it."""
    answers = {site: cut_answer(RiskCut(1.0, 1.0 - low.get(site, 0.0), np.zeros(3), 0.0)) for site in NAMES}
    return record(Evidence.empty(problem), problem, np.zeros(3), {s: a for s, a in answers.items() if s not in away})


def test_what_a_cut_leaves_open_counts_by_the_weight_in_the_worst_mixture() -> None:
    problem = problem_of()
    evidence = told(problem, {"b": 0.3})
    np.testing.assert_allclose(left_open(evidence, problem), [0.0, 0.06, 0.0, 0.0, 0.0])
    assert held_open([evidence], problem, 0.1) == {"b": pytest.approx(0.06)}
    ball = problem_of("l1", 0.4)
    risks = evidence.risks.copy()
    risks[0, 1] = 2.0
    worse = replace(evidence, risks=risks)  # b has the worst risk, and .4 of the mixture then
    np.testing.assert_allclose(left_open(worse, ball)[1], 0.4 * 1.3)


def test_the_best_of_a_sites_cuts_counts() -> None:
    problem = problem_of()
    evidence = told(problem, {"b": 0.3})
    higher = record(evidence, problem, np.ones(3), {site: answer_of(1.0 if site == "b" else 5.0) for site in NAMES})
    assert higher.best == 0 and left_open(higher, problem).max() == 0.0


@pytest.mark.parametrize(("gap", "named"), [(0.12, {"b"}), (0.13, set())])
def test_half_of_the_gap_is_what_names_a_site(gap: float, named: set[str]) -> None:
    problem = problem_of()
    assert held_open([told(problem, {"b": 0.3})], problem, gap).keys() == named


def test_heads_add_up_as_their_bounds_do() -> None:
    problem = problem_of()
    found = held_open([told(problem, {"b": 0.1}), told(problem, {"b": 0.2})], problem, 0.1)
    assert found == {"b": pytest.approx(0.06)}


def test_who_did_not_answer_there_and_exact_cuts_keep_nothing_open() -> None:
    problem = problem_of()
    assert held_open([told(problem, {}, away=("b",))], problem, 0.0) == {}
    assert held_open([Evidence.empty(problem)], problem, 1.0) == held_open([], problem, 1.0) == {}
