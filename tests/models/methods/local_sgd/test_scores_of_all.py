"""Methods of local steps with a loss of all scores: what is certified, what is not, and what tells of single rows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models.basics import ProblemError
from models.losses.catalogue import get_loss
from models.methods.catalogue import METHODS, check_parameters, get_method
from models.methods.local_sgd.objectives.network import NetworkObjective
from models.methods.local_sgd.objectives.softmax import SoftmaxObjective
from models.methods.local_sgd.scores_of_all import check_takes_all_scores, method_of
from models.methods.row_account import accounted_answer
from models.problem import Certificate, RobustSpec, ServerProblem, SiteProblem, SiteTerms, Status

NETWORK = NetworkObjective(3, hidden=5, dropout=0.0)
TAKES = ("fedsgd", "fedavg", "fedprox", "q-fedavg", "scaffold", "scaff-pd", "scaff-pd-ia", "drfa", "drflm", "safl")
SPEC = RobustSpec(0.0, 1.0, loss=get_loss("cross_entropy"))


def rows(seed: int, count: int = 30) -> SiteProblem:
    random = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    centres = np.array([[0.2, 0.2], [0.8, 0.3], [0.5, 0.9]])
    features = np.clip(centres[labels] + 0.12 * random.normal(size=(count, 2)), 0.0, 1.0)
    return SiteProblem(features, labels.astype(float), SPEC)


SITES = {f"plant-{k}": rows(k) for k in range(3)}


def problem_of(method: Any, objective: Any) -> ServerProblem:
    terms = tuple(SiteTerms(name, share, 0.0, 1.0) for name, share in zip(SITES, (0.5, 0.3, 0.2), strict=True))
    parameters = check_parameters(method, {"step_size": 0.3})
    return ServerProblem(objective.size(2), terms, "l2", fit_intercept=False, parameters=parameters)


def exchanges(method: Any, problem: ServerProblem, count: int, away: dict[int, str] | None = None) -> list[Any]:
    state, states = method.server.init(problem), []
    for number in range(count):
        messages = method.server.messages(state, problem)
        answers = {
            name: method.site.answer(SITES[name], messages[name], problem.parameters)
            for name in SITES if name != (away or {}).get(number)
        }
        for each in answers.values():
            shapes = method.server.answer_shapes(problem.dimension, 0, problem.parameters)
            assert {name: array.shape for name, array in each.items()} == shapes
        state = method.server.step(state, problem, answers)
        states.append(state)
    return states


@pytest.mark.parametrize("name", TAKES)
def test_a_network_has_no_bounds_from_below_and_its_best_point_is_exact(name: str) -> None:
    method = method_of(get_method(name), NETWORK, 2, seed=1)
    problem = problem_of(method, NETWORK)
    states = exchanges(method, problem, 12)
    for state in states:
        found = method.server.certificate(state)
        assert found.lower == -math.inf and found.gap == math.inf and not found.meets(problem.gap)
        assert method.server.status(state, problem) is Status.CONTINUE
    uppers = [method.server.certificate(state).upper for state in states]
    assert all(later <= earlier for earlier, later in zip(uppers, uppers[1:], strict=False)) and uppers[-1] < uppers[0]
    last, point = states[-1], method.server.weights(states[-1])
    risks = {site: NETWORK.loss(point, each.features, each.labels) for site, each in SITES.items()}
    assert method.server.site_risks(last, problem) == pytest.approx(risks)
    if name in ("fedsgd", "fedavg", "fedprox", "scaffold"):
        assert uppers[-1] == pytest.approx(sum(site.weight * risks[site.site_id] for site in problem.sites))
    if name in ("drfa", "drflm", "safl"):
        assert uppers[-1] == pytest.approx(max(risks.values()))
    assert method.server.contradictions(last, problem, {}) == {} and method.server.carried_proof(last, problem) is None


@pytest.mark.parametrize("name", TAKES)
def test_a_packed_state_goes_on_to_the_same_weights(name: str) -> None:
    method = method_of(get_method(name), NetworkObjective(3, 5, 0.3), 2, seed=1)
    problem = problem_of(method, NETWORK)
    whole = exchanges(method, problem, 9)
    state = method.server.unpack(method.server.pack(whole[3]))
    for _ in range(4, 9):
        messages = method.server.messages(state, problem)
        answers = {each: method.site.answer(SITES[each], messages[each], problem.parameters) for each in SITES}
        state = method.server.step(state, problem, answers)
    packed, expected = method.server.pack(state), method.server.pack(whole[-1])
    assert packed.keys() == expected.keys()
    assert all(np.array_equal(packed[each], expected[each], equal_nan=True) for each in packed)


def test_a_point_counts_only_where_every_site_told_its_loss() -> None:
    method = method_of(get_method("fedavg"), NETWORK, 2)
    problem = problem_of(method, NETWORK)
    states = exchanges(method, problem, 4, away={0: "plant-1", 1: "plant-1", 2: "plant-0", 3: "plant-2"})
    assert method.server.certificate(states[-1]) == Certificate(math.inf, -math.inf, 0.8)
    assert np.array_equal(method.server.weights(states[-1]), states[-1].memory["point"])


def test_where_the_objective_changes_in_a_run_the_best_point_is_judged_by_the_new_one() -> None:
    """As where Scaff-PD-IA chooses its phi: a value by the old one would keep better points out, or others in."""
    method = method_of(get_method("scaff-pd-ia"), NETWORK, 2, seed=1)
    problem = problem_of(method, NETWORK)
    server: Any = method.server
    rule, state = server.certified.rule, exchanges(method, problem, 6)[-1]
    assert rule.asked(state.memory) is not None and math.isfinite(state.value)
    changed = replace(state, memory={**state.memory, "phi": np.array(0.6)})
    judged = method.server.step(changed, problem, {})
    expected = replace(rule.ambiguity(problem), phi=0.6).largest(state.risks)
    assert judged.value == pytest.approx(expected) and abs(expected - state.value) > 1e-3


def test_a_softmax_regression_keeps_its_bounds_and_a_network_starts_by_its_seed() -> None:
    """The server half of the one is that of the linear losses; that of the other begins where its seed says."""
    fedavg = get_method("fedavg")
    convex: Any = method_of(fedavg, SoftmaxObjective(3), 2)
    assert convex.server is fedavg.server and convex.site.objective == SoftmaxObjective(3)
    for seed in (0, 5):
        made: Any = method_of(fedavg, NETWORK, 2, seed=seed)
        start = made.server.weights(made.server.init(problem_of(made, NETWORK)))
        np.testing.assert_array_equal(start, NETWORK.start(2, seed))
        assert made.site.objective is NETWORK
    assert (NETWORK.start(2, 0) != NETWORK.start(2, 5)).any()


def test_methods_without_a_gradient_of_the_loss_are_refused() -> None:
    for name, method in METHODS.items():
        if name in TAKES:
            check_takes_all_scores(method)
        else:
            with pytest.raises(ProblemError, match="methods of local steps do"):
                check_takes_all_scores(method)


def test_one_margin_says_nothing_of_a_cross_entropy() -> None:
    loss = get_loss("cross_entropy")
    for asked in (loss.value, loss.slope):
        with pytest.raises(ProblemError, match="not of one margin"):
            asked(np.zeros(1))


def test_a_unit_that_few_rows_light_tells_nothing() -> None:
    network = NetworkObjective(2, hidden=3, dropout=0.0)
    features = np.random.default_rng(0).uniform(size=(12, 2))
    labels = (np.arange(12) % 2).astype(float)
    edge = np.sort(features[:, 0])
    inner = np.array([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    bias = -np.array([edge[-2:].mean(), edge[-6:-4].mean(), -2.0])  # lit by one row, by five, by all
    weights = np.concatenate([inner.ravel(), bias, np.random.default_rng(1).normal(size=8)])
    free = network.layers(network.loss_and_gradient(weights, features, labels)[1], 2)
    row = features[np.argmax(features[:, 0])]
    np.testing.assert_allclose(free[0][0] / free[1][0], row)  # the row itself, but for a factor that the bias tells
    for least, held in ((2, [0]), (5, [0]), (6, [0, 1])):
        guarded = NetworkObjective(2, 3, 0.0, least_rows=least)
        loss, gradient = guarded.loss_and_gradient(weights, features, labels)
        first, biases, second, _ = guarded.layers(gradient, 2)
        assert loss == network.loss(weights, features, labels)
        assert not first[held].any() and not biases[held].any() and not second[:, held].any()
        kept = [unit for unit in range(3) if unit not in held]
        np.testing.assert_array_equal(first[kept], free[0][kept])
        np.testing.assert_array_equal(second[:, kept], free[2][:, kept])


@pytest.mark.parametrize("name", ["fedavg", "scaffold"])
def test_the_account_of_a_softmax_regression_gives_its_gradient_and_steps(name: str) -> None:
    objective = SoftmaxObjective(3)
    method = method_of(get_method(name), objective, 2)
    parameters = {**problem_of(method, objective).parameters, "ridge": 0.0, "local_steps": 3.0, "epochs": 3.0}
    point = np.random.default_rng(3).normal(size=9)
    control = np.random.default_rng(4).normal(size=9)
    own = name == "scaffold"
    message = {
        "point": point, "correction": control if own else np.zeros(9), "step_size": np.array(0.2),
        "draw": np.array(5.0), "snapshot_step": np.array(0.0), **({"own_control": np.array(1.0)} if own else {}),
    }
    site = SITES["plant-0"]
    found = accounted_answer(method.site, site, message, parameters)
    assert found.account.whole and len(found.account.rows) == 9
    whole = np.hstack([site.features, np.ones((30, 1))])
    slope = np.hstack([objective.planes(found.arrays["slope"], 2)])
    np.testing.assert_allclose(np.stack(found.account.rows[:3]) @ whole, slope, atol=1e-12)
    gone = (point - found.arrays["local_point"]) / 0.2 - 3 * message["correction"]
    np.testing.assert_allclose(np.stack(found.account.rows[3:6]) @ whole, objective.planes(gone, 2), atol=1e-12)
    np.testing.assert_allclose(3 * np.stack(found.account.rows[6:]), np.stack(found.account.rows[3:6]))


def test_of_a_network_no_account_of_rows_is_known() -> None:
    method = method_of(get_method("fedavg"), NETWORK, 2)
    problem = problem_of(method, NETWORK)
    message = method.server.messages(method.server.init(problem), problem)["plant-0"]
    assert not accounted_answer(method.site, SITES["plant-0"], message, problem.parameters).account.whole
