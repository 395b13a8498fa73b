"""FedDRO where the tracked inner value is not known yet, or lags behind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from models.basics import FloatArray
from models.cuts.evidence import with_answers
from models.losses.catalogue import get_loss
from models.methods.catalogue import check_parameters, get_method
from models.methods.local_sgd.feddro import TiltedObjective, kl_risk
from models.methods.local_sgd.objectives.linear import LinearObjective
from models.problem import RobustSpec, SiteProblem
from models.simulation.federation import server_problem

FEATURES = np.random.default_rng(0).uniform(size=(20, 2))
LABELS = np.where(np.arange(20) % 3 == 0, 1.0, -1.0)


@pytest.mark.parametrize("over_rows", [True, False])
def test_no_step_is_steeper_than_the_gradients_over_the_share_however_far_the_inner_value_lags(over_rows: bool) -> None:
    """Of these rows alone it is at least the share of their own, so no factor is above 1 over the share."""
    model, mu, share, weights = LinearObjective(get_loss("logistic")), 0.3, 0.25, np.array([2.0, -1.0, 0.5])
    exact = TiltedObjective(model, mu, 0.0, share, over_rows)
    loss, gradient = exact.loss_and_gradient(weights, FEATURES, LABELS)
    at_share = loss + mu * np.log(share)
    for inner, factor in ((-50.0, 1 / share), (at_share, 1 / share), (loss, 1.0), (loss + mu, 1 / np.e)):
        objective = TiltedObjective(model, mu, inner, share, over_rows)
        step = objective.loss_and_gradient(weights, FEATURES, LABELS, np.random.default_rng(1))[1]
        np.testing.assert_allclose(step, factor * gradient, rtol=1e-9)


def test_the_first_exchange_asks_for_the_inner_value_and_takes_no_step() -> None:
    sites = {"a": SiteProblem(FEATURES, LABELS, RobustSpec(0.0, 1.0, loss=get_loss("logistic")))}
    method = get_method("feddro")
    problem = server_problem(sites, None, method, {}, 1e-3)
    state, sizes = method.server.init(problem), []
    for _ in range(2):
        message = method.server.messages(state, problem)["a"]
        sizes.append(float(message["step_size"]))
        state = method.server.step(state, problem, {"a": method.site.answer(sites["a"], message, problem.parameters)})
    assert sizes == [0.0, problem.parameters["step_size"]]
    assert float(state.memory["round"]) == 1.0, "an exchange without steps is no round, by which steps get shorter"


def test_the_inner_value_is_tracked_over_all_rounds_and_not_over_the_last_two() -> None:
    """``y <- (1 - tracking) y + tracking sum_g a_g h_g``, from the first h that was told."""
    method, shares, mu, tracking = get_method("feddro"), {"a": 0.7, "b": 0.3}, 0.4, 0.3
    sites = {name: SiteProblem(FEATURES, LABELS, RobustSpec(0.0, 1.0, loss=get_loss("logistic"))) for name in shares}
    numbers = check_parameters(method, {"temperature": mu, "tracking": tracking})
    problem = server_problem(sites, shares, method, numbers, 1e-3)
    server: Any = method.server
    memory, tracked = server.rule.begin(problem, np.zeros(3)), None
    for told in ((0.7, 0.9), (0.5, 0.8), (0.2, 1.1), (0.6, 0.1)):
        now = sum(share * np.exp(risk / mu) for share, risk in zip(shares.values(), told, strict=True))
        tracked = now if tracked is None else (1.0 - tracking) * tracked + tracking * now
        answers = {
            name: {"risk": np.array(risk), "local_point": np.full(3, risk)}
            for name, risk in zip(shares, told, strict=True)
        }
        memory = server.rule.advance(memory, problem, answers)
        assert float(memory["inner"]) == pytest.approx(mu * np.log(tracked), rel=1e-12)


def test_of_the_sites_that_answered_the_inner_value_is_that_of_them_alone_and_each_is_told_its_share() -> None:
    """One that is away is left out of the sum and of its weight: else y would fall, and the steps be too long."""
    method, shares, mu = get_method("feddro"), {"a": 0.7, "b": 0.2, "c": 0.1}, 0.4
    sites = {name: SiteProblem(FEATURES, LABELS, RobustSpec(0.0, 1.0, loss=get_loss("logistic"))) for name in shares}
    problem = server_problem(sites, shares, method, check_parameters(method, {"temperature": mu}), 1e-3)
    server: Any = method.server
    begun = server.rule.begin(problem, np.zeros(3))
    answers = {
        name: {"risk": np.array(risk), "local_point": np.zeros(3)} for name, risk in (("a", 0.5), ("c", 0.9))
    }
    memory = server.rule.advance(begun, problem, answers)
    inner = mu * np.log((0.7 * np.exp(0.5 / mu) + 0.1 * np.exp(0.9 / mu)) / 0.8)
    assert float(memory["inner"]) == pytest.approx(inner, rel=1e-12)
    told = server.rule.messages(memory, problem)
    assert {name: float(each["share"]) for name, each in told.items()} == pytest.approx(shares)
    assert all(float(each["inner"]) == float(memory["inner"]) for each in told.values())
    assert server.rule.advance(memory, problem, {}) == memory, "nobody answered"


def test_the_worst_mixture_is_told_where_all_risks_are_known_and_the_weights_where_one_is_not() -> None:
    method, shares, mu = get_method("feddro"), {"a": 0.7, "b": 0.3}, 0.4
    sites = {name: SiteProblem(FEATURES, LABELS, RobustSpec(0.0, 1.0, loss=get_loss("logistic"))) for name in shares}
    problem = server_problem(sites, shares, method, check_parameters(method, {"temperature": mu}), 1e-3)
    server: Any = method.server
    state = server.init(problem)
    assert server.mixture_weights(state, problem) == shares, "nothing is known"
    evidence = with_answers(state.evidence, problem, np.zeros(3), {
        name: {"risk": np.array(risk), "cut_height": np.array(risk), "slope": np.zeros(3), "norm_weight": np.array(0.0)}
        for name, risk in (("a", 0.5), ("b", 0.9))
    })
    known = replace(state, evidence=server.bounded(evidence, problem, state.memory, raised=False))
    lifted = {"a": 0.7 * np.exp(0.5 / mu), "b": 0.3 * np.exp(0.9 / mu)}
    wanted = {name: each / sum(lifted.values()) for name, each in lifted.items()}
    assert server.mixture_weights(known, problem) == pytest.approx(wanted)


@pytest.mark.parametrize("mu", [0.05, 0.4])
def test_with_many_cuts_the_bound_is_near_the_optimum_and_not_above_it(mu: float) -> None:
    """The worst mixture's least risk, less its price: the sites differ, so that the price is more than rounding."""
    draw, loss, names = np.random.default_rng(3), get_loss("logistic"), ("a", "b")
    labels = np.stack([LABELS, np.where(draw.uniform(size=20) < 0.5, LABELS, -LABELS)])
    spec = RobustSpec(0.0, 1.0, loss=loss)
    sites = {name: SiteProblem(FEATURES + 0.3 * g, labels[g], spec) for g, name in enumerate(names)}
    method = get_method("feddro")
    numbers = check_parameters(method, {"temperature": mu, "over_rows": 0.0})
    problem = server_problem(sites, {"a": 0.9, "b": 0.1}, method, numbers, 1e-3)

    def value(weights: FloatArray) -> float:
        risks = [LinearObjective(loss).loss(weights, site.features, site.labels) for site in sites.values()]
        return kl_risk(np.array(risks), problem.weights, mu)

    found = minimize(value, np.zeros(3), tol=1e-12)
    state = method.server.init(problem)
    messages, evidence = method.server.messages(state, problem), state.evidence
    for point in found.x + draw.normal(size=(60, 3)) * np.repeat([0.02, 0.2, 1.0], 20)[:, None]:
        told = {name: method.site.answer(sites[name], {**messages[name], "point": point}, numbers) for name in names}
        evidence = with_answers(evidence, problem, point, told)
    server: Any = method.server
    bounded = server.bounded(evidence, problem, state.memory, raised=True)
    assert found.fun - 5e-3 <= bounded.lower <= found.fun + 1e-9 and bounded.upper >= found.fun - 1e-9
