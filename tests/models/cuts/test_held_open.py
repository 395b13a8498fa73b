"""Whose own cuts keep the bounds apart: the site whose risk at the best point they stay below, and nobody else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models.cuts.bounds import record
from models.cuts.evidence import Evidence
from models.cuts.held_open import MOST_ROUNDS, held_open, left_open, stands_still
from models.methods.answer_arrays import cut_answer
from models.methods.catalogue import check_parameters, get_method
from models.problem import ServerProblem, SiteTerms, Status
from models.worst_case.risk import RiskCut
from tests.models.cuts.told import NAMES, answer_of, problem_of

SHARES = (0.25, 0.25, 0.25, 0.25, 0.0)


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


@pytest.mark.parametrize(
    ("low", "named"),
    [({"a": 0.2, "b": 0.3, "c": 0.1}, ["b", "a"]), ({"a": 0.2, "b": 0.1, "c": 0.3}, ["c", "a"]), ({"b": 0.55}, ["b"])],
)
def test_the_fewest_that_leave_half_of_it_together_are_named_the_largest_first(
    low: dict[str, float], named: list[str]
) -> None:
    problem = problem_of()
    evidence = told(problem, low)
    gap = 0.2 if len(low) > 1 else 0.21
    assert list(held_open([evidence], problem, gap, together=True)) == named
    assert held_open([evidence], problem, 2.01 * 0.2 * sum(low.values()), together=True) == {}, "a fifth of each counts"
    after = narrowed(rounds_after(evidence, problem, MOST_ROUNDS), gap)
    assert stands_still(after, problem, together=True)
    alone = len(low) == 1
    assert bool(held_open([evidence], problem, gap)) == stands_still(after, problem) == alone


def test_heads_add_up_as_their_bounds_do() -> None:
    problem = problem_of()
    found = held_open([told(problem, {"b": 0.1}), told(problem, {"b": 0.2})], problem, 0.1)
    assert found == {"b": pytest.approx(0.06)}


def test_who_did_not_answer_there_and_exact_cuts_keep_nothing_open() -> None:
    problem = problem_of()
    assert held_open([told(problem, {}, away=("b",))], problem, 0.0) == {}
    assert held_open([Evidence.empty(problem)], problem, 1.0) == held_open([], problem, 1.0) == {}


def rounds_after(evidence: Evidence, problem: ServerProblem, count: int, away: tuple[str, ...] = ()) -> Evidence:
    """``evidence`` and so many rounds more at other points, none of them better: every risk is 5, each cut says 0."""
    worse = cut_answer(RiskCut(5.0, 0.0, np.zeros(3), 0.0))
    for number in range(count):
        answers = {site: worse for site in NAMES if site not in away}
        evidence = record(evidence, problem, np.full(3, 1.0 + number), answers)
    return evidence


def narrowed(evidence: Evidence, gap: float) -> Evidence:
    """``evidence`` with a lower bound so far below the upper one: what the rounds' solutions would have proven."""
    return replace(evidence, lower=evidence.upper - gap)


def test_a_run_stands_still_after_so_many_rounds_without_a_better_point_and_not_before() -> None:
    problem = problem_of()
    first = told(problem, {"b": 0.3})
    before = narrowed(rounds_after(first, problem, MOST_ROUNDS - 1), 0.1)
    assert before.best == 0 and held_open([before], problem, 0.1) and not stands_still(before, problem)
    after = narrowed(rounds_after(first, problem, MOST_ROUNDS), 0.1)
    assert stands_still(after, problem)
    assert not stands_still(narrowed(after, 0.2), problem), "b leaves less than half of it"
    better = record(after, problem, np.full(3, 0.5), {site: answer_of(0.9) for site in NAMES})
    assert not stands_still(narrowed(better, 0.01), problem)


def test_rounds_in_which_a_site_was_away_do_not_count() -> None:
    problem = problem_of()
    first = told(problem, {"b": 0.3})
    without_c = rounds_after(first, problem, 2 * MOST_ROUNDS, away=("c",))
    assert not stands_still(narrowed(without_c, 0.1), problem)
    back = rounds_after(without_c, problem, MOST_ROUNDS - 1)
    assert not stands_still(narrowed(back, 0.1), problem)
    assert stands_still(narrowed(rounds_after(back, problem, 1), 0.1), problem)
    assert not stands_still(Evidence.empty(problem), problem)


def test_rounds_in_which_a_site_without_a_weight_was_away_count() -> None:
    """Its risk is in no bound, so no point waits for it."""
    problem = problem_of()
    weights = {"a": 0.7, "b": 0.3}
    sites = tuple(replace(site, weight=weights.get(site.site_id, 0.0)) for site in problem.sites)
    problem = replace(problem, sites=sites)
    without_c = rounds_after(told(problem, {"b": 0.3}), problem, MOST_ROUNDS, away=("c",))
    assert stands_still(narrowed(without_c, 0.1), problem)


@pytest.mark.parametrize("method", ["level-bundle", "cohort-bundle", "fdr-admm", "fdr-sm"])
def test_a_run_that_stands_still_has_stalled(method: str) -> None:
    server = get_method(method).server
    problem = replace(problem_of(), parameters=check_parameters(get_method(method), {}))
    begun = rounds_after(told(problem, {"b": 0.3}), problem, MOST_ROUNDS)
    for gap, status in ((0.1, Status.STALLED), (0.2, Status.CONTINUE), (1e-4, Status.CERTIFIED)):
        state: Any = replace(server.init(problem), evidence=narrowed(begun, gap))
        assert server.status(state, problem) is status


@pytest.mark.parametrize(("method", "status"), [("level-bundle", Status.STALLED), ("fdr-admm", Status.CONTINUE)])
def test_sites_hold_a_gap_open_together_where_cuts_are_of_the_point_that_was_asked(method: str, status: Status) -> None:
    """Cuts of splitting methods are of where their sites stand, below the risk at the best point until all have met."""
    server = get_method(method).server
    problem = replace(problem_of(), parameters=check_parameters(get_method(method), {}))
    begun = narrowed(rounds_after(told(problem, {"a": 0.2, "b": 0.3}), problem, MOST_ROUNDS), 0.15)
    state: Any = replace(server.init(problem), evidence=begun)
    assert server.status(state, problem) is status


def test_where_the_first_two_leave_just_half_of_it_no_third_is_named() -> None:
    terms = tuple(SiteTerms(name, share, 0.1, 1.0) for name, share in zip(NAMES, SHARES, strict=True))
    problem = problem_of(sites=terms)
    evidence = told(problem, dict.fromkeys("abcd", 0.5))
    left = left_open(evidence, problem)
    np.testing.assert_allclose(left, [0.125, 0.125, 0.125, 0.125, 0.0])
    assert list(held_open([evidence], problem, 2.0 * (left[0] + left[1]), together=True)) == ["a", "b"]
