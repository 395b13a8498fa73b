"""DRFA, DRFLM, Stochastic AFL and FedDRO: recursions by hand, draws, bounds against the optimum, absent sites."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models.basics import FloatArray, ProblemError
from models.losses.catalogue import get_loss
from models.methods.catalogue import check_parameters, get_method
from models.methods.local_sgd.feddro import kl_risk
from models.methods.local_sgd.objectives.linear import LinearObjective
from models.methods.local_sgd.objectives.network import NetworkObjective
from models.methods.local_sgd.sampled_sites import SampledRound
from models.problem import RobustSpec, SiteProblem
from models.simulation.federation import server_problem, train
from models.simulation.local_training import train_local
from models.site_ambiguity.ball import WHOLE_SIMPLEX, MixtureBall

Sites = dict[str, SiteProblem]
NAMES = ["drfa", "drflm", "safl", "feddro"]


def three_sites(loss: str = "logistic", seed: int = 0) -> Sites:
    random = np.random.default_rng(seed)
    truth, sites = random.normal(size=3), {}
    for g, n in enumerate((24, 18, 12)):
        features = random.uniform(size=(n, 3)) + 0.2 * g
        noisy = (features - 0.6) @ (truth + 0.4 * g * random.normal(size=3)) + 0.4 * random.normal(size=n)
        labels = np.where(noisy > 0, 1.0, -1.0)
        sites[f"site-{g}"] = SiteProblem(features, labels, RobustSpec(0.0, 1.0, loss=get_loss(loss)))
    return sites


def losses_at(weights: FloatArray, sites: Sites) -> FloatArray:
    return np.array([LinearObjective(s.spec.loss).loss(weights, s.features, s.labels) for s in sites.values()])


def gradient_at(weights: FloatArray, site: SiteProblem) -> FloatArray:
    return LinearObjective(site.spec.loss).loss_and_gradient(weights, site.features, site.labels)[1]


class Run:
    """A run in this process, its state open to the test."""

    def __init__(self, name: str, sites: Sites, **parameters: float) -> None:
        self.sites, self.method = sites, get_method(name)
        self.problem = server_problem(sites, None, self.method, parameters, 1e-9)
        self.server: Any = self.method.server
        self.state = self.server.init(self.problem)

    def exchange(self, absent: frozenset[str] = frozenset()) -> None:
        messages = self.server.messages(self.state, self.problem)
        answers = {
            name: self.method.site.answer(site, messages[name], self.problem.parameters)
            for name, site in self.sites.items()
            if name not in absent
        }
        shapes = self.server.answer_shapes(self.problem.dimension)
        for answer in answers.values():
            assert {key: array.shape for key, array in answer.items()} == shapes
        self.state = self.server.step(self.state, self.problem, answers)


def test_drfa_is_the_recursion_of_the_paper() -> None:
    """Full batches, all sites: w and lambda by hand for three rounds; the snapshot is that of the drawn step."""
    sites, tau, step, climb = three_sites(), 4, 0.3, 0.05
    run = Run("drfa", sites, batch=1.0, local_steps=tau, step_size=step, mixture_step=climb, seed=3)
    w, mixture = np.zeros(4), np.full(3, 1 / 3)
    for number in range(3):
        snapshot_step = SampledRound.draw(run.problem, mixture, float(number), tau).snapshot_step
        ends, snapshots = [], []
        for site in sites.values():
            u = w
            for t in range(1, tau + 1):
                u = u - step * gradient_at(u, site)
                if t == snapshot_step:
                    snapshots.append(u)
            ends.append(u)
        w, snapshot = mixture @ np.array(ends), mixture @ np.array(snapshots)
        pushed = mixture + climb * tau * losses_at(snapshot, sites)
        mixture = np.maximum(pushed - (pushed.sum() - 1) / 3, 0)  # no entry gets below 0 here
        run.exchange()
        run.exchange()
        np.testing.assert_allclose(run.state.memory["point"], w, atol=1e-12)
        np.testing.assert_allclose(run.state.memory["lambda"], mixture, atol=1e-12)
    assert mixture.min() > 0


def test_stochastic_afl_descends_and_climbs_at_the_same_point() -> None:
    sites = three_sites()
    run = Run("safl", sites, batch=1.0, step_size=0.5, mixture_step=0.1)
    w, mixture = np.zeros(4), np.full(3, 1 / 3)
    for _ in range(3):
        pushed = mixture + 0.1 * losses_at(w, sites)
        w = w - 0.5 * sum(m * gradient_at(w, site) for m, site in zip(mixture, sites.values(), strict=True))
        mixture = pushed - (pushed.sum() - 1) / 3
        run.exchange()
        np.testing.assert_allclose(run.state.memory["point"], w, atol=1e-12)
        np.testing.assert_allclose(run.state.memory["lambda"], mixture, atol=1e-12)


def test_sites_are_drawn_as_the_paper_says() -> None:
    """Steps by lambda with replacement, losses evenly without, the snapshot evenly out of tau; G / m for each loss."""
    problem = Run("drfa", three_sites(), clients=2).problem
    mixture, draws = np.array([0.7, 0.3, 0.0]), 4000
    rounds = [SampledRound.draw(problem, mixture, float(number), 5) for number in range(draws)]
    stepping = np.array([each.stepping for each in rounds])
    np.testing.assert_allclose(stepping.sum(axis=1), 1.0)
    assert set(np.unique(stepping)) == {0.0, 0.5, 1.0}
    np.testing.assert_allclose(stepping.mean(axis=0), mixture, atol=0.03)
    telling = np.array([each.telling for each in rounds])
    assert set(np.unique(telling)) == {0.0, 1.5}
    assert (np.count_nonzero(telling, axis=1) == 2).all()
    np.testing.assert_allclose(telling.mean(axis=0), 1.0, atol=0.05)
    counts = np.bincount([each.snapshot_step for each in rounds], minlength=6)[1:] / draws
    np.testing.assert_allclose(counts, 0.2, atol=0.03)


def test_a_site_that_is_not_drawn_tells_its_loss_and_takes_no_step() -> None:
    run = Run("drfa", three_sites(), clients=1, seed=5)
    messages = run.server.messages(run.state, run.problem)
    assert sorted(float(m["step_size"]) > 0 for m in messages.values()) == [False, False, True]
    idle = next(name for name, m in messages.items() if m["step_size"] == 0)
    answer = run.method.site.answer(run.sites[idle], messages[idle], run.problem.parameters)
    np.testing.assert_array_equal(answer["local_point"], messages[idle]["point"])
    assert float(answer["risk"]) == pytest.approx(np.log(2.0))


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize(
    ("name", "more"),
    [("drfa", {}), ("drfa", {"clients": 2.0}), ("drflm", {"mixup_alpha": 0.2, "mixup_beta": 0.2}), ("safl", {})],
)
def test_bounds_hold_for_the_worst_plant(name: str, more: dict[str, float], loss: str) -> None:
    sites = three_sites(loss)
    optimum = train(sites, mixture=WHOLE_SIMPLEX, gap=1e-7).certificate
    found = train(sites, method=name, parameters={"step_size": 2.0, "batch": 0.5, **more}, max_rounds=50, gap=1e-9)
    for each in found.history:
        assert each.lower <= optimum.upper * (1 + 1e-7)
        assert each.upper >= optimum.lower * (1 - 1e-7)
    assert found.certificate.upper == pytest.approx(losses_at(found.weights, sites).max())
    assert found.certificate.upper < 0.99 * losses_at(np.zeros(4), sites).max()


def test_drfa_comes_near_the_optimum_of_the_set_it_was_given() -> None:
    """The whole simplex, a ball around the weights, and a capped simplex; each against the level bundle."""
    sites = three_sites("hinge", seed=2)
    numbers = {"step_size": 1.0, "step_power": 0.0, "batch": 1.0, "local_steps": 5.0, "mixture_step": 0.05}
    capped = MixtureBall("linf", 0.5 / (0.5 * 3))
    for own, problem, more in (
        (MixtureBall(), WHOLE_SIMPLEX, {}),
        (MixtureBall("l2", 0.2), MixtureBall("l2", 0.2), {}),
        (MixtureBall(), capped, {"worst_share": 0.5}),
    ):
        optimum = train(sites, mixture=problem, gap=1e-6).certificate.upper
        found = train(sites, method="drfa", mixture=own, parameters={**numbers, **more}, max_rounds=80, gap=1e-6)
        assert optimum * (1 - 1e-6) <= found.certificate.upper <= optimum * 1.03
        assert found.certificate.lower <= optimum * (1 + 1e-6)
        assert sum(found.mixture_weights.values()) == pytest.approx(1.0)
        worst = np.array(list(found.mixture_weights.values())) @ losses_at(found.weights, sites)
        assert worst == pytest.approx(found.certificate.upper, rel=1e-9)


@pytest.mark.parametrize("over_rows", [0.0, 1.0])
def test_feddro_solves_its_problem_and_brackets_it(over_rows: float) -> None:
    sites, mu = three_sites("logistic", seed=1), 0.5
    objective = LinearObjective(get_loss("logistic"))

    def value(w: FloatArray) -> float:
        if over_rows:
            rows = [objective.row_losses(w, s.features, s.labels)[0] for s in sites.values()]
            return float(mu * np.log(np.mean([np.exp(row / mu).mean() for row in rows])))
        return float(mu * np.log(np.exp(losses_at(w, sites) / mu).mean()))

    from scipy.optimize import minimize

    optimum = minimize(value, np.zeros(4), tol=1e-12).fun
    parameters = {"temperature": mu, "over_rows": over_rows, "step_size": 0.5, "batch": 1.0, "tracking": 1.0}
    found = train(sites, method="feddro", parameters=parameters, max_rounds=80, gap=1e-6)
    for each in found.history:
        assert each.lower <= optimum * (1 + 1e-7)
        assert each.upper >= optimum * (1 - 1e-7)
    assert found.certificate.upper == pytest.approx(value(found.weights), rel=1e-9)
    assert found.certificate.upper <= optimum * 1.01
    assert sum(found.mixture_weights.values()) == pytest.approx(1.0)


def test_a_step_of_feddro_with_the_exact_inner_value_is_a_gradient_step_of_its_objective() -> None:
    sites, w = three_sites(), np.array([0.3, -0.5, 0.2, 0.1])
    run = Run("feddro", sites, batch=1.0, local_steps=1, step_size=1.0)
    shares = np.full(3, 1 / 3)

    def value(at: FloatArray) -> float:
        rows = [LinearObjective(s.spec.loss).row_losses(at, s.features, s.labels)[0] for s in sites.values()]
        return float(np.log(np.mean([np.exp(row).mean() for row in rows])))

    run.state = replace(run.state, memory={**run.state.memory, "point": w})
    run.exchange()  # asks for the inner value only
    assert float(run.state.memory["inner"]) == pytest.approx(value(w), rel=1e-12)
    np.testing.assert_array_equal(run.state.memory["point"], w)
    run.exchange()
    slopes = [(value(w + 1e-6 * e) - value(w - 1e-6 * e)) / 2e-6 for e in np.eye(4)]
    np.testing.assert_allclose(w - run.state.memory["point"], slopes, atol=1e-8)
    assert kl_risk(np.array([1.0, 2.0, 3.0]), shares, 1e-3) == pytest.approx(3.0, abs=2e-3)


@pytest.mark.parametrize("name", NAMES)
def test_a_resumed_run_is_the_same_run_and_absent_sites_do_not_stop_it(name: str) -> None:
    straight, resumed = Run(name, three_sites(), seed=7), Run(name, three_sites(), seed=7)
    for number in range(7):
        away = frozenset({"site-1"}) if number in (2, 3) else frozenset()
        straight.exchange(away)
        resumed.exchange(away)
        resumed.state = resumed.server.unpack(resumed.server.pack(resumed.state))
        assert straight.server.certificate(straight.state).fresh_weight == pytest.approx(2 / 3 if away else 1.0)
    one, other = straight.server.pack(straight.state), resumed.server.pack(resumed.state)
    assert set(one) == set(other)
    for key, array in one.items():
        np.testing.assert_array_equal(array, other[key])


@pytest.mark.parametrize("name", NAMES)
def test_a_repeated_message_gets_the_same_answer(name: str) -> None:
    run = Run(name, three_sites())
    run.exchange()
    messages = run.server.messages(run.state, run.problem)
    site = run.sites["site-0"]
    first, second = (run.method.site.answer(site, messages["site-0"], run.problem.parameters) for _ in range(2))
    for key, array in first.items():
        np.testing.assert_array_equal(array, second[key])


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("drflm", {"mixup_alpha": 0.0}, "parameter mixup_alpha of method drflm must be above 0"),
        ("drflm", {"mixup_beta": -1.0}, "parameter mixup_beta of method drflm must be above 0"),
        ("drflm", {"mixup_ratio": 1.5}, "parameter mixup_ratio of method drflm must be at or above 0 and at most 1"),
        ("drflm", {"mixup_ratio": -0.5}, "parameter mixup_ratio of method drflm must be at or above 0 and at most 1"),
        ("drfa", {"clients": 1.5}, "parameter clients of method drfa must be a whole number"),
        ("drfa", {"worst_share": 1.1}, "parameter worst_share of method drfa must be at or above 0 and at most 1"),
        ("feddro", {"temperature": 0.0}, "parameter temperature of method feddro must be above 0"),
    ],
)
def test_parameters_without_meaning_are_refused_in_one_line(name: str, given: dict[str, float], text: str) -> None:
    with pytest.raises(ProblemError) as refusal:
        check_parameters(get_method(name), given)
    assert text in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", ["drfa", "drflm", "safl"])
def test_more_clients_than_there_are_is_refused(name: str) -> None:
    with pytest.raises(ProblemError, match="clients.* 3.* 4"):
        train(three_sites(), method=name, parameters={"clients": 4.0})


@pytest.mark.parametrize("name", NAMES)
def test_networks_are_trained_by_the_same_halves(name: str) -> None:
    random = np.random.default_rng(0)
    rows = {}
    for g in range(3):
        features = random.normal(size=(40, 2)) + [g - 1.0, 0.0]
        rows[str(g)] = (features, (np.abs(features).sum(axis=1) > 1.5).astype(float))
    more = {"over_rows": 0.0} if name == "feddro" else {}
    found = train_local(
        NetworkObjective(2, hidden=16, dropout=0.0),
        rows,
        method=name,
        rounds=60 if name != "safl" else 300,
        parameters={"step_size": 0.3, **more},
    )
    assert found.site_losses[-1].max() < 0.6 * found.site_losses[0].max()


def test_feddro_over_rows_refuses_a_network() -> None:
    rows = {"a": (np.zeros((4, 2)), np.array([0.0, 1.0, 0.0, 1.0]))}
    with pytest.raises(ProblemError, match="linear model; set over_rows to 0"):
        train_local(NetworkObjective(2, hidden=3), rows, method="feddro", rounds=1)
