"""What the rungs of a race may spend on cuts: what the scores still to come leave, to the last of it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models.basics import FloatArray
from models.losses.catalogue import get_loss
from models.problem import SiteTerms
from models.tuning.budget import Budget, OneTraining
from models.tuning.candidates import Candidate, grid
from models.tuning.racing import Tuner
from models.tuning.terms import TuningTerms

SIZE, SCORE = 6, 4
A_CUT, A_SCORE = 2 * (SIZE + 1) + 3, SIZE + 1 + SCORE
"""Numbers of a cut of one head, both ways, and of a score."""


FLAT = {"risk": np.ones(1), "cut_height": np.zeros(1), "slope": np.zeros((1, SIZE + 1)), "norm_weight": np.zeros(1)}


def tuner_of(budget: Budget) -> Tuner:
    """Twelve candidates and five folds: three rungs."""
    terms = TuningTerms((SiteTerms("one", 1.0, 1e-3, 1.0),), get_loss("hinge"), "l2", True)
    return Tuner(terms, grid((1.0, 10.0, 100.0), (1.0, 2.0, 3.0, 4.0)), (SIZE,), 1, 5, budget, "best", SCORE)


def spent_by_rung(budget: Budget) -> list[tuple[float, float]]:
    """Numbers of the cuts and of the scores of each rung; no cut brings a candidate any nearer, so all want more."""
    tuner = tuner_of(budget)
    found, cuts = list[tuple[float, float]](), 0.0
    while (asked := tuner.exchange()) is not None:
        if asked.scored:
            found.append((cuts, float(A_SCORE * len(asked.asked))))
            cuts = 0.0
            tuner.tell_scores(list(np.linspace(0.0, 1.0, len(asked.told))))
        else:
            cuts += A_CUT * len(asked.asked)
            tuner.tell_cuts([{"one": FLAT} for _ in asked.asked])
    return found


@pytest.mark.parametrize("free", [340.0, 510.0, 730.0])
def test_the_last_rung_may_spend_all_that_the_scores_leave(free: float) -> None:
    scores = A_SCORE * (12 * 2 + 4 * 2 + 3 * 1)
    budget = Budget(OneTraining(100, (scores + free) / 2.0), 2.0)
    rungs = spent_by_rung(budget)
    assert [paid for _, paid in rungs] == [12 * 2 * A_SCORE, 4 * 2 * A_SCORE, 3 * A_SCORE]
    assert min(cuts for cuts, _ in rungs) >= A_CUT
    assert 0.0 <= budget.numbers_left < A_CUT
    assert budget.numbers == sum(sum(each) for each in rungs)


def test_a_fold_in_which_nothing_was_counted_has_no_score() -> None:
    """Of one without a row of some class: it says nothing of a candidate, neither good nor bad."""
    tuner = tuner_of(Budget(OneTraining(100, 1000.0), 2.0))
    while not (asked := tuner.exchange()).scored:  # type: ignore[union-attr]
        tuner.tell_cuts([{"one": FLAT} for _ in asked.asked])  # type: ignore[union-attr]
    scores = [math.nan if part.fold == 1 else 1.0 / (1.0 + place) for place, part in enumerate(asked.asked)]
    tuner.tell_scores(scores)
    assert [set(each.scores) for each in tuner.scored] == [{0}] * 12
    assert not any(math.isnan(each.mean) for each in tuner.scored)
    assert len(tuner.live) == 4 and tuner.live[0] == asked.asked[0].candidate


def test_the_weights_of_a_candidate_are_those_that_it_was_scored_with_last() -> None:
    """A start for its training; here every point that is asked is better than those before it."""
    tuner, height = tuner_of(Budget(OneTraining(100, 1500.0), 2.0)), 1.0
    first, last = dict[Candidate, FloatArray](), dict[Candidate, FloatArray]()
    while (asked := tuner.exchange()) is not None:
        if asked.scored:
            for part in asked.asked:
                first.setdefault(part.candidate, part.weights)
                last[part.candidate] = part.weights
            tuner.tell_scores(list(np.linspace(0.0, 1.0, len(asked.told))))
            continue
        told = []
        for _ in asked.asked:
            height *= 0.99
            slope = np.random.default_rng(len(told)).normal(size=(1, SIZE + 1))
            told.append({"one": FLAT | {"risk": np.array([height]), "slope": slope}})
        tuner.tell_cuts(told)
    for candidate, weights in last.items():
        np.testing.assert_array_equal(tuner.weights(candidate), weights)
    assert any(not np.array_equal(first[each], last[each]) for each in last)
