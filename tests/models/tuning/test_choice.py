"""The one-standard-error rule and halving on drawn curves, against their definitions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import ProblemError
from models.tuning.budget import Budget, OneTraining, reference
from models.tuning.candidates import Candidate, grid, simplicity
from models.tuning.choice import Scored, chosen, kept, untuned

SIZES = (3, 18, 36)


def drawn(seed: int, count: int) -> list[Scored]:
    random = np.random.default_rng(seed)
    candidates = grid((1.0, 10.0), (1.0, 4.0), 3)[:count]
    scores = np.round(random.uniform(0.7, 0.8, (count, 5)), 2)
    return [Scored(each, dict(enumerate(row.tolist()))) for each, row in zip(candidates, scores, strict=True)]


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12))
def test_the_rule_takes_the_simplest_within_one_standard_error(seed: int, count: int) -> None:
    curve = drawn(seed, count)
    means = [float(np.mean(list(each.scores.values()))) for each in curve]
    top = max(means)
    errors = [np.std(list(each.scores.values()), ddof=1) / math.sqrt(5) for each in curve]
    best = min((k for k in range(count) if means[k] == top), key=lambda k: simplicity(curve[k].candidate, SIZES))
    near = [curve[k].candidate for k in range(count) if means[k] >= top - errors[best]]
    found = chosen(curve, "one-standard-error", SIZES)
    assert found.candidate == min(near, key=lambda each: simplicity(each, SIZES))
    assert chosen(curve, "best", SIZES).candidate == curve[best].candidate


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12))
def test_the_paired_rule_takes_the_simplest_whose_lag_is_within_its_own_standard_error(seed: int, count: int) -> None:
    curve = drawn(seed, count)
    rows = np.array([[each.scores[fold] for fold in range(5)] for each in curve])
    best = rows[[each.candidate for each in curve].index(chosen(curve, "best", SIZES).candidate)]
    near = [
        each.candidate for each, row in zip(curve, rows, strict=True)
        if np.mean(best - row) <= np.std(best - row, ddof=1) / math.sqrt(5)
    ]
    assert chosen(curve, "paired", SIZES).candidate == min(near, key=lambda each: simplicity(each, SIZES))


def test_a_hard_fold_hides_no_lead_from_the_paired_rule() -> None:
    """A lead of .02 in every fold, beside folds that differ by .2."""
    hard = [0.7, 0.9, 0.75, 0.88, 0.8]
    curve = [
        Scored(Candidate(1.0, 1.0, 0), dict(enumerate(hard))),
        Scored(Candidate(1.0, 1.0, 1), dict(enumerate([each + 0.02 for each in hard]))),
    ]
    assert chosen(curve, "one-standard-error", SIZES).candidate.lift == 0
    assert chosen(curve, "paired", SIZES).candidate.lift == 1


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_halving_keeps_the_best(seed: int, count: int) -> None:
    curve = drawn(seed, 12)
    found = kept(curve, count, SIZES)
    means = {each.candidate: each.mean for each in curve}
    assert len(found) == count
    assert min(means[each] for each in found) >= max((means[each] for each in means if each not in found), default=-1)


@pytest.mark.parametrize("rule", ["best", "one-standard-error", "paired"])
def test_what_was_not_trained_is_chosen_only_where_nothing_was(rule: Any) -> None:
    """Weights on the way may score best, and the run would train on to others."""
    on_the_way = Scored(Candidate(1.0, 1.0, 0), {0: 0.95, 1: 0.93}, gap=0.96)
    trained = [
        Scored(Candidate(1.0, 1.0, 1), {0: 0.92, 1: 0.90}, gap=0.95),
        Scored(Candidate(1.0, 1.0, 2), {0: 0.8, 1: 0.8}, gap=0.05),
    ]
    found = chosen([on_the_way, *trained], rule, SIZES)
    assert found.candidate == trained[0].candidate
    assert found.why.endswith("; 1 not among these, for their bounds are more than 0.95 apart"), "its score is higher"
    assert "not among" not in chosen(trained, rule, SIZES).why
    uncounted = replace(trained[0], scores={})
    assert chosen([on_the_way, uncounted], rule, SIZES).candidate == on_the_way.candidate


def test_simpler_is_fewer_features_then_a_larger_ball_then_cheaper_flips_then_a_larger_ball_over_the_sites() -> None:
    order = [
        Candidate(10.0, 1.0, mixture_radius=0.2), Candidate(10.0, 1.0), Candidate(10.0, 4.0, mixture_radius=0.3),
        Candidate(10.0, 4.0), Candidate(1.0, 1.0), Candidate(100.0, 1.0, 1), Candidate(1.0, 1.0, 1),
    ]
    assert sorted(reversed(order), key=lambda each: simplicity(each, SIZES)) == order


def test_a_curve_without_a_counted_row_chooses_nothing() -> None:
    with pytest.raises(ProblemError, match="no held-out row was counted"):
        chosen([Scored(Candidate(1.0, 1.0)), Scored(Candidate(2.0, 1.0))], "best", SIZES)


def test_a_grid_of_one_is_refused() -> None:
    with pytest.raises(ProblemError, match="two candidates at least to choose from, got 1"):
        grid((1.0, 1.0), (2.0,))


def test_a_budget_counts_and_refuses() -> None:
    budget = Budget(OneTraining(4, 100.0), 1.5)
    for _ in range(6):
        budget.spend(25.0)
    with pytest.raises(ProblemError, match="goes beyond the budget"):
        budget.spend(0.0)
    with pytest.raises(ProblemError, match="goes beyond the budget"):
        Budget(OneTraining(4, 100.0), 1.0).spend(101.0)
    for trainings in (0.5, 3.5):
        with pytest.raises(ProblemError, match="from 1 to 3 trainings"):
            Budget(OneTraining(4, 100.0), trainings)


def test_the_budget_is_counted_by_the_first_training_that_pays() -> None:
    trainings = [OneTraining(4, 100.0), OneTraining(4, 400.0), OneTraining(4, 900.0)]
    assert [reference(trainings, wanted, 2.0).numbers for wanted in (200.0, 201.0, 5000.0)] == [100.0, 400.0, 900.0]


def test_untuned_is_the_plan_as_it_comes_on_whose_word_it_is() -> None:
    candidates = grid([0.3, 1.0, 3.0], [1.0], n_lifts=2)
    found = untuned(candidates[::-1], "the plan's", "too few rows")
    assert (found.candidate.radius, found.candidate.lift) == (1.0, 0)
    assert found.why == "the plan's own terms, untuned: too few rows"
