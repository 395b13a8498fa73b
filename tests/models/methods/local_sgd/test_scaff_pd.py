"""Scaff-PD-IA and its special cases: exact optima, the rate of Theorem 3, SCAFFOLD written anew, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.basics import ProblemError
from models.fairness.ambiguity_set import RelativeSet, balanced_phi
from models.fairness.quadratic import QuadraticLosses, solve_relative
from models.losses.catalogue import get_loss
from models.losses.regression import Squared
from models.methods.catalogue import check_method_problem, check_parameters, get_method
from models.methods.local_sgd.objectives.linear import LinearObjective
from models.methods.local_sgd.scaff_steps import convexity_report, step_rule
from models.problem import RobustSpec, ServerProblem, SiteProblem, SiteTerms
from models.simulation.federation import train
from models.simulation.local_training import train_local
from models.site_ambiguity.ball import MixtureBall
from tests.tables import table_or_skip

SQUARES = LinearObjective(Squared(), fit_intercept=False)
CONSTANT = {"global_step": 0.1, "step_size": 0.02, "dual_step": 0.05, "local_steps": 3.0}


def quadratics(n_sites: int = 4, dimension: int = 3, spread: float = 0.2, seed: int = 0):
    """Least squares whose Hessians have eigenvalues within 1 +- spread, as rows and as exact quadratics."""
    random = np.random.default_rng(seed)
    features, targets = [], []
    for _ in range(n_sites):
        turn = np.linalg.qr(random.normal(size=(dimension, dimension)))[0]
        curvatures = random.uniform(1 - spread, 1 + spread, dimension)
        features.append(np.sqrt(dimension * curvatures / 2)[:, None] * turn)
        targets.append(features[-1] @ random.normal(size=dimension) + 0.3 * random.normal(size=dimension))
    sites = {f"s{i}": (x, y) for i, (x, y) in enumerate(zip(features, targets, strict=True))}
    return sites, QuadraticLosses.of_squares(features, targets, mean=True)


def scaffold(sites, rounds, eta, tau, steps):
    """SCAFFOLD (Karimireddy et al. 2020, option I) with equal weights and full gradients, without the halves."""
    theta = np.zeros(next(iter(sites.values()))[0].shape[1])
    for _ in range(rounds):
        control = [2 * x.T @ (x @ theta - y) / len(y) for x, y in sites.values()]
        mean, moved = np.mean(control, axis=0), []
        for (x, y), own in zip(sites.values(), control, strict=True):
            u = theta
            for _ in range(steps):
                u = u - eta * (2 * x.T @ (x @ u - y) / len(y) - own + mean)
            moved.append((theta - u) / (eta * steps))
        theta = theta - tau * np.mean(moved, axis=0)
    return theta


def test_sets_of_one_point_give_scaffold() -> None:
    sites, _ = quadratics()
    known = scaffold(sites, 20, 0.02, 0.1, 3)
    steps = {name: CONSTANT[name] for name in ("global_step", "step_size", "local_steps")}
    plain = train_local(SQUARES, sites, method="scaffold", parameters=steps, rounds=20)
    np.testing.assert_allclose(plain.weights, known, rtol=1e-12)
    points = {**CONSTANT, "alpha": 1.0, "beta": 1.0, "phi": 0.3}
    fair = train_local(SQUARES, sites, method="scaff-pd-ia", parameters=points, rounds=20)
    np.testing.assert_allclose(fair.weights, known, rtol=1e-9)
    np.testing.assert_allclose(fair.weights_of_sites, 0.25, atol=1e-12)
    assert fair.exchanges == 40 and fair.site_losses.shape == (20, 4)


def test_phi_zero_gives_scaff_pd() -> None:
    sites, _ = quadratics()
    fair = train_local(
        SQUARES, sites, method="scaff-pd-ia", parameters={**CONSTANT, "alpha": 0.5, "phi": 0.0}, rounds=15
    )
    plain = train_local(SQUARES, sites, method="scaff-pd", parameters={**CONSTANT, "alpha": 0.5}, rounds=15)
    np.testing.assert_array_equal(fair.weights, plain.weights)


@pytest.mark.parametrize("phi", [0.0, 0.1])
def test_reaches_the_exact_solution(phi: float) -> None:
    sites, losses = quadratics()
    exact = solve_relative(losses, RelativeSet.of_shares(4, phi, 0.5, 0.5))
    parameters = {**CONSTANT, "alpha": 0.5, "beta": 0.5, "phi": phi}
    found = train_local(SQUARES, sites, method="scaff-pd-ia", parameters=parameters, rounds=500)
    np.testing.assert_allclose(found.weights, exact.point, atol=1e-5)


def test_rate_of_theorem_3() -> None:
    sites, losses = quadratics(n_sites=3, spread=0.1, seed=3)
    ambiguity = RelativeSet.of_shares(3, 0.1, 1 / 3, 1 / 3)
    exact = solve_relative(losses, ambiguity)
    parameters = {
        "alpha": 1 / 3, "beta": 1 / 3, "phi": 0.1, "local_steps": 2.0, "strong_convexity": 0.9, "smoothness": 1.1,
        "tau0": 0.1, "gamma0": 0.5,
    }
    report = convexity_report(parameters, ambiguity)
    assert report is not None and report.holds and "holds" in str(report)
    rounds, errors = np.array([25, 50, 100, 200, 400]), []
    for count in rounds:
        run = train_local(SQUARES, sites, method="scaff-pd-ia", parameters=parameters, rounds=int(count))
        errors.append(float(np.sum(np.square(run.weights - exact.point))))
    slope = np.polyfit(np.log(rounds), np.log(errors), 1)[0]
    assert slope <= -1.8, (slope, errors)


def test_schedule_of_assumption_8() -> None:
    m, M, size, coupling = 1.0, 1.5, 1.2, 3.0
    parameters = {"local_steps": 4.0, "strong_convexity": m, "smoothness": M, "coupling": coupling}
    rule = step_rule(parameters, size)
    first = rule.first
    gamma = first.sigma / first.tau
    assert first.tau == pytest.approx(1 / (1200 * M * size))
    assert 4 * coupling**2 * first.tau**2 * gamma / 0.5 + 27 * M * first.tau == pytest.approx(1.0)
    second = rule.after(first)
    assert second.sigma / second.tau == pytest.approx(gamma * (1 + (m / 4 - M * (size - 1) / 2) * first.tau))
    assert second.tau * second.sigma == pytest.approx(first.tau * first.sigma)
    assert second.extrapolation == pytest.approx(first.sigma / second.sigma)
    assert second.eta == pytest.approx(second.tau / 4)
    wide = step_rule(parameters, 2.0)
    assert wide.after(wide.first).tau == wide.first.tau  # the bracket is not above 0: constant steps


def _sites(loss: str = "logistic") -> dict[str, SiteProblem]:
    random = np.random.default_rng(0)
    sites = {}
    for g in range(3):
        features = random.uniform(0, 1, (30, 2))
        labels = np.where((features - 0.5) @ [1.0, 2.0] + 0.3 * g - 0.3 + 0.3 * random.normal(size=30) > 0, 1.0, -1.0)
        sites[f"site-{g}"] = SiteProblem(features, labels, RobustSpec(0.0, 1.0, loss=get_loss(loss)))
    return sites


@pytest.mark.parametrize("phi", [0.0, 0.2])
def test_certificate_holds_the_optimum_between_its_bounds(phi: float) -> None:
    parameters = {"alpha": 0.5, "beta": 0.5, "phi": phi, "global_step": 2.0, "step_size": 0.2, "dual_step": 0.05}
    run = train(_sites(), method="scaff-pd-ia", parameters=parameters, max_rounds=60, gap=1e-9)
    worst = RelativeSet.of_shares(3, phi, 0.5, 0.5)
    assert run.certificate.upper == pytest.approx(worst.largest(np.array(list(run.site_risks.values()))), rel=1e-12)
    longer = train(_sites(), method="scaff-pd-ia", parameters=parameters, max_rounds=300, gap=1e-9)
    assert run.certificate.lower <= longer.certificate.upper <= run.certificate.upper + 1e-12


def test_an_absent_site_stays_with_its_last_word_and_the_state_survives_packing() -> None:
    sites, method = _sites(), get_method("scaff-pd-ia")
    from models.simulation.federation import server_problem

    problem = server_problem(sites, None, method, {"global_step": 1.0, "step_size": 0.1}, 1e-9)
    state = method.server.init(problem)
    for number in range(6):
        messages = method.server.messages(state, problem)
        here = [name for name in sites if not (name == "site-1" and number in (2, 3))]
        answers = {name: method.site.answer(sites[name], messages[name], problem.parameters) for name in here}
        again = {name: method.site.answer(sites[name], messages[name], problem.parameters) for name in here}
        for name in here:
            for key, array in answers[name].items():
                np.testing.assert_array_equal(array, again[name][key])
        known = state.memory["losses"].copy()
        state = method.server.unpack(method.server.pack(method.server.step(state, problem, answers)))
        if number in (2, 3):
            assert state.memory["losses"][1] == known[1]
    assert float(state.memory["round"]) == 3.0
    assert np.isfinite(state.memory["point"]).all() and method.server.certificate(state).fresh_weight == 1.0


def test_penguins_land_on_the_exact_solutions() -> None:
    from tests.benchmarks.papers.relative_fairness.federated import PHIS, federated_solutions

    table_or_skip("palmer_penguins")
    rows = federated_solutions(PHIS[1:2], rounds=1200)
    assert all(row["distance"] <= 1e-3 for row in rows), rows


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"phi": 1.0}, "parameter phi of method scaff-pd-ia must be at or above 0 and below 1, got 1"),
        ({"phi": -0.1}, "must be at or above 0 and below 1, got -0.1"),
        ({"alpha": 0.0}, "parameter alpha of method scaff-pd-ia must be above 0 and at most 1, got 0"),
        ({"beta": 1.5}, "parameter beta of method scaff-pd-ia must be above 0 and at most 1, got 1.5"),
        ({"local_steps": 0.0}, "parameter local_steps must be at least 1, got 0"),
        ({"local_steps": 1.5}, "must be a whole number at or above 0"),
        ({"strong_convexity": 1.0}, "the schedule needs 0 < strong_convexity <= smoothness, got 1 and 0"),
    ],
)
def test_refused_in_one_line(given: dict[str, float], text: str) -> None:
    with pytest.raises(ProblemError) as refusal:
        check_parameters(get_method("scaff-pd-ia"), given)
    assert text in str(refusal.value) and "\n" not in str(refusal.value)


def test_a_loss_with_corners_and_a_ball_over_the_sites_are_refused() -> None:
    with pytest.raises(ProblemError, match="method scaff-pd-ia needs a smooth loss .*, the loss is hinge"):
        train(_sites("hinge"), method="scaff-pd-ia")
    with pytest.raises(ProblemError, match="the radius over the sites must be 0"):
        check_method_problem(get_method("scaff-pd-ia"), MixtureBall("l2", 0.1))


def test_phi_is_chosen_by_equation_8() -> None:
    sites, losses = quadratics()
    alone = RelativeSet.of_shares(4, 0.0, 0.5, 0.5)
    exact = solve_relative(losses, alone)
    values, slopes = losses.values(exact.point), losses.gradients(exact.point)
    a, b = alone.worst.worst(values), alone.best.best(values)
    pull, curved = b @ slopes, np.einsum("i,ipq->pq", a, losses.hessians)
    phi = balanced_phi(a @ values, b @ values, pull @ np.linalg.solve(curved, pull))
    assert 0.0 < phi < 0.99
    parameters = {**CONSTANT, "dual_step": 0.02, "alpha": 0.5, "beta": 0.5, "choose_after": 300.0}
    found = train_local(SQUARES, sites, method="scaff-pd-ia", parameters=parameters, rounds=301)
    assert found.exchanges == 2 * 300 + 1 + 3  # three weights, three conjugate directions
    np.testing.assert_allclose(found.weights, exact.point, atol=1e-4)
    server: Any = get_method("scaff-pd-ia").server
    problem, rule = _server_problem(sites, parameters), server.rule
    memory = rule.begin(problem, exact.point)
    memory["round"] = np.array(300.0)
    while float(memory["phi"]) == 0.0:
        messages = rule.messages(memory, problem)
        answers = {
            name: dict(zip(("risk", "slope"), SQUARES.loss_and_gradient(messages[name]["point"], *rows), strict=True))
            for name, rows in sites.items()
        }
        memory = rule.advance(memory, problem, answers)
    assert float(memory["phi"]) == pytest.approx(phi, rel=1e-4)


def _server_problem(sites, parameters):
    terms = tuple(SiteTerms(name, 1 / len(sites), 0.0, 1.0) for name in sites)
    return ServerProblem(3, terms, "l2", False, parameters=check_parameters(get_method("scaff-pd-ia"), parameters))
