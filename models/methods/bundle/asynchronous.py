r"""The level bundle without a pace: sites answer when they can, and an answer counts in the exchange in which it comes.

A site that still works on an earlier question is asked nothing new; the others are asked on. The kind of Iutzeler,
Malick, de Oliveira (Asynchronous level bundle methods, Mathematical Programming 2020), with upper bounds by
coordination, which costs no exchange here: all idle sites are asked at one point, so a late answer completes its point
(``models.cuts.late``).

With U the upper bound over the complete points and m_k the minimum of the cut model, the height that the level rests
on is H_k, the least over *all* visited points of the told risks with the cut model in place of those not told. It is a
hope, not a bound; it lets the sites that answer finish their part while others work. Asked next is the projection p_k
of the hoped-for point on ``{model <= m_k + level (H_k - m_k)}``. Where the idle sites have little left to tell
(``H_k - m_k`` at most a tenth of the gap) and the hoped-for point is not complete, nobody is asked but the idle sites
whose risk is missing there, and they are asked there.

**Why it converges.** Conditions: (1) 0 < level < 1; (2) H_k <= U_k; (3) every site that counts answers a question at
least every B exchanges; (4) no cut is forgotten; (5) the points stay in a bounded set, as they do where the model has a
norm part (a ball of a radius above 0), and the risks are convex, so Lipschitz there with some constant L.
The points with an answer of all sites are then infinitely many, and some subsequence of them has a limit. Of two of
its members p, p' with the answers to p there when p' was chosen, the cuts of p give
``model(p') >= F(p) - L ||p' - p||`` and so ``F(p') <= model(p') + 2 L ||p' - p||``, while by the choice of p' and (2)
``model(p') <= m + s (U - m)`` with s the larger of the level and the tenth. So U falls to ``m + s (U - m)`` but for
what goes to 0, and ``U - m`` goes to 0: B and L are in the proof alone, no step knows them. (1) is checked here, (2)
holds since a complete point has no hope in it, (4) since evidence only grows, and (3) is kept by who asks
(``services.coordinator.round_loop.late_rounds`` waits for a site that would fall further behind). A site that fails (3)
may be declared ``away``: then it enters the upper bound by its cuts, as in the synchronous method, and ``fresh_weight``
falls below 1: the bound then speaks of the others.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from models.basics import Arrays, FloatArray, ProblemError, without_needless_digits
from models.cuts.bounds import tighten_lower_bound
from models.cuts.contradiction import Contradiction, find_contradiction
from models.cuts.evidence import cut_model
from models.cuts.late import hoped_for, last_told, row_of, with_exact_upper, with_late_answers
from models.methods.bundle.asked_level import bottom, is_lowest, projected
from models.methods.bundle.level import BundleServer, BundleState, prox_questions
from models.methods.certified import is_still
from models.problem import ServerProblem

_LITTLE = 0.1
"""Share of the gap up to which what the answered sites leave open is little: the missing ones tell more."""
_BEFORE_A_BOUND = 5.0
"""Before any point is complete, the same in relative gaps of the problem."""
_NONE = np.zeros(0)


@dataclass(frozen=True)
class AsynchronousState(BundleState):
    """As the bundle's; ``open_round`` (G,): exchange of the question that a site works on, 0: it is idle.

    ``centre`` and ``penalty`` of a site at work are those of its question. ``missing`` (G,): 1 where a site is idle and
    its risk at ``point`` is not told. ``settled``: only the missing ones are to be asked there. ``away`` (G,): 1 where
    a site enters the upper bound by its cuts until it answers again.
    """

    open_round: FloatArray = field(default_factory=_NONE.copy, kw_only=True)
    missing: FloatArray = field(default_factory=_NONE.copy, kw_only=True)
    away: FloatArray = field(default_factory=_NONE.copy, kw_only=True)
    settled: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class AsynchronousServer(BundleServer):
    """Server half of the level bundle whose answers may come late."""

    state = AsynchronousState
    per_site = ("centre", "penalty", "open_round", "missing", "away")

    def init(self, problem: ServerProblem) -> AsynchronousState:
        """Nothing known; the first point is zero, and everybody is idle."""
        return _idle(super().init(problem))

    def warm(
        self, earlier: BundleState, before: ServerProblem, problem: ServerProblem, kept: Sequence[int]
    ) -> AsynchronousState:
        """As the bundle; what was open at the end of the earlier run was of that run."""
        return _idle(super().warm(earlier, before, problem, kept))

    def of_sites(self, state: BundleState, problem: ServerProblem, kept: Sequence[int]) -> BundleState:
        """As the bundle; the others are asked on."""
        return replace(_known(super().of_sites(state, problem, kept)), settled=False)

    def open_rounds(self, state: BundleState, problem: ServerProblem) -> dict[str, int]:
        """Exchange of the question that each site at work was asked, by site id."""
        rounds = _known(state).open_round
        return {site.site_id: int(j) for site, j in zip(problem.sites, rounds, strict=True) if j > 0}

    def asks_next(self, state: BundleState, problem: ServerProblem) -> set[str]:
        """Idle sites that are to be asked next: all, or where that is little use those whose risk is missing."""
        known = _known(state)
        idle = (known.open_round == 0) & ((known.missing > 0) | (not known.settled))
        return {site.site_id for site, asked in zip(problem.sites, idle, strict=True) if asked}

    def told_rounds(self, state: BundleState, problem: ServerProblem) -> dict[str, int]:
        """Exchange of the newest question that each site answered, by site id; 0 where it answered none."""
        return {
            site.site_id: int(told) for site, told in zip(problem.sites, last_told(state.evidence), strict=True)
        }

    def away(self, state: BundleState, problem: ServerProblem) -> set[str]:
        """Sites that entered the last upper bound by their cuts."""
        return {site.site_id for site, gone in zip(problem.sites, _known(state).away, strict=True) if gone}

    def messages(self, state: BundleState, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """The open question of a site at work, once more; for the others the next point."""
        messages = super().messages(state, problem)
        for site, exchange in self.open_rounds(state, problem).items():
            messages[site]["point"] = state.evidence.points[row_of(state.evidence, exchange)]
        return messages

    def contradictions(
        self, state: BundleState, problem: ServerProblem, answers: Mapping[str, Arrays]
    ) -> dict[str, Contradiction]:
        """As every certified method; a late answer is one to its own question."""
        asked_in, now = self.open_rounds(state, problem), state.evidence.exchanges + 1
        grown = with_late_answers(state.evidence, problem, state.point, answers, asked_in)
        ids = [site.site_id for site in problem.sites]
        found = {
            site: find_contradiction(replace(grown, exchanges=asked_in.get(site, now)), problem, ids.index(site))
            for site in answers
        }
        return {site: each for site, each in found.items() if each is not None}

    def step(self, state: BundleState, problem: ServerProblem, answers: Mapping[str, Arrays]) -> BundleState:
        """As :meth:`step_late` where nobody is at work or away."""
        return self.step_late(state, problem, answers, (), ())

    def step_late(
        self, state: BundleState, problem: ServerProblem, answers: Mapping[str, Arrays], due: Collection[str],
        away: Collection[str],
    ) -> AsynchronousState:
        """After an exchange: answers to this question or to open ones, of which those of ``due`` are still to come.

        ``away``: sites that are not waited for any longer; they enter the upper bound by their cuts.

        :class:`ProblemError` for a level outside (0, 1).
        """
        share = problem.parameters["level"]
        if not 0.0 < share < 1.0:
            raise ProblemError(f"the asynchronous level bundle converges for a level between 0 and 1, got {share:g}")
        ids, asked_in = [site.site_id for site in problem.sites], self.open_rounds(state, problem)
        now = state.evidence.exchanges + 1
        open_round = np.array([float(asked_in.get(site, now)) * (site in due and site not in answers) for site in ids])
        grown = with_late_answers(
            state.evidence, problem, state.point, answers, asked_in, asked=bool((open_round == now).any())
        )
        is_away = np.array([site in away for site in ids])
        evidence, minimiser = tighten_lower_bound(with_exact_upper(grown, problem, is_away), problem)
        model, hoped = cut_model(evidence, problem), hoped_for(evidence, problem)
        lowest, best = model.value(minimiser.point), hoped.best_point
        begun, towards = bottom(model, minimiser, hoped)
        level = begun + share * max(hoped.upper - begun, 0.0)
        level = float(without_needless_digits(np.array(level), problem.gap))
        found = projected(model, level, hoped, self._stated(problem), towards)
        evidence = evidence.using(found, problem)
        untold = np.isnan(evidence.risks[hoped.best]) & ~is_away if hoped.best >= 0 else np.zeros(len(ids), bool)
        left = evidence.upper - evidence.lower
        left = left if math.isfinite(left) else _BEFORE_A_BOUND * problem.gap * hoped.upper
        settled = bool(untold.any() and hoped.upper - lowest <= _LITTLE * left)
        point = without_needless_digits(best if settled else found.point, problem.gap)
        centre, penalty = state.centre, state.penalty
        if self.prox_cuts and found.level_price > 0:
            centres, penalties = prox_questions(model, found, best, problem)
            idle = open_round == 0
            centre, penalty = np.where(idle[:, None], centres, centre), np.where(idle, penalties, penalty)
        moved = float(np.abs(found.point - best).max())
        still = is_still(moved, best, evidence.upper) or is_lowest(model, minimiser, hoped)
        return AsynchronousState(
            evidence, point, centre, penalty, open_round=open_round, missing=untold.astype(np.float64),
            away=is_away.astype(np.float64), settled=settled, stagnated=still and not untold.any(),
        )


def _idle(state: BundleState) -> AsynchronousState:
    nobody = np.zeros(state.penalty.shape[0])
    return AsynchronousState(
        state.evidence, state.point, state.centre, state.penalty, open_round=nobody, missing=nobody.copy(),
        away=nobody.copy(),
    )


def _known(state: BundleState) -> AsynchronousState:
    """The state as this method keeps it, also where it is one of the synchronous method."""
    return state if isinstance(state, AsynchronousState) else _idle(state)
