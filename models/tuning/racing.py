r"""The race of the candidates: what is asked in each exchange, who stays, and who is chosen.

Successive halving over folds (Jamieson and Talwalkar 2016; here in thirds): all candidates are trained with the first
two folds held out in turn, the best third, three at least, with the next folds, and so on, until three are left that
were scored on every fold. One fold of a small site is some thirty rows, too few to send two thirds home by; where the
budget pays for no more, it does. Three folds or fewer are asked all at once. All that are in a rung are asked in the
same exchanges, with cuts shared by all of one lift (``shared_cuts``), three of each lift and fold at once, to a gap of
5e-2. Of targets gradients of squares are asked in their place, one of each lift and fold at once (``least_squares``);
where these do not stand for the risk, a rung begins at the means of the sites' own weights (``starts``), and a score is
of the best point known: errors of a rough plane have no end. The budget is counted before every exchange: within a rung
as much is asked as it allows, and scores are never short of it.

A tuner knows scalars of the sites and what they answer; it does no I/O. ``exchange`` says what to ask, ``tell_cuts``
and ``tell_scores`` take the answers, until ``exchange`` is None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from models.basics import Arrays, FloatArray, ProblemError
from models.tuning.budget import Budget
from models.tuning.candidates import Candidate, flips_order
from models.tuning.choice import Choice, Rule, Scored, check_rule, chosen, kept
from models.tuning.head_pools import new_pool
from models.tuning.least_squares import MOST_QUESTIONS, is_by_squares
from models.tuning.rungs import Asked, Exchange, race_numbers, rungs, stay
from models.tuning.shared_cuts import COARSE
from models.tuning.starts import first_steps, mean_end
from models.tuning.terms import TuningTerms

_MOST_EXCHANGES = 10  # of cuts in a rung: more with fewer cuts each choose no better (decision 94)
_AT_ONCE = 3  # cuts of one lift and fold in an exchange, of as many candidates: more are too near to one another


class Tuner:
    """The race over a grid of candidates. ``sizes``: features by lift; ``heads``: planes of a model, K.

    ``told``: numbers that one site has sent, of those that the budget counts both ways.
    """

    def __init__(
        self, terms: TuningTerms, candidates: Sequence[Candidate], sizes: Sequence[int], heads: int, n_folds: int,
        budget: Budget, rule: Rule = "one-standard-error", score_numbers: int = 0,
    ) -> None:
        """``score_numbers``: how many a site tells of one candidate and fold.

        Raises
        ------
        ProblemError
            Fewer than two candidates or folds, no such rule, or a budget that does not pay for the race.
        """
        if len(candidates) < 2:
            raise ProblemError(f"a grid needs two candidates at least to choose from, got {len(candidates)}")
        check_rule(rule)
        self.terms, self.candidates, self.sizes, self.heads = terms, tuple(candidates), tuple(sizes), heads
        self.budget, self.rule, self._score_numbers = budget, rule, score_numbers
        self.rungs, self.n_folds = rungs(len(candidates), n_folds), n_folds
        self.live = self.candidates
        if not self._pays():  # the cheapest race of all: most leave by one fold
            self.rungs = rungs(len(candidates), n_folds, first=1)
        self._squares = is_by_squares(terms, candidates, heads)
        self._scored = {each: Scored(each) for each in candidates}
        self._rung, self._done, self._pending = 0, 0, Exchange((), scored=False)
        self._weights: dict[tuple[Candidate, int], FloatArray] = {}
        self._new_rung()
        self.choice: Choice | None = None
        self.told = 0.0
        self._check_budget()

    @property
    def pools_folds(self) -> bool:
        """Whether a candidate has one score over all folds: where nothing is made of their differences."""
        return self.rule == "best" and len(self.rungs) == 1

    @property
    def _has_target(self) -> bool:
        return self.terms.loss.task == "regression"

    @property
    def scored(self) -> tuple[Scored, ...]:
        """What is known of each candidate, in the order of the grid."""
        return tuple(self._scored[each] for each in self.candidates)

    def exchange(self) -> Exchange | None:
        """What to ask next, already counted; None: the race is over."""
        if self.choice is not None:
            return None
        asked = () if self._done >= self._exchanges() else self._next_cuts()
        if asked and not self._done and not self._squares:
            asked = (*asked, *self._first_steps(asked))
        if asked:
            self._pending, self._done = Exchange(asked, scored=False), self._done + 1
        else:
            self._pending = Exchange(self._to_score(), scored=True, pooled=self.pools_folds)
        numbers = sum(self._numbers(each, self._pending.scored) for each in self._pending.asked)
        numbers -= (len(self._pending.asked) - len(self._pending.told)) * self._score_numbers
        self.budget.spend(numbers)
        self.told += numbers - sum(each.sent for each in self._pending.asked)
        return self._pending

    def tell_cuts(self, answers: Sequence[Mapping[str, Arrays]]) -> None:
        """Answers to the parts of the last exchange, cuts or ends of steps: by site, arrays of all heads."""
        for part, told in zip(self._pending.asked, answers, strict=True):
            if part.penalty is not None:
                begun = replace(part, weights=mean_end(self.terms, told), penalty=None)
                self._starts.setdefault((part.candidate.lift, part.fold), []).append(begun)
                continue
            self._pools[part.candidate.lift, part.fold].add(part.candidate, part.weights, told)

    def tell_scores(self, scores: Sequence[float]) -> None:
        """Scores of what the last exchange was told; NaN where nothing was counted."""
        for place, score in zip(self._pending.told, scores, strict=True):
            parts = self._pending.together(place)
            known = self._scored[parts[0].candidate]
            counted = {} if math.isnan(score) else {part.fold: score for part in parts}
            self._scored[known.candidate] = replace(
                known, scores={**known.scores, **counted}, pooled=self._pending.pooled
            )
        self._rung, self._done = self._rung + 1, 0
        live = [self._scored[each] for each in self.live]
        if self._rung == len(self.rungs):
            self.choice = chosen(live, self.rule, self.sizes)
            return
        self.live = kept(live, stay(len(live)), self.sizes)
        self._new_rung()

    def weights(self, candidate: Candidate) -> FloatArray:
        """Weights (K, D) with which a candidate was scored last: a start for its training."""
        return next(found for (each, _), found in reversed(self._weights.items()) if each == candidate)

    def _new_rung(self) -> None:
        """Nothing known, by lift and fold of the rung: one pool for each head."""
        self._pools = {
            (lift, fold): new_pool(self.terms, self.sizes[lift], self.heads, squares=self._squares)
            for lift in sorted({each.lift for each in self.live}) for fold in self.rungs[self._rung].folds
        }
        self._near_enough: dict[tuple[int, int], set[Candidate]] = {}
        self._starts: dict[tuple[int, int], list[Asked]] = {}

    def _exchanges(self) -> int:
        """Exchanges of cuts in the rung: as many as the rounds allow, a score of every rung set aside."""
        left, most = len(self.rungs) - self._rung, MOST_QUESTIONS if self._squares else _MOST_EXCHANGES
        return min(most, (self.budget.rounds_left + self._done - left) // left)

    def _next_cuts(self) -> tuple[Asked, ...]:
        """Cuts for this exchange: of every lift and fold one, then a second and a third while the allowance lasts."""
        allowance = self._allowance() / max(self._exchanges() - self._done, 1)
        waiting = {key: self._needy(key) for key in self._pools}
        found: list[Asked] = []
        spent, least = 0.0, len(self._pools)
        while any(waiting.values()):
            for queue in waiting.values():
                if not queue:
                    continue
                part = queue.pop(0)
                cost = self._numbers(part, scored=False)
                # One of each is worth more than the evenness of the exchanges, as long as the rung can pay for it.
                if spent + cost > (self._allowance() if len(found) < least else allowance):
                    queue.clear()
                    continue
                found.append(part)
                spent += cost
        for starts in self._starts.values():
            starts[:] = [each for each in starts if not any(each is part for part in found)]
        return tuple(found)

    def _first_steps(self, asked: Sequence[Asked]) -> tuple[Asked, ...]:
        """Steps of a rung's first exchange, where there is a target: as many as half of it pays for."""
        if not self._has_target:
            return ()
        left = self._allowance() / 2 - sum(self._numbers(each, scored=False) for each in asked)
        steps = first_steps(self.live, self._pools, self.sizes, self.heads, self.terms.fit_intercept)
        paid = np.cumsum([self._numbers(each, scored=False) for each in steps]) <= left
        return tuple(step for step, is_paid in zip(steps, paid, strict=True) if is_paid)

    def _needy(self, key: tuple[int, int]) -> list[Asked]:
        """Candidates of a lift whose gap is wide with a fold held out, the one asked least first."""
        pool, (lift, fold) = self._pools[key], key
        near_enough = self._near_enough.setdefault(key, set())
        own = flips_order([each for each in self.live if each.lift == lift])
        order = sorted(own, key=lambda each: pool.asked(each))
        if not pool.asked(own[0]):
            return [Asked(own[0], fold, np.zeros((self.heads, pool.dimension)), squares=self._squares)]
        if self._starts.get(key):
            return list(self._starts[key])
        found = []
        for candidate in order:
            if candidate in near_enough:  # more cuts bring its bounds no further apart
                continue
            step = pool.step(candidate)
            if step.gap > COARSE:
                found.append(Asked(candidate, fold, step.point, squares=self._squares))
            else:
                near_enough.add(candidate)
            if len(found) == (1 if self._squares else _AT_ONCE):
                break
        return found

    def _to_score(self) -> tuple[Asked, ...]:
        found = []
        for candidate in self.live:
            gaps = []
            for fold in self.rungs[self._rung].folds:
                weights, gap = self._pools[candidate.lift, fold].scored(candidate)
                gaps.append(gap)
                self._weights.pop((candidate, fold), None)
                self._weights[candidate, fold] = weights
                found.append(Asked(candidate, fold, weights))
            self._scored[candidate] = replace(self._scored[candidate], gap=math.inf if self._squares else max(gaps))
        return tuple(found)

    def _numbers(self, part: Asked, scored: bool) -> float:
        """Numbers that a part costs a site: weights down; risk, height, norm weight and slope up, a step, or scores."""
        size = part.weights.size
        if scored:
            return size + self._score_numbers
        return size if part.penalty is not None else 2 * size + 3 * self.heads

    def _allowance(self) -> float:
        """Numbers for further cuts: a rung's even share of what scores to come leave now, so the first takes most."""
        left = len(self.rungs) - self._rung
        free = self.budget.numbers_left - self._score_cost()
        return free / left

    def _score_cost(self) -> float:
        """Numbers of the scores that are still to come, were the largest lifts to stay."""
        left = self.rungs[self._rung :]
        return race_numbers(self.live, self.sizes, self.heads, left, self._score_numbers, cuts=0)

    def _least(self) -> float:
        """Numbers of a race with one cut of every lift in every rung, and its scores."""
        return race_numbers(self.live, self.sizes, self.heads, self.rungs, self._score_numbers, cuts=1)

    def _pays(self) -> bool:
        return self.budget.rounds_left >= 2 * len(self.rungs) and self._least() <= self.budget.numbers_left

    def _check_budget(self) -> None:
        """Every rung needs a cut of every lift and a score; ``ProblemError`` where the budget is less."""
        needed = self._least()
        if not self._pays():
            raise ProblemError(
                f"the budget of the tuning is too small for its grid: {self.budget.rounds_left} rounds and "
                f"{self.budget.numbers_left:g} numbers, {2 * len(self.rungs)} and {needed:g} are the least; take a "
                "smaller grid or a larger budget"
            )
