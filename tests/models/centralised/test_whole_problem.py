"""The reference of the whole federated problem: its value is that of its own weights, and its limits are known ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.basics import FloatArray, ProblemError
from models.geometry.supports import BoxSupport, PolytopeSupport, Support
from models.losses.catalogue import LOSS_NAMES, get_loss
from models.problem import RobustSpec, SiteProblem
from models.simulation.federation import train
from models.site_ambiguity.ball import MixtureBall
from models.worst_case.risk import site_risk

pytest.importorskip("cvxpy", reason="the reference needs the extra 'reference'")

from tests.oracles.whole_problem import solve_whole  # noqa: E402

CENTRE = np.array([0.5, 0.3, 0.2])
PIECEWISE = ("hinge", "epsilon_insensitive", "pinball")
CASES = [(name, "free") for name in LOSS_NAMES] + [(name, kind) for name in PIECEWISE for kind in ("box", "polytope")]


def _sites(name: str, kind: str, norm: Any, *, intercept: bool = True, radius: float = 0.05) -> list[SiteProblem]:
    random, loss = np.random.default_rng(5), get_loss(name)
    regression = loss.task == "regression"
    support: Support | None = None
    if kind == "box":
        support = BoxSupport(np.zeros(2), np.ones(2), 0.0, 1.0)
    if kind == "polytope":
        walls = np.vstack([np.eye(3), -np.eye(3), [[1.0, 1.0, 0.0]]])
        limits = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.9])
        if regression:
            support = PolytopeSupport(walls[:, :2], limits, walls[:, 2])
        else:
            support = PolytopeSupport(walls[[0, 1, 3, 4, 6], :2], limits[[0, 1, 3, 4, 6]])
    sites = []
    for s in range(3):
        x = random.uniform(0.0, 0.9, (10, 2))
        y = np.clip(0.2 + x @ np.array([0.5, -0.3]) + 0.1 * random.normal(size=10) + 0.1 * s, 0.0, 1.0)
        labels = y if regression else np.where(y > 0.35, 1.0, -1.0)
        sites.append(SiteProblem(x, labels, RobustSpec(radius, 0.7, norm, support, intercept, loss)))
    return sites


def _risks(sites: list[SiteProblem], weights: FloatArray) -> FloatArray:
    return np.array([site_risk(weights, site).value for site in sites])


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_its_value_is_the_worst_mixture_at_its_weights_and_the_least_near_by(name: str, kind: str) -> None:
    """The mixture is in the ball, attains the value, and no weights near by do better under the same mixture."""
    norm, p = {"free": ("l2", "l1"), "box": ("l1", "l2"), "polytope": ("linf", "linf")}[kind]
    sites = _sites(name, kind, norm, intercept=name != "pinball")
    ball = MixtureBall(p, 0.2)  # type: ignore[arg-type]
    value, weights, mixture = solve_whole(sites, list(CENTRE), ball)
    assert mixture.sum() == pytest.approx(1.0, abs=1e-12)
    away = mixture - CENTRE
    assert np.linalg.norm(away, {"l1": 1, "l2": 2, "linf": np.inf}[p]) <= ball.radius + 1e-6
    risks = _risks(sites, weights)
    assert mixture @ risks == pytest.approx(value, rel=1e-7)
    random = np.random.default_rng(0)
    for step in (1e-3, 0.1) if kind == "polytope" else (1e-4, 1e-3, 1e-2, 0.1, 1.0):
        other = _risks(sites, weights + step * random.normal(size=weights.shape))
        assert mixture @ other >= value * (1 - 1e-7)


@pytest.mark.parametrize("p", ["l1", "l2", "linf"])
def test_no_ball_is_fixed_weights_and_a_large_one_the_worst_site(p: Any) -> None:
    sites = _sites("logistic", "free", "l2")
    fixed = solve_whole(sites, list(CENTRE))
    small = solve_whole(sites, list(CENTRE), MixtureBall(p, 1e-7))
    assert small.value == pytest.approx(fixed.value, rel=1e-5)
    np.testing.assert_allclose(fixed.mixture, CENTRE, atol=1e-7)
    worst = solve_whole(sites, list(CENTRE), MixtureBall(p, 2.0))
    assert worst.value == pytest.approx(_risks(sites, worst.weights).max(), rel=1e-7)
    middle = solve_whole(sites, list(CENTRE), MixtureBall(p, 0.1))
    assert fixed.value < middle.value < worst.value


@pytest.mark.parametrize("name", LOSS_NAMES)
def test_radius_zero_is_the_empirical_problem_and_one_site_the_central_one(name: str) -> None:
    sites = _sites(name, "free", "l2", radius=0.0)
    found = solve_whole(sites)
    loss = get_loss(name)
    means = []
    for site in sites:
        scores = site.features @ found.weights[:2] + found.weights[2]
        z = site.labels * scores if loss.task == "classification" else scores - site.labels
        means.append(float(loss.value(z).mean()))
    assert np.mean(means) == pytest.approx(found.value, rel=1e-7, abs=1e-9)
    spec = sites[0].spec
    rows = np.vstack([site.features for site in sites])
    pooled = SiteProblem(rows, np.concatenate([site.labels for site in sites]), spec)
    assert solve_whole([pooled]).value == pytest.approx(found.value, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("name", PIECEWISE)
def test_the_level_bundle_reaches_it_on_a_polytope(name: str) -> None:
    sites = _sites(name, "polytope", "l2")
    ball = MixtureBall("l2", 0.2)
    optimum = solve_whole(sites, None, ball).value
    found = train({str(s): site for s, site in enumerate(sites)}, method="level-bundle-plain", gap=1e-6, mixture=ball)
    assert found.certificate.gap <= 1e-6
    assert found.certificate.upper == pytest.approx(optimum, rel=1e-5)
    assert found.certificate.lower <= optimum * (1 + 1e-8)


def test_refuses_weights_that_are_no_mixture() -> None:
    sites = _sites("hinge", "free", "l2")
    for weights in ([0.5, 0.5], [0.5, 0.6, -0.1], [0.5, 0.5, 0.5]):
        with pytest.raises(ProblemError, match="site weights must be 3 numbers"):
            solve_whole(sites, weights)
    with pytest.raises(ProblemError, match="at least one site"):
        solve_whole([])


def test_the_smooth_hinge_needs_its_multiplier_free() -> None:
    """DRFL Corollary B.5 bounds phi below by 0, which overstates the loss where a row is far on the wrong side."""
    margin = -2.0
    phi = np.linspace(-5.0, 5.0, 100001)
    height = 0.5 * np.square(phi - margin) + np.maximum(1.0 - phi, 0.0)
    exact = float(get_loss("smooth_hinge").value(np.array([margin]))[0])
    assert height.min() == pytest.approx(exact, abs=1e-8)
    assert height[phi >= 0].min() == pytest.approx(3.0, abs=1e-8)
    assert exact == 2.5
