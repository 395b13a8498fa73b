"""Training against the worst mixture of the sites: the whole optimum, the ends of the radius, absent sites."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from models.basics import FloatArray, ProblemError, TransportNorm
from models.geometry.norms import vector_norm
from models.losses.catalogue import get_loss
from models.methods.catalogue import get_method
from models.problem import ServerProblem, SiteProblem, Status
from models.simulation.federation import train
from models.site_ambiguity.ball import MixtureBall, MixtureNorm, worst_mixture
from models.worst_case.risk import site_risk

pytest.importorskip("cvxpy", reason="the oracle of these tests needs the extra 'reference'")

Sites = dict[str, SiteProblem]
MakeSites = Callable[..., Sites]
NORMS: list[TransportNorm] = ["l1", "l2", "linf"]
RUNS = [
    *(("level-bundle", transport, over_sites, 0.3) for transport in NORMS for over_sites in NORMS),
    *(("level-bundle", "l2", over_sites, radius) for over_sites in NORMS for radius in (0.01, 2.0)),
    *(("level-bundle-plain", transport, over_sites, 0.3) for transport, over_sites in zip(NORMS, NORMS, strict=True)),
]
WEIGHTS = {"site-0": 0.2, "site-1": 0.5, "site-2": 0.3}


def _optimum(sites: Sites, mixture: MixtureBall, weights: dict[str, float] | None = None) -> float:
    from tests.oracles.whole_problem import solve_whole

    shares = None if weights is None else [weights[name] for name in sites]
    return solve_whole(list(sites.values()), shares, mixture).value


def _worst(weights: FloatArray, sites: Sites, mixture: MixtureBall, shares: dict[str, float]) -> float:
    risks = np.array([site_risk(weights, site).value for site in sites.values()])
    return worst_mixture(risks, np.array([shares[name] for name in sites]), mixture).value


def _with_loss(sites: Sites, name: str, **numbers: float) -> Sites:
    """The same rows under another loss; for a regression loss the targets are a noisy plane in [0, 1]."""
    loss = get_loss(name, **numbers)
    random = np.random.default_rng(5)
    changed = {}
    for site_id, site in sites.items():
        labels = site.labels
        if loss.task == "regression":
            noise = 0.1 * random.normal(size=labels.shape[0])
            labels = np.clip(site.features @ np.linspace(-0.4, 0.6, site.features.shape[1]) + 0.4 + noise, 0.0, 1.0)
        changed[site_id] = SiteProblem(site.features, labels, replace(site.spec, loss=loss))
    return changed


@pytest.mark.parametrize(("name", "transport", "over_sites", "radius"), RUNS)
def test_bundle_reaches_the_whole_optimum(
    make_sites: MakeSites, name: str, transport: TransportNorm, over_sites: MixtureNorm, radius: float
) -> None:
    sites, ball = make_sites(norm=transport), MixtureBall(over_sites, radius)
    run = train(sites, weights=WEIGHTS, mixture=ball, method=name, gap=1e-6, max_rounds=120)
    assert run.status is Status.CERTIFIED
    optimum = _optimum(sites, ball, WEIGHTS)
    assert run.certificate.upper == pytest.approx(optimum, rel=1e-5)
    for each in run.history:
        assert each.lower <= optimum * (1 + 1e-8)
        assert each.upper >= optimum * (1 - 1e-8)
    assert run.certificate.upper == pytest.approx(_worst(run.weights, sites, ball, WEIGHTS), rel=1e-12)
    mixture = np.array(list(run.mixture_weights.values()))
    risks = np.array([run.site_risks[site] for site in run.mixture_weights])
    assert mixture.sum() == pytest.approx(1.0) and mixture.min() >= 0
    assert vector_norm(mixture - np.array(list(WEIGHTS.values())), over_sites) <= radius + 1e-12
    assert mixture @ risks == pytest.approx(run.certificate.upper, rel=1e-12)


@pytest.mark.parametrize(
    ("kind", "over_sites"),
    [
        ("box", "l2"),
        ("box", "linf"),
        ("radius 0", "l1"),
        ("radius 0", "l2"),
        ("no intercept", "l2"),
        ("one site", "l2"),
    ],
)
def test_bundle_reaches_the_whole_optimum_of_other_problems(
    make_sites: MakeSites, kind: str, over_sites: MixtureNorm
) -> None:
    sites = make_sites(
        box=kind == "box", radius=0.0 if kind == "radius 0" else 0.02, intercept=kind != "no intercept",
        sizes=(30,) if kind == "one site" else (30, 20, 12),
    )
    ball = MixtureBall(over_sites, 0.2)
    run = train(sites, mixture=ball, gap=1e-6, max_rounds=120)
    assert run.status is Status.CERTIFIED
    assert run.certificate.upper == pytest.approx(_optimum(sites, ball), rel=1e-5)


@pytest.mark.parametrize(
    ("loss", "numbers", "over_sites", "radius"),
    [
        ("smooth_hinge", {}, "l2", 0.2),
        ("logistic", {}, "l1", 0.3),
        ("logistic", {}, "l1", 0.0),
        ("huber", {"epsilon": 0.1}, "l2", 0.2),
        ("huber", {}, "linf", 2.0),
        ("epsilon_insensitive", {"epsilon": 0.05}, "linf", 0.1),
        ("pinball", {"quantile": 0.9}, "l2", 0.2),
        ("pinball", {}, "l1", 0.0),
    ],
)
def test_bundle_reaches_the_whole_optimum_for_every_loss(
    make_sites: MakeSites, loss: str, numbers: dict[str, float], over_sites: MixtureNorm, radius: float
) -> None:
    sites, ball = _with_loss(make_sites(), loss, **numbers), MixtureBall(over_sites, radius)
    run = train(sites, mixture=ball, gap=1e-6, max_rounds=120)
    assert run.status is Status.CERTIFIED
    assert run.certificate.upper == pytest.approx(_optimum(sites, ball), rel=1e-5)
    assert run.n_rounds < 60


def test_radius_0_is_training_with_fixed_weights(make_sites: MakeSites) -> None:
    """To the last bit."""
    sites = make_sites()
    fixed = train(sites, weights=WEIGHTS, gap=1e-3)
    same = train(sites, weights=WEIGHTS, mixture=MixtureBall("linf", 0.0), gap=1e-3)
    assert (fixed.weights == same.weights).all() and fixed.history == same.history
    assert same.mixture_weights == WEIGHTS


def test_a_wide_ball_is_the_worst_plant(make_sites: MakeSites) -> None:
    """Whatever the norm and the weights."""
    sites, values = make_sites(), []
    balls: list[tuple[MixtureNorm, dict[str, float] | None]] = [("l1", WEIGHTS), ("linf", None)]
    for over_sites, weights in balls:
        run = train(sites, weights=weights, mixture=MixtureBall(over_sites, 5.0), gap=1e-6)
        assert run.certificate.upper == pytest.approx(max(run.site_risks.values()), rel=1e-12)
        values.append(run.certificate.upper)
    assert values[0] == pytest.approx(values[1], rel=3e-6)


def test_wider_balls_have_greater_risks(make_sites: MakeSites) -> None:
    sites = make_sites()
    values = [train(sites, mixture=MixtureBall("l2", radius), gap=1e-4).certificate for radius in (0.0, 0.1, 1.0)]
    for narrow, wide in zip(values, values[1:], strict=False):
        assert narrow.lower <= wide.upper


def test_a_site_without_weight_can_be_in_the_worst_mixture(make_sites: MakeSites) -> None:
    sites, ball = make_sites(), MixtureBall("l2", 0.2)
    weights = {"site-0": 0.6, "site-1": 0.4, "site-2": 0.0}
    run = train(sites, weights=weights, mixture=ball, gap=1e-6)
    assert run.status is Status.CERTIFIED
    assert run.certificate.upper == pytest.approx(_optimum(sites, ball, weights), rel=1e-5)


def test_subgradient_method_steps_against_the_worst_mixture(make_sites: MakeSites) -> None:
    sites, ball, shares = make_sites(), MixtureBall("l2", 0.3), np.full(3, 1 / 3)
    point = train(sites, mixture=ball, method="fdr-sm", parameters={"step_size": 2.0}, max_rounds=1).last_point
    for number in (2, 3):
        run = train(sites, mixture=ball, method="fdr-sm", parameters={"step_size": 2.0}, max_rounds=number)
        found = [site_risk(point, site) for site in sites.values()]
        mixture = worst_mixture(np.array([each.value for each in found]), shares, ball).weights
        assert np.abs(mixture - shares).max() > 0.1
        point = point - 2.0 / number * (mixture @ np.stack([each.subgradient for each in found]))
        np.testing.assert_allclose(run.last_point, point, atol=1e-12)


def test_absent_sites_enter_by_their_cuts(make_sites: MakeSites, server_view: Callable[..., ServerProblem]) -> None:
    """A site that answers some rounds and then is gone: bounds of the problem with its cut model."""
    sites, method = make_sites(), get_method("level-bundle")
    server = method.server
    problem = replace(server_view(sites, dict(method.parameters), 1e-5), mixture=MixtureBall("l2", 0.3))
    state = server.init(problem)
    for number in range(60):
        messages = server.messages(state, problem)
        here = [name for name in sites if number < 6 or name != "site-2"]
        answers = {name: method.site.answer(sites[name], messages[name], problem.parameters) for name in here}
        state = server.step(state, problem, answers)
        packed = server.pack(state)
        assert all(
            np.array_equal(array, server.pack(server.unpack(packed))[key], equal_nan=True)
            for key, array in packed.items()
        )
        if server.status(state, problem) is not Status.CONTINUE:
            break
    certificate = server.certificate(state)
    assert server.status(state, problem) is Status.CERTIFIED
    assert certificate.fresh_weight == pytest.approx(2 / 3)
    # The cut model of the absent site is at or below its risk, so the bounds are those of an easier problem.
    assert certificate.lower <= _optimum(sites, problem.mixture) * (1 + 1e-8)
    mixture = server.mixture_weights(state, problem)
    assert sum(mixture.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["fdr-admm", "fdr-admm-reg", "fdr-admm-sc"])
def test_methods_with_fixed_weights_refuse_a_ball(make_sites: MakeSites, name: str) -> None:
    with pytest.raises(ProblemError, match=r"radius over the sites must be 0, got 0.1; .* are .*level-bundle") as error:
        train(make_sites(), method=name, mixture=MixtureBall("l2", 0.1))
    assert "\n" not in str(error.value)
