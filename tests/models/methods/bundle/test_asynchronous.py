"""The asynchronous bundle: bounds that hold whoever answers when, and answers that count once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import Arrays, ProblemError
from models.cuts.late import last_told
from models.methods.answer_arrays import cut_answer
from models.methods.bundle.asynchronous import AsynchronousServer, AsynchronousState
from models.methods.catalogue import get_method
from models.one_vs_rest import OneVsRestServer
from models.problem import RobustSpec, ServerProblem, SiteProblem, Status
from models.simulation.federation import server_problem
from models.site_ambiguity.ball import MixtureBall
from models.worst_case.risk import RiskCut, site_risk

pytest.importorskip("cvxpy", reason="the oracle of these tests needs the extra 'reference'")

SITES, FEATURES = 3, 2
SERVER = AsynchronousServer(prox_cuts=True)


def drawn_sites(seed: int, radius: float) -> dict[str, SiteProblem]:
    draw = np.random.default_rng([17, seed])
    sites = {}
    for g in range(SITES):
        labels = np.where(np.arange(14) % 2 == 1, 1.0, -1.0)
        centre = labels[:, None] * (0.3 + 0.2 * g) * np.array([1.0, (-1.0) ** g])
        features = np.clip(centre + 0.5 * draw.standard_normal((14, FEATURES)), -1, 1)
        sites[f"site-{g}"] = SiteProblem(features, labels, RobustSpec(radius, 1.0, "l2"))
    return sites


def stated(sites: dict[str, SiteProblem], gap: float, ball: float = 0.0, **parameters: float) -> ServerProblem:
    return server_problem(sites, None, get_method("level-bundle"), parameters, gap, MixtureBall("l2", ball))


class Clock:
    """Rounds in which sites answer after a number of rounds that is drawn; what they were asked and told."""

    def __init__(self, sites: dict[str, SiteProblem], problem: ServerProblem, state: Any = None) -> None:
        self.sites, self.problem = sites, problem
        self.state: Any = SERVER.init(problem) if state is None else state
        self.working: dict[str, tuple[int, Arrays]] = {}
        self.asked: list[tuple[str, int]] = []
        self.below = 0.0
        """How far cuts lie below the risks at their own points."""

    def round(self, delays: dict[str, int], silent: frozenset[str] = frozenset()) -> dict[str, Any]:
        messages, number = SERVER.messages(self.state, self.problem), self.state.evidence.exchanges + 1
        for site in SERVER.asks_next(self.state, self.problem) - silent:
            assert site not in self.working, "a site at work is asked nothing new"
            self.asked.append((site, number))
            self.working[site] = (delays[site], messages[site])
        come = [site for site, (left, _) in self.working.items() if left == 0]
        if not come and self.working:
            least = min(left for left, _ in self.working.values())
            come = [site for site, (left, _) in self.working.items() if left == least]
        half = get_method("level-bundle").site
        answers = {site: dict(half.answer(self.sites[site], self.working.pop(site)[1], {})) for site in come}
        for answer in answers.values():
            for lowered in ("cut_height", "minorant_offset"):
                answer[lowered] = answer[lowered] - self.below
        self.working = {site: (max(left - 1, 0), message) for site, (left, message) in self.working.items()}
        self.state = SERVER.step_late(self.state, self.problem, answers, self.working, ())
        return answers


@settings(max_examples=10)
@given(
    data=st.data(), seed=st.integers(0, 30), radius=st.sampled_from([0.0, 0.02, 0.2]), ball=st.sampled_from([0.0, 0.3])
)
def test_bounds_hold_whoever_answers_when(data: st.DataObject, seed: int, radius: float, ball: float) -> None:
    from tests.oracles.whole_problem import solve_whole

    sites = drawn_sites(seed, radius)
    optimum = solve_whole(list(sites.values()), None, MixtureBall("l2", ball)).value
    clock = Clock(sites, stated(sites, 1e-6, ball))
    slack, told = 1e-6 * (1.0 + optimum), 0
    for _ in range(8):
        silent = frozenset(data.draw(st.sets(st.sampled_from(sorted(sites)), max_size=1)))
        delays = {site: data.draw(st.integers(0, 4)) for site in sites}
        told += len(clock.round(delays, silent))
        found = SERVER.certificate(clock.state)
        assert found.lower <= optimum + slack
        assert optimum <= found.upper + slack
        if np.isfinite(found.upper):
            assert found.fresh_weight == pytest.approx(1.0), "a bound from above is of a point that all sites told"
            risks = [site_risk(SERVER.weights(clock.state), site).value for site in sites.values()]
            assert SERVER.mixture_weights(clock.state, clock.problem)
            assert found.upper >= np.mean(risks) - slack
    evidence = clock.state.evidence
    assert len(evidence.cut_site) == 2 * told, "every answer is there with both of its cuts, once"
    assert len(clock.asked) == len(set(clock.asked)) and told + len(clock.working) == len(clock.asked)


@pytest.mark.parametrize("ball", [0.0, 0.4])
@pytest.mark.parametrize("delay", [0, 7])
def test_it_closes_the_gap_however_late_one_site_is(delay: int, ball: float) -> None:
    sites = drawn_sites(4, 0.02)
    clock, rounds = Clock(sites, stated(sites, 1e-5, ball)), 0
    while SERVER.status(clock.state, clock.problem) is Status.CONTINUE and rounds < 300:
        clock.round({"site-0": delay, "site-1": 0, "site-2": 0})
        rounds += 1
    assert SERVER.status(clock.state, clock.problem) is Status.CERTIFIED
    answered = sum(site == "site-0" for site, _ in clock.asked)
    assert delay == 0 or answered < 0.7 * rounds, "the others went on without it"


def test_a_site_silent_for_ten_rounds_loses_nothing() -> None:
    sites = drawn_sites(6, 0.02)
    clock = Clock(sites, stated(sites, 1e-9))
    none = dict.fromkeys(sites, 0)
    clock.round(none)
    clock.round(none)
    before, upper = clock.state.evidence, clock.state.evidence.upper
    for _ in range(10):
        clock.round(none, frozenset({"site-1"}))
        assert clock.state.evidence.upper == upper, "nothing is known from above without it"
    own = clock.state.evidence.cut_site == 1
    kept = before.cut_site == 1
    assert np.array_equal(clock.state.evidence.cut_slope[own], before.cut_slope[kept])
    assert last_told(clock.state.evidence).tolist()[1] == 2
    while SERVER.status(clock.state, clock.problem) is Status.CONTINUE:
        clock.round(none)
    assert clock.state.evidence.upper < upper


def test_beside_a_silent_site_nobody_is_asked_at_a_point_where_he_told_his_risk() -> None:
    """Also where cuts lie below the risks, as a guard's do: each such question would cost a round and an answer."""
    sites = drawn_sites(6, 0.02)
    clock = Clock(sites, stated(sites, 1e-9))
    clock.below = 1e-3
    delays, seen = {"site-0": 0, "site-1": 0, "site-2": 1}, set[tuple[str, bytes]]()
    for number in range(40):
        points = {site: each["point"].tobytes() for site, each in SERVER.messages(clock.state, clock.problem).items()}
        before = len(clock.asked)
        clock.round(delays, frozenset({"site-1"} if number > 1 else ()))
        for site, exchange in clock.asked[before:]:
            assert (site, points[site]) not in seen, f"{site} is asked again in round {exchange}"
            seen.add((site, points[site]))


def test_a_site_that_is_away_enters_by_its_cuts_and_the_bound_says_of_how_many_it_speaks() -> None:
    sites = drawn_sites(6, 0.02)
    clock = Clock(sites, stated(sites, 1e-4))
    none = dict.fromkeys(sites, 0)
    for _ in range(3):
        clock.round(none)
    for _ in range(30):
        messages = SERVER.messages(clock.state, clock.problem)
        half = get_method("level-bundle").site
        there = SERVER.asks_next(clock.state, clock.problem) - {"site-1"}
        answers = {site: half.answer(sites[site], messages[site], {}) for site in there}
        clock.state = SERVER.step_late(clock.state, clock.problem, answers, (), {"site-1"})
        assert SERVER.away(clock.state, clock.problem) == {"site-1"}
        assert not clock.state.missing[1], "nobody waits for its risk"
    found = SERVER.certificate(clock.state)
    assert found.gap <= 1e-4 and found.fresh_weight == pytest.approx(2.0 / 3.0)


def test_the_level_that_the_proof_asks_for_is_checked() -> None:
    sites = drawn_sites(1, 0.02)
    problem = stated(sites, 1e-4)
    wrong = replace(problem, parameters={**problem.parameters, "level": 1.0})
    with pytest.raises(ProblemError, match="a level between 0 and 1, got 1"):
        SERVER.step_late(SERVER.init(problem), wrong, {}, (), ())


def test_a_state_with_open_questions_is_stored_and_asks_them_again() -> None:
    sites = drawn_sites(3, 0.02)
    clock = Clock(sites, stated(sites, 1e-9))
    for _ in range(4):
        clock.round({"site-0": 9, "site-1": 1, "site-2": 0})
    heads = OneVsRestServer(SERVER, 1)
    again = heads.unpack(heads.pack((clock.state,)))
    assert isinstance(again[0], AsynchronousState)
    assert heads.open_rounds(again, clock.problem) == SERVER.open_rounds(clock.state, clock.problem)
    assert heads.open_rounds(again, clock.problem)["site-0"] == 1
    now, then = heads.messages(again, clock.problem)["site-0"], heads.messages((clock.state,), clock.problem)["site-0"]
    assert all(np.array_equal(now[name], then[name]) for name in then)
    assert not now["point"].any() and now["penalty"] == 0, "the very first question"


def test_where_the_others_have_little_left_to_tell_only_those_whose_risk_is_missing_are_asked_there() -> None:
    sites = drawn_sites(6, 0.02)
    clock = Clock(sites, stated(sites, 1e-9))
    none = dict.fromkeys(sites, 0)
    clock.round(none)
    for _ in range(40):
        clock.round(none, frozenset({"site-1"}))
        if clock.state.settled:
            break
    state, evidence = clock.state, clock.state.evidence
    assert state.settled and state.missing.tolist() == [0.0, 1.0, 0.0] and not state.stagnated
    (row,) = np.flatnonzero((evidence.points == state.point).all(axis=1))
    assert np.isnan(evidence.risks[row]).tolist() == [False, True, False]
    assert SERVER.asks_next(state, clock.problem) == {"site-1"}
    assert SERVER.asks_next(replace(state, settled=False), clock.problem) == set(sites)
    at_work = replace(state, open_round=np.array([0.0, 2.0, 0.0]))
    assert SERVER.asks_next(at_work, clock.problem) == set()
    two = {name: sites[name] for name in ("site-0", "site-2")}
    fewer = SERVER.of_sites(state, stated(two, 1e-9), [0, 2])
    assert SERVER.asks_next(fewer, stated(two, 1e-9)) == set(two), "who is left is asked on"


def test_where_the_cuts_have_no_lower_point_late_answers_are_not_waited_for() -> None:
    """Zero weights are best where the ball outweighs the slope; questions next to them would be refused."""
    terms = stated(drawn_sites(0, 0.1), gap=1e-3)
    for fall, status in ((0.05, Status.STALLED), (0.2, Status.CONTINUE)):
        told = cut_answer(RiskCut(1.0, 1.0, np.array([-fall, 0.0, -1e-17]), 0.1))
        server = AsynchronousServer(prox_cuts=False)
        state = server.step_late(server.init(terms), terms, {f"site-{g}": told for g in range(SITES)}, (), ())
        assert server.status(state, terms) is status and state.evidence.lower < 1e-9
