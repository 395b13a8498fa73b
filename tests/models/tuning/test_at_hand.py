"""The exchanges of a race in one process: each part on its own fold, scores of all sites' sums, guards passed on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from models.basics import FloatArray
from models.losses.catalogue import get_loss
from models.problem import RobustSpec, SiteProblem
from models.tuning.at_hand import answer_cuts, answer_part, race
from models.tuning.candidates import Candidate
from models.tuning.rungs import Asked, Exchange
from models.worst_case.risk import site_cut

ONE, TWO = (Candidate(radius=each, label_flip_cost=1.0) for each in (1.0, 10.0))


class Site:
    """Rows by fold; what a fold's rows say of weights is a count that tells fold, candidate and site apart."""

    def __init__(self, number: int) -> None:
        self.number = number

    def problems(self, candidate: Candidate, fold: int) -> Sequence[SiteProblem]:
        random = np.random.default_rng([self.number, fold])
        spec = RobustSpec(0.01 * candidate.radius, 1.0)
        return [SiteProblem(random.normal(size=(8, 2)), random.choice([-1.0, 1.0], 8), spec) for _ in range(2)]

    def scores(self, candidate: Candidate, fold: int, weights: FloatArray) -> FloatArray:
        return np.array([[4.0 + self.number, 1.0 + fold], [candidate.radius, 6.0 + float(weights[0, 0])]])


class Written:
    """A tuner whose exchanges are written down, and what it was told."""

    def __init__(self, *exchanges: Exchange) -> None:
        self.left, self.scores, self.cuts = list(exchanges), list[Any](), list[Any]()

    def exchange(self) -> Exchange | None:
        return self.left.pop(0) if self.left else None

    def tell_scores(self, scores: Any) -> None:
        self.scores.append(scores)

    def tell_cuts(self, cuts: Any) -> None:
        self.cuts.append(cuts)


def asked(candidate: Candidate, fold: int, first: float = 0.5, penalty: float | None = None) -> Asked:
    return Asked(candidate, fold, np.array([[first, -1.0, 0.2], [0.3, 0.1, 0.0]]), penalty)


SITES = {"a": Site(0), "b": Site(1), "c": Site(2)}


def run(*exchanges: Exchange) -> Written:
    tuner: Any = Written(*exchanges)
    found: Any = race(tuner, SITES, get_loss("hinge"))
    assert found is tuner
    return tuner


def test_cuts_are_those_of_each_part_on_the_rows_without_its_fold() -> None:
    parts = (asked(ONE, 2), asked(TWO, 0), asked(TWO, 1, 0.9))
    told = run(Exchange(parts, scored=False)).cuts[0]
    assert len(told) == 3
    for part, answers in zip(parts, told, strict=True):
        assert list(answers) == ["a", "b", "c"]
        for name, site in SITES.items():
            for head, problem in enumerate(site.problems(part.candidate, part.fold)):
                cut = site_cut(part.weights[head], problem)
                assert answers[name]["risk"][head] == cut.risk
                np.testing.assert_array_equal(answers[name]["slope"][head], cut.slope)


@pytest.mark.parametrize("pooled", [False, True])
def test_a_score_is_of_the_sums_of_all_sites_and_of_a_candidates_folds_where_they_are_pooled(pooled: bool) -> None:
    """Macro F-1 of the summed counts, by hand."""
    parts = (asked(ONE, 0), asked(TWO, 0), asked(ONE, 1, 0.7))
    scores = run(Exchange(parts, scored=True, pooled=pooled)).scores[0]
    groups = [[0, 2], [1]] if pooled else [[0], [1], [2]]
    expected = []
    for group in groups:
        counts = np.sum([
            site.scores(parts[k].candidate, parts[k].fold, parts[k].weights) for k in group for site in SITES.values()
        ], axis=0)
        (healthy, wrong), (missed, found) = counts
        first, second = 2 * healthy / (2 * healthy + wrong + missed), 2 * found / (2 * found + wrong + missed)
        expected.append((first + second) / 2)
    assert scores == pytest.approx(expected)


class Guarding:
    """A guard that takes what it is shown first, and counts."""

    def __init__(self) -> None:
        self.chosen = 0

    def choose(self, question: bytes, candidate: Any, vectors: Any) -> Any:
        self.chosen += 1
        return candidate(0, np.random.default_rng(0))

    def choose_cut(self, question: bytes, near: Any, exact: Any, other: Any) -> Any:
        self.chosen += 1
        return exact


def test_a_part_is_cut_at_its_weights_or_is_a_step_of_its_penalty_under_the_guard() -> None:
    problems = SITES["a"].problems(ONE, 0)
    part, guard = asked(ONE, 0), Guarding()
    cuts = answer_part(part, problems, guard)
    assert guard.chosen == 2 and set(cuts.arrays) == {"risk", "cut_height", "slope", "norm_weight"}
    plain = answer_cuts(problems, part.weights)
    assert all((cuts.arrays[name] == plain.arrays[name]).all() for name in plain.arrays)
    start = asked(ONE, 0, penalty=0.2)
    steps = answer_part(start, problems, guard)
    assert guard.chosen == 4 and set(steps.arrays) == {"local_point"} and steps.arrays["local_point"].shape == (2, 3)
    other = answer_part(asked(ONE, 0, penalty=5.0), problems)
    assert (np.abs(other.arrays["local_point"]) < np.abs(steps.arrays["local_point"]).max()).all()
