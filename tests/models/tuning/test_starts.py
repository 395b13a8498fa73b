"""Where a race of targets begins: the sites' own steps, their mean, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import Arrays, FloatArray, TransportNorm, without_needless_digits
from models.losses.catalogue import get_loss
from models.methods.guard import MOVES, AnswerT, Minorant, Near, Other
from models.problem import RobustSpec, SiteProblem, SiteTerms
from models.tuning.at_hand import answer_part, race
from models.tuning.budget import Budget, OneTraining
from models.tuning.candidates import Candidate, grid
from models.tuning.racing import Tuner
from models.tuning.rungs import Asked
from models.tuning.scores import error_sums
from models.tuning.shared_cuts import DIGITS
from models.tuning.starts import START_PENALTY, answer_start, first_steps, mean_end
from models.tuning.terms import TuningTerms
from models.worst_case.risk import site_risk

LOSS = get_loss("pinball")
NORM: TransportNorm = "linf"
"""Of l2 a race goes by squares and needs no start."""


@dataclass
class Site:
    """Rows of a site with a target; a third of them is held out in turn."""

    features: FloatArray
    targets: FloatArray

    def problems(self, candidate: Candidate, fold: int) -> list[SiteProblem]:
        kept = np.arange(len(self.targets)) % 3 != fold
        spec = RobustSpec(1e-3 * candidate.radius, candidate.label_flip_cost, NORM, loss=LOSS)
        return [SiteProblem(self.features[kept], self.targets[kept], spec)]

    def scores(self, candidate: Candidate, fold: int, weights: FloatArray) -> FloatArray:
        held = np.arange(len(self.targets)) % 3 == fold
        return error_sums(weights, self.features[held], self.targets[held], LOSS)


def sites() -> dict[str, Site]:
    random, found = np.random.default_rng(0), {}
    for number in range(3):
        features = random.uniform(size=(60, 4))
        found[f"site-{number}"] = Site(features, features @ [0.5, -0.3, 0.2, 0.1] + 0.02 * random.normal(size=60))
    return found


def answers(asked: Sequence[Asked], plants: Mapping[str, Site]) -> list[dict[str, Arrays]]:
    """What plants tell of the parts that are asked, by plant."""
    return [
        {name: answer_part(part, site.problems(part.candidate, part.fold)).arrays for name, site in plants.items()}
        for part in asked
    ]


def tuner_of(loss: str, numbers: float = 4000.0) -> Tuner:
    terms = TuningTerms(tuple(SiteTerms(f"site-{k}", 1 / 3, 1e-3, 1.0) for k in range(3)), get_loss(loss), NORM, True)
    return Tuner(terms, grid((0.3, 1.0, 10.0), (1.0,)), (4,), 1, 3, Budget(OneTraining(12, numbers), 2.0), "best", 4)


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 0.1, 1.0]), st.sampled_from(["linf", "l2", "l1"]))
def test_the_end_is_that_of_the_reference(seed: int, penalty: float, norm: TransportNorm) -> None:
    """CVXPY with the loss written out: mean pinball loss, and the radius times the larger of norm and 1 / cost."""
    random = np.random.default_rng(seed)
    features, targets = random.uniform(size=(20, 3)), random.uniform(size=20)
    spec = RobustSpec(0.01, 1.0, norm, loss=LOSS)
    problem = SiteProblem(features, targets, spec)
    end = answer_start([problem], penalty).arrays["local_point"][0]
    weights = cp.Variable(4)
    residual = targets - features @ weights[:3] - weights[3]
    dual = cp.norm(weights[:3], {"linf": 1, "l2": 2, "l1": "inf"}[norm])
    risk = cp.sum(cp.maximum(0.5 * residual, -0.5 * residual)) / 20 + 0.01 * LOSS.lipschitz * cp.maximum(dual, 1.0)
    best = cp.Problem(cp.Minimize(risk + 0.5 * penalty * cp.sum_squares(weights))).solve()
    found = site_risk(end, problem).value + 0.5 * penalty * float(end @ end)
    assert best - 1e-4 * best <= found <= best + 0.02 * best


def test_the_first_exchange_of_targets_asks_a_step_of_each_radius_and_the_next_begins_at_all_their_means() -> None:
    tuner, plants = tuner_of("pinball"), sites()
    first = tuner.exchange()
    assert first is not None and not first.scored
    steps = [part for part in first.asked if part.penalty is not None]
    assert {part.penalty for part in steps} == {START_PENALTY} and len(steps) == 9 and len(first.asked) == 12
    wanted = {(radius, fold) for radius in (0.3, 1.0, 10.0) for fold in range(3)}
    assert {(part.candidate.radius, part.fold) for part in steps} == wanted
    told = answers(first.asked, plants)
    tuner.tell_cuts(told)
    second = tuner.exchange()
    assert second is not None and all(part.penalty is None for part in second.asked)
    assert {(part.candidate.radius, part.fold) for part in second.asked} == wanted and len(second.asked) == len(steps)
    for part in second.asked:
        (place,) = (
            j for j, each in enumerate(first.asked)
            if each.penalty is not None and (each.candidate, each.fold) == (part.candidate, part.fold)
        )
        ends = np.mean([each["local_point"] for each in told[place].values()], axis=0)
        np.testing.assert_allclose(part.weights, ends, rtol=0, atol=2e-3 * np.abs(ends).max())


def test_means_that_an_exchange_does_not_pay_for_wait_and_none_is_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    tuner, plants = tuner_of("pinball"), sites()
    first = tuner.exchange()
    assert first is not None
    tuner.tell_cuts(answers(first.asked, plants))
    begun = [part for starts in tuner._starts.values() for part in starts]
    monkeypatch.setattr(tuner, "_allowance", lambda: 3.0 * tuner._numbers(begun[0], scored=False))
    paid = tuner._next_cuts()
    left = [part for starts in tuner._starts.values() for part in starts]
    assert len(begun) == 9 and [id(part) for part in begun if not any(part is each for each in paid)] == [
        id(part) for part in left
    ] and len(paid) == 3


@pytest.mark.parametrize("paid", [3, 4, 7])
def test_an_exchange_asks_no_more_than_its_part_of_the_rung_pays_for(
    paid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of each fold, then a second: what one exchange spends beyond its part is missing in the last of the rung."""
    tuner, plants = tuner_of("pinball"), sites()
    first = tuner.exchange()
    assert first is not None
    tuner.tell_cuts(answers(first.asked, plants))
    cost = tuner._numbers(next(part for starts in tuner._starts.values() for part in starts), scored=False)
    monkeypatch.setattr(tuner, "_exchanges", lambda: tuner._done + 1)
    monkeypatch.setattr(tuner, "_allowance", lambda: (paid + 0.5) * cost)
    assert len(tuner._next_cuts()) == paid


def test_a_step_costs_what_is_told_and_nothing_is_sent_for_it() -> None:
    tuner = tuner_of("pinball")
    first = tuner.exchange()
    assert first is not None
    cuts, steps = 3, 9
    assert tuner.budget.numbers == cuts * (2 * 5 + 3) + steps * 5
    assert tuner.told == cuts * (5 + 3) + steps * 5


def test_classes_have_no_steps_and_a_poor_budget_has_none() -> None:
    first = tuner_of("hinge").exchange()
    assert first is not None and all(part.penalty is None for part in first.asked)
    poor = tuner_of("pinball", 70.0).exchange()
    assert poor is not None and all(part.penalty is None for part in poor.asked)


def test_a_race_of_targets_stays_in_its_budget_and_scores_near_the_noise() -> None:
    tuner = race(tuner_of("pinball"), sites(), LOSS)
    assert tuner.choice is not None and tuner.budget.numbers <= 2 * 4000.0 and tuner.budget.rounds <= 24
    best = max(each.mean for each in tuner.scored)
    assert best > -0.03


def test_of_a_large_grid_four_radii_are_asked_from_the_least_to_the_largest() -> None:
    candidates = grid([float(each) for each in range(1, 10)], (1.0,), 1, (0.0, 0.1))
    found = first_steps(candidates, [(0, 0), (0, 1)], (3,), 1, True)
    assert [part.candidate.radius for part in found if part.fold == 0] == [1.0, 4.0, 6.0, 9.0]
    assert [part.fold for part in found[:2]] == [0, 1]


def test_the_mean_is_by_the_weights_of_the_sites() -> None:
    terms = TuningTerms((SiteTerms("a", 0.75, 1.0, 1.0), SiteTerms("b", 0.25, 1.0, 1.0)), LOSS, "l2", True)
    told = {"a": {"local_point": np.array([[1.0, 0.0]])}, "b": {"local_point": np.array([[0.0, 1.0]])}}
    assert mean_end(terms, told).ravel() == pytest.approx([0.75, 0.25])


class Taking:
    """A guard that takes the candidate of one number, and notes the coefficients that it was shown."""

    def __init__(self, number: int) -> None:
        self.number, self.seen = number, list[FloatArray]()

    def choose(
        self, question: bytes, candidate: Callable[[int, np.random.Generator], AnswerT],
        vectors: Callable[[AnswerT], Sequence[FloatArray]],
    ) -> AnswerT:
        found = candidate(self.number, np.random.default_rng(0))
        self.seen += vectors(found)
        return found

    def choose_cut(self, question: bytes, near: Near, exact: Minorant, other: Other) -> Minorant:
        return exact


def test_a_guard_lets_another_step_out_the_farther_from_zero_the_more_it_refuses() -> None:
    """At last the end of one who knows nothing; what leaves is accounted for by the rows that the guard was shown."""
    problem = next(iter(sites().values())).problems(Candidate(1.0, 1.0), 0)
    exact, guards = answer_start(problem, START_PENALTY), [Taking(number) for number in range(MOVES + 2)]
    told = [answer_start(problem, START_PENALTY, guard) for guard in guards]
    rows = [guard.seen[0] for guard in guards]
    for guard, answer in zip(guards, told, strict=True):
        assert len(guard.seen) == len(answer.account.rows) == 1
        np.testing.assert_allclose(answer.account.rows[0], guard.seen[0])
    np.testing.assert_array_equal(told[0].arrays["local_point"], exact.arrays["local_point"])
    np.testing.assert_array_equal(rows[0], exact.account.rows[0])
    apart = [float(np.abs(each - rows[0]).max()) for each in rows[1:-1]]
    assert min(apart) > 0.0 and max(apart[4:]) > max(apart[:2])
    assert not told[-1].arrays["local_point"].any() and not rows[-1].any()


def test_a_mean_is_told_with_the_digits_that_count() -> None:
    """Every site is sent it: a message is as long as its digits."""
    terms = TuningTerms(tuple(SiteTerms(name, 1 / 3, 0.1, 1.0) for name in "abc"), LOSS, NORM, True)
    random = np.random.default_rng(0)
    found = mean_end(terms, {name: {"local_point": random.normal(size=(2, 5))} for name in "abc"})
    assert found.shape == (2, 5)
    np.testing.assert_array_equal(found, without_needless_digits(found, DIGITS))
