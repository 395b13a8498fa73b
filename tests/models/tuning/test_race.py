"""The race over drawn sites: what it costs by counting, what it asks, and cuts that hold for whom they serve."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import FloatArray, ProblemError
from models.geometry.norms import dual_norm
from models.losses.catalogue import get_loss
from models.problem import RobustSpec, SiteProblem, SiteTerms
from models.tuning.at_hand import answer_cuts, race
from models.tuning.budget import Budget, OneTraining
from models.tuning.candidates import Candidate, grid
from models.tuning.folds import deal_rows
from models.tuning.racing import Tuner
from models.tuning.rungs import rungs
from models.tuning.scores import class_counts, error_sums, fold_score, without_rare
from models.tuning.shared_cuts import COARSE, SharedCuts
from models.tuning.terms import Step, TuningTerms
from models.worst_case.risk import site_risk


@dataclass
class Site:
    """Rows of a site; ``seen`` are the rows that a fold's training saw."""

    lifts: list[FloatArray]
    classes: Any
    radius: float
    folds: Any
    asked: list[tuple[Candidate, int]]

    def problems(self, candidate: Candidate, fold: int) -> list[SiteProblem]:
        self.asked.append((candidate, fold))
        kept = self.folds != fold
        spec = RobustSpec(self.radius * candidate.radius, candidate.label_flip_cost)
        labels = np.where(self.classes == 1, 1.0, -1.0)
        return [SiteProblem(self.lifts[candidate.lift][kept], labels[kept], spec)]

    def scores(self, candidate: Candidate, fold: int, weights: FloatArray) -> FloatArray:
        held = self.folds == fold
        return class_counts(weights, self.lifts[candidate.lift][held], self.classes[held], 2)


def sites(seed: int = 0, rows: int = 60) -> dict[str, Site]:
    """The fault is inside a ring: no plane tells it, squares do."""
    random, found = np.random.default_rng(seed), {}
    for number in range(3):
        features = np.clip(random.uniform(-1, 1, (rows, 2)) + 0.1 * number, -1, 1)
        classes = (np.square(features).sum(axis=1) < 0.5).astype(np.intp)
        lifts = [features, np.hstack([features, np.square(features)])]
        found[f"site-{number}"] = Site(lifts, classes, 1e-3, deal_rows(features, classes, 5, seed), [])
    return found


def tuner_of(plants: dict[str, Site], budget: Budget, rule: Any = "best", **changes: Any) -> Tuner:
    terms = TuningTerms(
        tuple(SiteTerms(name, 1 / 3, site.radius, 1.0) for name, site in plants.items()), get_loss("hinge"), "l2", True
    )
    candidates = grid((1.0, 10.0, 100.0), (1.0, 4.0), 2)
    given = {"candidates": candidates, "sizes": (2, 4), "heads": 1, "n_folds": 5, "score_numbers": 4} | changes
    return Tuner(terms, **given, budget=budget, rule=rule)


class Counted(Tuner):
    """Counts what leaves and arrives, apart from the budget's own count."""

    numbers = 0.0
    rounds = 0

    def exchange(self) -> Any:
        found = super().exchange()
        if found is not None:
            self.rounds += 1
            for part in found.asked:
                heads = part.weights.shape[0]
                up = 4 if found.scored else part.weights.size + 3 * heads
                self.numbers += part.weights.size + up
        return found


@pytest.mark.parametrize(("rounds", "numbers"), [(3, 200.0), (6, 600.0), (12, 2000.0), (30, 1e6)])
def test_a_race_costs_no_more_than_its_budget_by_counting(rounds: int, numbers: float) -> None:
    plants = sites()
    tuner = tuner_of(plants, Budget(OneTraining(rounds, numbers), 2.0))
    tuner.__class__ = Counted
    race(tuner, plants, get_loss("hinge"))
    assert tuner.choice is not None
    assert tuner.rounds == tuner.budget.rounds <= 2 * rounds  # type: ignore[attr-defined]
    assert tuner.numbers == tuner.budget.numbers <= 2 * numbers  # type: ignore[attr-defined]


def test_the_race_finds_the_lift_that_tells_the_fault() -> None:
    plants = sites()
    tuner = race(tuner_of(plants, Budget(OneTraining(20, 2000.0), 2.0)), plants, get_loss("hinge"))
    assert tuner.choice is not None and tuner.choice.candidate.lift == 1
    best = next(each for each in tuner.scored if each.candidate == tuner.choice.candidate)
    assert best.mean > 0.85 and len(best.scores) == 5
    planes = [each.mean for each in tuner.scored if each.candidate.lift == 0]
    assert max(planes) < best.mean - 0.1


def test_what_is_near_enough_is_not_solved_again_but_to_be_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    """By counting: with more cuts its bounds come no further apart, and it is asked no more."""
    seen: list[tuple[int, Candidate, float]] = []

    def noted(pool: SharedCuts, candidate: Candidate) -> Step:
        found = whole(pool, candidate)
        seen.append((id(pool), candidate, found.gap))
        return found

    whole = SharedCuts.step
    monkeypatch.setattr(SharedCuts, "step", noted)
    plants = sites()
    tuner = tuner_of(plants, Budget(OneTraining(12, 1e6), 3.0), n_folds=2)
    race(tuner, plants, get_loss("hinge"))
    gaps: dict[tuple[int, Candidate], list[float]] = {}
    for pool, candidate, gap in seen:
        gaps.setdefault((pool, candidate), []).append(gap)
    ended = [each for each in gaps.values() if each[-1] <= COARSE]
    assert len(ended) > len(gaps) / 2
    assert all(sum(gap <= COARSE for gap in each) <= 2 for each in ended), "once in the race, and once for the score"


def test_finalists_are_scored_on_every_fold_and_the_others_on_fewer() -> None:
    plants = sites()
    tuner = race(tuner_of(plants, Budget(OneTraining(20, 2000.0), 2.0)), plants, get_loss("hinge"))
    counts = sorted(len(each.scores) for each in tuner.scored)
    assert counts[-3:] == [5, 5, 5] and counts[0] == 2 and len(tuner.live) == 3


def test_rungs_take_every_fold_once() -> None:
    for count in (2, 9, 10, 40):
        for folds in range(2, 9):
            for first in (1, 2):
                found = rungs(count, folds, first)
                assert [fold for rung in found for fold in rung.folds] == list(range(folds))
                raced = folds > 3 or first == 1
                assert len(found[0].folds) == (min(first, folds - 1) if raced else folds)
                assert raced or len(found) == 1


def test_cuts_are_asked_three_by_three_in_few_exchanges_however_many_rounds_there_are() -> None:
    def exchanges(rounds: int) -> list[int]:
        """Cuts of one lift and fold in each exchange of the first rung, the most of all."""
        tuner, found = tuner_of(plants := sites(), Budget(OneTraining(rounds, 6000.0), 2.0), n_folds=3), list[int]()
        while (exchange := tuner.exchange()) is not None and not exchange.scored:
            asked = [(part.candidate.lift, part.fold) for part in exchange.asked]
            found.append(max(asked.count(each) for each in asked))
            tuner.tell_cuts([
                {name: answer_cuts(site.problems(part.candidate, part.fold), part.weights).arrays
                 for name, site in plants.items()} for part in exchange.asked
            ])
        return found

    assert max(exchanges(20)) == 3 and max(exchanges(3)) == 3
    assert len(exchanges(20)) == 10 and len(exchanges(200)) == 10


def test_most_leave_by_one_fold_only_where_the_budget_pays_for_no_more() -> None:
    plants = sites()
    poor = race(tuner_of(plants, Budget(OneTraining(20, 200.0), 2.0)), plants, get_loss("hinge"))
    rich = race(tuner_of(plants, Budget(OneTraining(20, 2000.0), 2.0)), plants, get_loss("hinge"))
    assert (len(poor.rungs[0].folds), len(rich.rungs[0].folds)) == (1, 2)


def test_a_budget_that_does_not_pay_for_the_grid_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(ProblemError, match="the budget of the tuning is too small for its grid"):
        tuner_of(sites(), Budget(OneTraining(20, 40.0), 2.0))
    with pytest.raises(ProblemError, match="the budget of the tuning is too small for its grid: 4 rounds"):
        tuner_of(sites(), Budget(OneTraining(2, 4000.0), 2.0))


@settings(max_examples=40)
@given(
    st.integers(0, 2**32 - 1), st.sampled_from(["hinge", "logistic", "huber", "pinball"]),
    st.tuples(*[st.sampled_from([0.3, 1.0, 10.0, 100.0])] * 2),
    st.tuples(*[st.sampled_from([0.2, 1.0, 5.0, math.inf])] * 2),
)
def test_a_cut_of_one_candidate_is_a_cut_of_every_other_that_it_serves(
    seed: int, loss: Any, factors: tuple[float, float], costs: tuple[float, float]
) -> None:
    random = np.random.default_rng(seed)
    features = random.uniform(size=(12, 3))
    task = get_loss(loss).task
    outcomes = random.choice([-1.0, 1.0], 12) if task == "classification" else random.uniform(size=12)
    asked, wanted = (Candidate(*each) for each in zip(factors, costs, strict=True))
    rule = RobustSpec(0.02, 1.0, loss=get_loss(loss))

    def of(candidate: Candidate) -> SiteProblem:
        spec = replace(rule, radius=0.02 * candidate.radius, label_flip_cost=candidate.label_flip_cost)
        return SiteProblem(features, outcomes, spec)

    terms = TuningTerms((SiteTerms("a", 1.0, 0.02, 1.0),), rule.loss, "l2", True)
    pool, point = SharedCuts(terms, 3), random.normal(size=4) * random.choice([0.3, 2.0])
    told = answer_cuts([of(asked)], point[None]).arrays
    pool.add(asked, point, {"a": {name: array[0] for name, array in told.items()}})
    model = pool.model(wanted)
    for u in [point, np.zeros(4), *random.normal(size=(8, 4)) * 2.0]:
        risk, norm = site_risk(u, of(wanted)).value, float(dual_norm(u[:3], "l2"))
        heights = model.offset + model.slope @ u + model.norm_weight * norm
        assert (heights <= risk + 1e-9 * (1.0 + abs(risk))).all()
    if asked == wanted:
        assert len(model.offset) == 1 and len(pool.known(wanted)) == 1
    for value, where in pool.known(wanted):
        assert value == pytest.approx(site_risk(where, of(wanted)).value, rel=1e-9, abs=1e-9)


def test_a_point_that_was_asked_for_one_radius_may_be_the_best_of_another_where_nothing_flips() -> None:
    features, labels = np.array([[0.0], [1.0]]), np.array([-1.0, 1.0])
    small, large = Candidate(1.0, 1.0), Candidate(2.0, 1.0)
    pool = SharedCuts(TuningTerms((SiteTerms("a", 1.0, 0.01, 1.0),), get_loss("hinge"), "l2", True), 1)

    def ask(candidate: Candidate, point: FloatArray) -> float:
        problem = SiteProblem(features, labels, RobustSpec(0.01 * candidate.radius, 1.0))
        told = answer_cuts([problem], point[None]).arrays
        pool.add(candidate, point, {"a": {name: array[0] for name, array in told.items()}})
        return site_risk(point, problem).value

    upper = ask(small, np.array([2.0, -1.0]))  # both rows at a margin of 1, of which no flip is worth its cost
    assert pool.step(large).best.tolist() == [2.0, -1.0] and pool.known(large)[0][0] == pytest.approx(upper + 0.02)
    ask(small, np.array([6.0, 2.0]))  # a flip of the second row is worth 9 and costs 6
    assert len(pool.known(small)) == 2 and len(pool.known(large)) == 1


def test_of_three_folds_the_best_is_by_one_score_of_all_their_rows() -> None:
    plants = sites()
    for site in plants.values():
        site.folds = deal_rows(site.lifts[0], site.classes, 3, 0)
    tuner = tuner_of(plants, Budget(OneTraining(12, 4000.0), 3.0), n_folds=3)
    noted: list[Any] = []
    tell = tuner.tell_scores

    def telling(scores: Any) -> None:
        noted.append((tuner._pending, list(scores)))
        tell(scores)

    tuner.tell_scores = telling  # type: ignore[method-assign]
    race(tuner, plants, get_loss("hinge"))
    (exchange, scores), = noted
    assert exchange.pooled and len(exchange.asked) == 3 * len(tuner.candidates) == 3 * len(scores)
    for place, score, known in zip(exchange.told, scores, tuner.scored, strict=True):
        parts = [part for part in exchange.asked if part.candidate == known.candidate]
        assert sorted(part.fold for part in parts) == [0, 1, 2] and exchange.asked[place] == parts[0]
        total = sum(site.scores(part.candidate, part.fold, part.weights) for part in parts for site in plants.values())
        assert score == fold_score(total, get_loss("hinge")) == pytest.approx(known.mean)
        assert known.standard_error is None
        assert total.sum() == 180, "every row is held out once"
    one_by_one = tuner_of(plants, Budget(OneTraining(12, 4000.0), 3.0), rule="paired", n_folds=3)
    assert not one_by_one.pools_folds, "differences fold by fold need a score of each"


def test_the_gap_of_a_candidate_is_the_widest_of_its_folds_when_they_are_scored() -> None:
    plants = sites()
    for site in plants.values():
        site.folds = deal_rows(site.lifts[0], site.classes, 3, 0)
    tuner = race(tuner_of(plants, Budget(OneTraining(4, 400.0), 3.0), n_folds=3), plants, get_loss("hinge"))
    gaps = [
        [tuner._pools[each.candidate.lift, fold].step(each.candidate).gap for fold in range(3)]
        for each in tuner.scored
    ]
    assert [each.gap for each in tuner.scored] == pytest.approx([max(each) for each in gaps])
    assert any(max(each) > each[0] and max(each) > each[2] for each in gaps), "else one fold would tell as much"


def test_scores_are_of_counts_and_of_errors() -> None:
    weights, features = np.array([[1.0, 0.0]]), np.array([[1.0], [-1.0], [2.0], [-2.0]])
    counts = class_counts(weights, features, np.array([1, 0, 0, 1]), 2)
    assert counts.tolist() == [[1, 1], [1, 1]] and fold_score(counts, get_loss("hinge")) == 0.5
    lopsided = np.array([[0.0, 2.0], [0.0, 8.0]])  # the fault is told always: 16/18, and nothing of the healthy
    assert fold_score(lopsided, get_loss("hinge")) == pytest.approx(8.0 / 18.0)
    rare = class_counts(weights, features, np.array([1, 0, 0, 0]), 2)
    assert without_rare(rare, 2).tolist() == [[2, 1], [0, 0]] and without_rare(rare, 1).tolist() == rare.tolist()
    sums = error_sums(weights, features, np.array([0.0, 0.0, 2.0, 0.0]), get_loss("huber"))
    assert sums.tolist() == [4.0, 4.0] and fold_score(sums, get_loss("huber")) == -1.0
    assert math.isnan(fold_score(np.zeros(2), get_loss("huber")))
