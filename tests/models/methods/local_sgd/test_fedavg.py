"""FedSGD, FedAvg, FedProx and q-FedAvg by hand, against the optimum, and over a network."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import ProblemError
from models.losses.catalogue import get_loss
from models.losses.regression import Squared
from models.methods.catalogue import METHODS
from models.methods.local_sgd.fedavg import AveragingRule, FairAveragingRule, drawn_sites
from models.methods.local_sgd.objectives.linear import LinearObjective
from models.methods.local_sgd.objectives.network import NetworkObjective
from models.methods.local_sgd.site import LocalStepsSite
from models.problem import RobustSpec, ServerProblem, SiteProblem, SiteTerms
from models.simulation.federation import train
from models.simulation.local_training import train_local

SQUARES = LinearObjective(Squared(), fit_intercept=False)
RANDOM = np.random.default_rng(0)
SITES = {f"s{g}": (RANDOM.normal(size=(8, 2)), RANDOM.normal(size=8)) for g in range(3)}
SHARES = {"s0": 0.5, "s1": 0.3, "s2": 0.2}


def gradient(site: str, point: np.ndarray) -> np.ndarray:
    x, y = SITES[site]
    return 2 * x.T @ (x @ point - y) / len(y)


def test_fedsgd_is_gradient_descent() -> None:
    point = np.zeros(2)
    for t in range(1, 6):
        point = point - 0.1 / np.sqrt(t) * sum(SHARES[site] * gradient(site, point) for site in SITES)
    run = train_local(
        SQUARES, SITES, method="fedsgd", parameters={"step_size": 0.1, "step_power": 0.5}, rounds=5, weights=SHARES
    )
    np.testing.assert_allclose(run.weights, point, rtol=1e-12)


@pytest.mark.parametrize(("method", "proximal"), [("fedavg", 0.0), ("fedprox", 0.7)])
def test_local_steps_and_their_average(method: str, proximal: float) -> None:
    point = np.zeros(2)
    for _ in range(4):
        ended = []
        for site in SITES:
            u = point
            for _ in range(3):
                u = u - 0.05 * (gradient(site, u) + proximal * (u - point) + 0.2 * u)
            ended.append(SHARES[site] * u)
        point = np.sum(ended, axis=0)
    own = {"proximal": proximal} if proximal else {}
    parameters = {"step_size": 0.05, "epochs": 3, "ridge": 0.2, **own}
    run = train_local(SQUARES, SITES, method=method, parameters=parameters, rounds=4, weights=SHARES)
    np.testing.assert_allclose(run.weights, point, rtol=1e-12)


def test_q_fedavg_step_by_hand() -> None:
    start, q, rate = np.array([0.3, -0.4]), 2.0, 0.05
    top, model_minimiser = np.zeros(2), 0.0
    for site, (x, y) in SITES.items():
        loss, u = float(np.mean((x @ start - y) ** 2)), start
        for _ in range(2):
            u = u - rate * gradient(site, u)
        change = (start - u) / rate
        top = top + SHARES[site] * loss**q * change
        model_minimiser += SHARES[site] * (q * loss ** (q - 1) * change @ change + loss**q / rate)
    parameters = {"step_size": rate, "epochs": 2, "q": q}
    run = train_local(SQUARES, SITES, method="q-fedavg", parameters=parameters, rounds=1, weights=SHARES, start=start)
    np.testing.assert_allclose(run.weights, start - top / model_minimiser, rtol=1e-12)


def test_q_zero_is_fedavg_and_a_larger_q_is_fairer() -> None:
    common = {"step_size": 0.05, "epochs": 2}
    fedavg = train_local(SQUARES, SITES, method="fedavg", parameters=common, rounds=150)
    runs = {
        q: train_local(SQUARES, SITES, method="q-fedavg", parameters={**common, "q": q}, rounds=150)
        for q in (0.0, 1.0, 10.0)
    }
    np.testing.assert_allclose(runs[0.0].weights, fedavg.weights, rtol=1e-9)
    spreads = [run.site_losses[-1].max() - run.site_losses[-1].min() for run in runs.values()]
    assert spreads[0] > spreads[1] > spreads[2]


def test_clients_are_drawn_anew_and_the_same_way_each_time() -> None:
    terms = tuple(SiteTerms(f"s{g}", 0.1, 0.0, 1.0) for g in range(10))
    problem = ServerProblem(2, terms, "l2", False, parameters={"clients": 3.0, "seed": 5.0})
    draws = [drawn_sites(problem, number) for number in range(30)]
    assert draws == [drawn_sites(problem, number) for number in range(30)]
    assert all(len(set(drawn)) == 3 for drawn in draws) and set(np.ravel(draws)) == set(range(10))


def test_a_site_that_is_not_drawn_takes_no_step_and_the_mean_is_over_those_drawn() -> None:
    run = train_local(SQUARES, SITES, method="fedavg", parameters={"step_size": 0.05, "clients": 1}, rounds=1)
    ended = []
    for site in SITES:
        u = np.zeros(2)
        for _ in range(5):
            u = u - 0.05 * gradient(site, u)
        ended.append(u)
    assert sum(np.allclose(run.weights, u, rtol=1e-12) for u in ended) == 1


def _rounds(**parameters: float) -> ServerProblem:
    given = {"clients": 1.0, "seed": 5.0, "step_size": 0.1, "step_power": 0.0, **parameters}
    return ServerProblem(2, tuple(SiteTerms(site, SHARES[site], 0.0, 1.0) for site in SITES), "l2", False,
                         parameters=given)


def test_a_site_that_is_not_drawn_is_asked_for_its_loss_alone() -> None:
    problem, rule = _rounds(), AveragingRule()
    memory = rule.begin(problem, np.zeros(2))
    sizes = [float(sent["step_size"]) for sent in rule.messages(memory, problem).values()]
    assert [g for g, size in enumerate(sizes) if size > 0] == drawn_sites(problem, 0.0) and max(sizes) == 0.1
    with pytest.raises(ProblemError, match="parameter clients must be at most the number of sites, 3, got 4"):
        rule.begin(_rounds(clients=4.0), np.zeros(2))


def test_q_fedavg_goes_by_the_step_of_its_round_and_bears_a_loss_of_zero() -> None:
    """The inverse of the round's own step size is in change and size; a loss of 0 has no infinite power."""
    answers = {site: {"risk": np.array(1.7), "local_point": np.array([0.2, -0.1])} for site in SITES}
    memory = {"point": np.array([1.0, 1.0]), "round": np.array(8.0)}
    problem = _rounds(q=2.0, step_power=0.5, clients=0.0)
    change = (memory["point"] - answers["s0"]["local_point"]) / (0.1 / 3.0)
    wanted = memory["point"] - 1.7**2 * change / (2 * 1.7 * change @ change + 1.7**2 / (0.1 / 3.0))
    found = FairAveragingRule().advance(memory, problem, answers)
    np.testing.assert_allclose(found["point"], wanted, rtol=1e-12)
    without = {site: {**answer, "risk": np.array(0.0)} for site, answer in answers.items()}
    assert np.isfinite(FairAveragingRule().advance(memory, _rounds(q=0.5), without)["point"]).all()


def test_a_repeated_message_gets_the_same_answer_and_another_draw_another() -> None:
    problem = SiteProblem(*SITES["s0"], RobustSpec(0.0, 1.0, loss=Squared(), fit_intercept=False))
    message = {
        "point": np.zeros(2), "correction": np.zeros(2), "step_size": np.array(0.1), "draw": np.array(2.0**52 + 1),
        "snapshot_step": np.array(2.0),
    }
    parameters = {"epochs": 2.0, "batch": 0.3}
    once, again = (LocalStepsSite().answer(problem, message, parameters) for _ in range(2))
    for name, array in once.items():
        np.testing.assert_array_equal(array, again[name])
    other = LocalStepsSite().answer(problem, {**message, "draw": np.array(3.0)}, parameters)
    assert (other["local_point"] != once["local_point"]).any() and other["risk"] == once["risk"]


@pytest.mark.parametrize("method", ["fedsgd", "fedavg", "fedprox", "q-fedavg"])
def test_bounds_hold_the_optimum(method: str) -> None:
    random = np.random.default_rng(3)
    spec, sites = RobustSpec(0.0, 1.0, loss=get_loss("logistic")), {}
    for g in range(3):
        features = random.uniform(size=(25, 2))
        labels = np.where(features.sum(axis=1) + 0.5 * random.normal(size=25) > 0.9 + 0.1 * g, 1.0, -1.0)
        sites[f"s{g}"] = SiteProblem(features, labels, spec)
    optimum = train(sites, gap=1e-6).certificate
    run = train(sites, method=method, parameters={"step_size": 1.0}, max_rounds=25)
    assert run.certificate.lower <= optimum.upper and optimum.lower <= run.certificate.upper < 0.7
    assert METHODS[method].ignores_radius


def test_a_network_learns() -> None:
    random = np.random.default_rng(0)
    sites = {}
    for g in range(5):
        features = random.normal(size=(40, 2))
        sites[f"s{g}"] = (features, (features[:, 0] * features[:, 1] > 0).astype(float))
    objective = NetworkObjective(2, hidden=20, dropout=0.1)
    run = train_local(objective, sites, parameters={"step_size": 0.3, "batch": 0.25}, rounds=40)
    right = [(objective.scores(run.weights, x).argmax(axis=1) == y).mean() for x, y in sites.values()]
    assert np.mean(right) > 0.85 and run.site_losses[-1].mean() < 0.5 * run.site_losses[0].mean()


def test_refused_in_one_line() -> None:
    with pytest.raises(ProblemError, match="parameter clients must be at most the number of sites, 3, got 4"):
        train_local(SQUARES, SITES, parameters={"clients": 4})
    with pytest.raises(ProblemError, match="method level-bundle takes no local steps"):
        train_local(SQUARES, SITES, method="level-bundle")
    with pytest.raises(ProblemError, match="the squared loss has no worst case over a ball"):
        spec = RobustSpec(0.0, 1.0, loss=Squared(), fit_intercept=False)
        train({name: SiteProblem(x, y, spec) for name, (x, y) in SITES.items()})
