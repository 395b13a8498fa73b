"""Honest answers never contradict each other nor leave the range of what risks can be; false ones do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.cuts.bounds import record
from models.cuts.contradiction import AT_THE_END, find_contradiction, find_false_end, suspected
from models.cuts.evidence import Evidence, with_answers
from models.geometry.supports import BoxSupport
from models.losses.catalogue import LOSS_NAMES, get_loss
from models.methods.site_answers import ProxCutSite
from models.problem import RobustSpec, ServerProblem, SiteProblem, SiteTerms
from models.worst_case.risk_range import risk_range, steepest_slope
from tests.models.cuts.test_evidence import known
from tests.models.cuts.told import problem_of

LOWER = {"risk": np.array(0.5), "cut_height": np.array(0.5)}
NORMS = st.sampled_from(["l1", "l2", "linf"])


def server(norm: Any, sites: int = 1) -> ServerProblem:
    terms = tuple(SiteTerms(f"s{k}", 1 / sites, 0.1, 1.0) for k in range(sites))
    return ServerProblem(n_features=3, sites=terms, transport_norm=norm, fit_intercept=True)


def drawn(seed: int, spec: RobustSpec) -> SiteProblem:
    draw = np.random.default_rng(seed)
    rows = draw.uniform(size=(12, 3))
    task = spec.loss.task
    return SiteProblem(rows, draw.uniform(size=12) if task == "regression" else draw.choice([-1.0, 1.0], 12), spec)


def asked(problem: SiteProblem, points: np.ndarray, **changes: Any) -> tuple[Evidence, ServerProblem]:
    """Evidence of one site after a round at each point; ``changes`` scale what it says in the last one."""
    server_problem = server(problem.spec.transport_norm)
    evidence = Evidence.empty(server_problem)
    for number, point in enumerate(points):
        message = {"point": point, "centre": point, "penalty": np.array(0.0 if number else 0.5)}
        answer = ProxCutSite().answer(problem, message, {})
        if number == len(points) - 1:
            answer = {name: array * changes.get(name, 1.0) for name, array in answer.items()}
        evidence = record(evidence, server_problem, point, {"s0": answer})
    return evidence, server_problem


@settings(max_examples=60, derandomize=True)
@given(
    st.integers(0, 10**6), NORMS, st.sampled_from(LOSS_NAMES), st.floats(0, 0.5), st.floats(0.1, 10), st.booleans()
)
def test_honest_answers_are_never_doubted(
    seed: int, norm: Any, loss_name: str, radius: float, flip_cost: float, boxed: bool
) -> None:
    loss = get_loss(loss_name)
    support = BoxSupport(np.zeros(3), np.ones(3)) if boxed and loss.lines is not None else None
    problem = drawn(seed, RobustSpec(radius, flip_cost, norm, support, loss=loss))
    draw = np.random.default_rng(seed + 1)
    points = np.vstack([np.zeros(4), draw.standard_normal((4, 4)) * 10.0 ** draw.integers(-3, 4, (4, 1))])
    evidence, server_problem = asked(problem, points)
    for count in range(1, len(points) + 1):
        told = replace(evidence, exchanges=count)
        assert find_contradiction(told, server_problem, 0) is None
    for point, risk in zip(points, evidence.risks[:, 0], strict=True):
        found = risk_range(
            point, loss, radius=radius, label_flip_cost=flip_cost, transport_norm=norm, fit_intercept=True
        )
        assert risk in found
    assert np.abs(evidence.cut_slope).max() <= steepest_slope(loss, radius) * (1 + 1e-9)


@pytest.mark.parametrize("loss_name", ["hinge", "logistic", "huber", "epsilon_insensitive"])
def test_without_an_intercept_every_weight_is_a_features(loss_name: str) -> None:
    """Rows of 0 have the one loss of a score of 0, whatever the weights, and rows of 1 their sum."""
    weights, loss = np.array([0.5, -0.25, 2.0]), get_loss(loss_name)
    found = risk_range(
        weights, loss, radius=0.0, label_flip_cost=1.0, transport_norm="l2", fit_intercept=False
    )
    scores = np.array([0.0, 2.25, -0.25, 2.5])
    for told in (loss.value(scores), loss.value(-scores if loss.task == "classification" else scores - 1.0)):
        assert all(float(risk) in found for risk in told)
    wider = risk_range(
        weights, loss, radius=0.3, label_flip_cost=10.0, transport_norm="l2", fit_intercept=False
    )
    assert wider.high - found.high == pytest.approx(0.3 * loss.lipschitz * np.linalg.norm(weights))


@pytest.mark.parametrize(("name", "factor"), [("risk", 0.9), ("slope", -1.0), ("minorant_offset", 1.5)])
def test_two_false_answers_are_found_with_their_rounds(name: str, factor: float) -> None:
    problem = drawn(3, RobustSpec(0.05, 1.0, "l2"))
    points = np.vstack([np.zeros(4), np.eye(4)[:2], [[0.5, 0.5, 0.0, 0.1]]])
    assert find_contradiction(*asked(problem, points), 0) is None
    evidence, server_problem = asked(problem, points, **{name: factor})
    found = find_contradiction(evidence, server_problem, 0)
    assert found is not None and found.risk < found.bound and 4 in (found.risk_round, found.cut_round)


@pytest.mark.parametrize(("factor", "found"), [(1 - 1e-5, True), (1 - 1e-6, False), (1 + 1e-5, False)])
def test_a_risk_that_is_a_hundred_thousandth_too_low_is_found_and_a_millionth_is_rounding(
    factor: float, found: bool
) -> None:
    """Told at a point where it was told before, with a cut that is as high."""
    evidence, problem = asked(drawn(3, RobustSpec(0.1, 1.0)), np.zeros((2, 4)), risk=factor)
    assert (find_contradiction(evidence, problem, 0) is not None) == found


@pytest.mark.parametrize("name", ["swing", "minorant_swing"])
def test_a_false_swing_is_found(name: str) -> None:
    problem = drawn(3, RobustSpec(0.2, 1.0, "linf", BoxSupport(np.zeros(3), np.ones(3))))
    points = np.vstack([np.zeros(4), [-1.0, 1.0, -1.0, 0.0], [0.5, 0.5, -0.5, 0.1]])
    assert find_contradiction(*asked(problem, points), 0) is None
    found = find_contradiction(*asked(problem, points, **{name: 8.0}), 0)
    assert found is not None and found.cut_round == 3


def test_a_risk_that_is_told_from_above_is_held_to_the_cuts_alone() -> None:
    problem, points = drawn(3, RobustSpec(0.05, 1.0, "l2")), np.vstack([np.zeros(4), np.eye(4)[:2]])
    evidence, server_problem = asked(problem, points)
    told = float(evidence.risks[-1, 0])
    for factor, seen, on_sums in ((1.0, False, False), (1.1, True, False), (0.5, True, True)):
        ends = [
            find_false_end(evidence, server_problem, 0, points[-1], factor * told, above=above)
            for above in (False, True)
        ]
        assert [each is not None for each in ends] == [seen, on_sums], factor


@pytest.mark.parametrize(("end", "risk_round", "cut_round"), [(0.9, AT_THE_END, 1), (1.1, 1, AT_THE_END)])
def test_of_two_risks_at_one_point_the_lower_is_named_by_its_exchange(
    end: float, risk_round: int, cut_round: int
) -> None:
    """What is said of a plant says which of its answers lies below which."""
    server_problem = server("l2")
    answer = {"risk": np.array(1.0), "cut_height": np.array(0.2), "slope": np.zeros(4), "norm_weight": np.array(0.0)}
    evidence = record(Evidence.empty(server_problem), server_problem, np.zeros(4), {"s0": answer})
    found = find_false_end(evidence, server_problem, 0, np.zeros(4), end)
    assert found is not None and (found.risk_round, found.cut_round) == (risk_round, cut_round)
    assert (found.risk, found.bound) == (min(end, 1.0), max(end, 1.0))


def test_who_tells_a_risk_below_its_floor_alone_is_suspected() -> None:
    """No cut of it lies above the risk, but it counted the norm by more than that: only suspects are looked at."""
    problem = server("l2", 2)
    said = {"risk": np.array(0.5), "cut_height": np.array(0.5), "slope": np.zeros(4), "norm_weight": np.array(0.0)}
    low = said | {"cut_height": np.array(-9.0), "norm_weight": np.array(1.0)}
    evidence = with_answers(Evidence.empty(problem), problem, np.zeros(4), {"s0": said, "s1": low})
    evidence = with_answers(evidence, problem, np.array([3.0, 0.0, 0.0, 0.0]), {"s0": said, "s1": said})
    found = find_contradiction(evidence, problem, 1)
    assert found is not None and (found.risk, found.bound) == (0.5, pytest.approx(3.0))
    assert suspected(evidence, problem) == {1} and find_contradiction(evidence, problem, 0) is None


def test_exchanges_without_a_risk_count_too() -> None:
    server_problem = server("l2")
    answer = {"risk": np.array(1.0), "cut_height": np.array(1.0), "slope": np.zeros(4), "norm_weight": np.array(0.0)}
    evidence = record(Evidence.empty(server_problem), server_problem, np.zeros(4), {"s0": answer}).passed()
    later = record(evidence, server_problem, np.ones(4), {"s0": answer | LOWER})
    found = find_contradiction(later, server_problem, 0)
    assert found is not None and (found.risk_round, found.cut_round) == (3, 1)
    back = Evidence.unpack(later.pack())
    assert find_contradiction(back, server_problem, 0) == found


def test_evidence_of_some_sites_has_nothing_of_the_others() -> None:
    both, alone = server("l2", 2), server("l2", 1)
    said = {"risk": np.array(1.0), "cut_height": np.array(1.0), "slope": np.ones(4), "norm_weight": np.array(0.1)}
    other = {"risk": np.array(2.0), "cut_height": np.array(2.0), "slope": -np.ones(4), "norm_weight": np.array(0.2)}
    together, single = Evidence.empty(both), Evidence.empty(alone)
    for point in (np.zeros(4), np.ones(4)):
        together = record(together, both, point, {"s0": other, "s1": said})
        single = record(single, alone, point, {"s0": said})
    swings = {"s0": other | {"swing": np.full(3, 0.5)}, "s1": said | {"swing": np.ones(3)}}
    swung = record(together, both, np.ones(4), swings).of_sites([1])
    assert swung.cut_swing.tolist() == [[0.0] * 3] * 2 + [[1.0] * 3], "cuts without one have none"
    left, expected = together.of_sites([1]).pack(), single.pack()
    assert {name: array.tolist() for name, array in left.items() if name != "bounds"} == {
        name: array.tolist() for name, array in expected.items() if name != "bounds"
    }


def test_a_state_of_the_first_version_can_be_gone_on_with() -> None:
    server_problem = server("l2")
    answer = {"risk": np.array(1.0), "cut_height": np.array(1.0), "slope": np.zeros(4), "norm_weight": np.array(0.0)}
    packed = record(Evidence.empty(server_problem), server_problem, np.zeros(4), {"s0": answer}).pack()
    old = {name: array for name, array in packed.items() if not name.endswith(("_round", "_swing"))}
    old["bounds"] = old["bounds"][:4]
    back = record(Evidence.unpack(old), server_problem, np.ones(4), {"s0": answer | LOWER})
    found = find_contradiction(back, server_problem, 0)
    assert found is not None and "an earlier round" in str(found) and found.risk_round == 2


@settings(max_examples=60, derandomize=True)
@given(st.integers(0, 10**6), NORMS, st.sampled_from([1.0, 0.999, 1.001, 0.5]), st.booleans())
def test_whoever_contradicts_itself_is_suspected(seed: int, norm: Any, lie: float, away: bool) -> None:
    """Of four sites one tells another risk than its own in the last exchange, and one was absent before."""
    draw, server_problem = np.random.default_rng(seed), server(norm, 4)
    problems = [drawn(seed + k, RobustSpec(0.05, 1.0, norm)) for k in range(4)]
    evidence, found = Evidence.empty(server_problem), set[int]()
    for number in range(6):
        point = draw.standard_normal(4) * draw.choice([0.1, 1.0, 10.0])
        message = {"point": point, "centre": point, "penalty": np.array(0.5)}
        answers = {f"s{k}": ProxCutSite().answer(each, message, {}) for k, each in enumerate(problems)}
        if number == 5:
            name = draw.choice(["risk", "cut_height", "slope", "norm_weight"])
            answers["s2"] = answers["s2"] | {name: answers["s2"][name] * lie}
        if away and number in (1, 2):
            del answers["s3"]
        evidence = with_answers(evidence, server_problem, point, answers)
        suspects = suspected(evidence, server_problem)
        found = {site for site in range(4) if find_contradiction(evidence, server_problem, site) is not None}
        assert found <= suspects
        assert number == 5 or not suspects
    assert lie != 1.0 or not found


def test_the_last_exchange_is_held_against_the_first() -> None:
    point, problem = np.array([0.3, -0.2, 0.1, 0.0]), drawn(5, RobustSpec(0.05, 1.0, "l2"))
    for name, factor in (("risk", 0.9), ("cut_height", 1.1)):
        evidence, server_problem = asked(problem, np.stack([point, np.zeros(4), point]), **{name: factor})
        assert suspected(evidence, server_problem) == {0}


def test_of_whom_only_cuts_or_only_risks_are_known_nothing_contradicts() -> None:
    """As of a plant that told nothing in this run, whose cuts of the last one were taken over."""
    problem, told = problem_of(), known()
    assert find_contradiction(replace(told, risks=np.full_like(told.risks, np.nan)), problem, 0) is None
    assert find_contradiction(told.kept_cuts(told.cut_site != 0), problem, 0) is None
