"""All methods against the CVXPY optimum: bounds in every round, special cases, absent sites, exact resumption."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models.basics import FloatArray, ProblemError, TransportNorm
from models.cuts.certificate import CertificateError
from models.methods.catalogue import METHODS, check_parameters, get_method
from models.methods.splitting.consensus_admm import smallest_ridge
from models.problem import Certificate, ServerProblem, SiteProblem, SiteTerms, Status
from models.worst_case.risk import site_risk

pytest.importorskip("cvxpy", reason="the oracle of these tests needs the extra 'reference'")

Sites = dict[str, SiteProblem]
MakeSites = Callable[..., Sites]
ServerView = Callable[..., ServerProblem]
NORMS: list[TransportNorm] = ["l1", "l2", "linf"]
BUNDLES = ["level-bundle", "level-bundle-plain"]


class Trained:
    """A run in this process that keeps the certificate of every round."""

    def __init__(
        self,
        name: str,
        sites: Sites,
        view: ServerView,
        *,
        rounds: int = 120,
        gap: float = 1e-6,
        absent: Mapping[int, set[str]] | None = None,
        **parameters: float,
    ) -> None:
        method = get_method(name)
        self.server: Any = method.server
        self.problem = view(sites, check_parameters(method, parameters), gap)
        self.state = self.server.init(self.problem)
        self.certificates: list[Certificate] = []
        for number in range(1, rounds + 1):
            messages = self.server.messages(self.state, self.problem)
            here = {each for each in sites if each not in (absent or {}).get(number, set())}
            answers = {each: method.site.answer(sites[each], messages[each], self.problem.parameters) for each in here}
            shapes = self.server.answer_shapes(self.problem.dimension, self.problem.n_swings, self.problem.parameters)
            for answer in answers.values():
                assert {key: array.shape for key, array in answer.items()} == shapes
                assert all(array.dtype == np.float64 for array in answer.values())
            self.state = self.server.step(self.state, self.problem, answers)
            self.certificates.append(self.server.certificate(self.state))
            if self.status is not Status.CONTINUE:
                break

    @property
    def status(self) -> Status:
        return Status(self.server.status(self.state, self.problem))

    @property
    def weights(self) -> FloatArray:
        return np.asarray(self.server.weights(self.state))


OPTIMA: dict[tuple[object, ...], float] = {}
"""Optima by the problem: several methods are held to the same one."""


def _optimum(sites: Sites) -> float:
    from tests.oracles.training import reference_training

    problem = tuple((site.features.tobytes(), site.labels.tobytes(), repr(site.spec)) for site in sites.values())
    if problem not in OPTIMA:
        OPTIMA[problem] = reference_training(list(sites.values()), [1 / len(sites)] * len(sites))[0]
    return OPTIMA[problem]


def _risk(weights: FloatArray, sites: Sites) -> float:
    return float(np.mean([site_risk(weights, site).value for site in sites.values()]))


@pytest.mark.parametrize("name", BUNDLES)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["ball", "box", "radius 0", "labels trusted"])
def test_bundle_reaches_the_optimum_and_brackets_it(
    make_sites: MakeSites, server_view: ServerView, name: str, norm: TransportNorm, intercept: bool, kind: str
) -> None:
    sites = make_sites(
        norm=norm, intercept=intercept, box=kind == "box", radius=0.0 if kind == "radius 0" else 0.02,
        flip_cost=math.inf if kind == "labels trusted" else 1.0,
    )
    run, optimum = Trained(name, sites, server_view), _optimum(sites)
    for certificate in run.certificates:
        assert certificate.lower <= optimum * (1 + 1e-8)
        assert certificate.upper >= optimum * (1 - 1e-8)
    assert run.status is Status.CERTIFIED
    assert _risk(run.weights, sites) == pytest.approx(run.certificates[-1].upper, rel=1e-12)
    assert run.certificates[-1].upper == pytest.approx(optimum, rel=2e-6)
    risks = run.server.site_risks(run.state, run.problem)
    assert risks == {each: pytest.approx(site_risk(run.weights, site).value) for each, site in sites.items()}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("name", "flip_cost"), [("fdr-admm", 1.0), ("fdr-admm-reg", math.inf)])
def test_admm_converges_and_brackets_the_optimum(
    make_sites: MakeSites, server_view: ServerView, name: str, flip_cost: float, norm: TransportNorm
) -> None:
    sites = make_sites(norm=norm, intercept=False)
    run = Trained(name, sites, server_view, rounds=150, gap=1e-3, rho=0.02)
    optimum = _optimum({k: replace(s, spec=replace(s.spec, label_flip_cost=flip_cost)) for k, s in sites.items()})
    for certificate in run.certificates:
        assert certificate.lower <= optimum * (1 + 1e-8)
        assert certificate.upper >= optimum * (1 - 1e-8)
    assert run.status is Status.CERTIFIED
    assert run.certificates[-1].upper <= optimum * 1.002


def test_admm_is_the_recursion_of_the_paper(make_sites: MakeSites, server_view: ServerView) -> None:
    """Algorithm 2 by hand, the client step by CVXPY, from w = 0 and mu = 1."""
    import cvxpy as cp

    from tests.oracles.worst_case import minimise, risk_model

    sites = make_sites(sizes=(12, 9), n_features=3, intercept=False)
    for name, ridge in (("fdr-admm", 0.0), ("fdr-admm-sc", 0.3)):
        run = Trained(name, sites, server_view, rounds=4, rho=0.1, **({"tau": ridge} if ridge else {}))
        w, mu = np.zeros(3), np.ones((2, 3))
        visited = []
        for _ in range(4):
            visited.append(w)
            local = []
            for g, site in enumerate(sites.values()):
                v = cp.Variable(3)
                risk, constraints = risk_model(v, site)
                minimise(risk + ridge * cp.sum_squares(v) + 0.05 * cp.sum_squares(v - w + mu[g]), constraints)
                local.append(v.value)
            w = 0.5 * (np.array(local) + mu).sum(axis=0)
            mu = mu + np.array(local) - w
        np.testing.assert_allclose(run.state.evidence.points, visited, atol=1e-5)
        np.testing.assert_allclose(run.state.point, w, atol=1e-5)
        np.testing.assert_allclose(run.state.dual, mu, atol=1e-5)


def test_admm_sc_ends_at_the_optimum_of_its_own_problem(make_sites: MakeSites, server_view: ServerView) -> None:
    """Its certificate is of the problem without the ridge, so its gap stays open, and honestly so."""
    from tests.oracles.training import reference_training

    sites = make_sites(intercept=False)
    run = Trained("fdr-admm-sc", sites, server_view, rounds=80, rho=0.5, tau=0.1)
    _, ridged = reference_training(list(sites.values()), [1 / 3] * 3, [0.1] * 3)
    np.testing.assert_allclose(run.state.point, ridged, atol=1e-4)
    assert run.status is Status.CONTINUE
    assert run.certificates[-1].lower <= _optimum(sites) <= run.certificates[-1].upper


def test_smallest_ridge_is_the_theorems(make_sites: MakeSites, server_view: ServerView) -> None:
    def problem(weights: list[float]) -> ServerProblem:
        sites = tuple(SiteTerms(f"s{g}", weight, 0.1, 1.0) for g, weight in enumerate(weights))
        return ServerProblem(2, sites, "l2", False)

    assert smallest_ridge(problem([0.25] * 4), 0.1) == pytest.approx(1.8)
    assert smallest_ridge(problem([1.0]), 0.1) == 0.0
    for weights in ([0.5, 0.5], [0.2, 0.3, 0.5], [0.1, 0.2, 0.3, 0.25, 0.15]):
        n_sites, tau = len(weights), smallest_ridge(problem(weights), 1.0)
        bounds = [4 * weights[g - 1] * tau / (g * (2 * n_sites + 1 - g)) for g in range(1, n_sites)]
        bounds.append(4 * weights[-1] * tau / ((n_sites - 1) * (n_sites + 2)))
        assert min(bounds) == pytest.approx(1.0)
    with pytest.raises(ProblemError, match="every site weight above 0"):
        smallest_ridge(problem([1.0, 0.0]), 1.0)


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_sm_takes_the_papers_step_and_remembers_the_best(
    make_sites: MakeSites, server_view: ServerView, power: float
) -> None:
    sites = make_sites()
    run = Trained("fdr-sm", sites, server_view, rounds=60, step_size=2.0, step_power=power)
    points = run.state.evidence.points
    for t in (1, 2, 17, 42):
        mean = np.mean([site_risk(points[t - 1], site).subgradient for site in sites.values()], axis=0)
        np.testing.assert_allclose(points[t], points[t - 1] - 2.0 / t**power * mean, atol=1e-12)
    risks = [_risk(point, sites) for point in points]
    assert run.certificates[-1].upper == pytest.approx(min(risks))
    assert _risk(run.weights, sites) == pytest.approx(min(risks))
    optimum = _optimum(sites)
    assert all(c.lower <= optimum * (1 + 1e-8) and c.upper >= optimum * (1 - 1e-8) for c in run.certificates)
    assert min(risks) < 0.95 * risks[0]


@pytest.mark.parametrize("name", BUNDLES)
def test_order_of_sites_and_rows_changes_nothing(make_sites: MakeSites, server_view: ServerView, name: str) -> None:
    sites = make_sites()
    random = np.random.default_rng(0)
    turned = {}
    for each in reversed(sites):
        order = random.permutation(sites[each].labels.shape[0])
        turned[each] = replace(sites[each], features=sites[each].features[order], labels=sites[each].labels[order])
    first, second = Trained(name, sites, server_view), Trained(name, turned, server_view)
    assert first.certificates[-1].upper == pytest.approx(second.certificates[-1].upper, rel=2e-6)
    np.testing.assert_allclose(first.weights, second.weights, atol=1e-2)


@pytest.mark.parametrize("name", ["level-bundle", "level-bundle-plain", "fdr-admm"])
def test_one_site_equals_the_centralised_model(make_sites: MakeSites, server_view: ServerView, name: str) -> None:
    """Sites with the same rows are one site; so is one site alone."""
    alone = make_sites(sizes=(40,), intercept=False)
    optimum = _optimum(alone)
    twins = {"a": alone["site-0"], "b": alone["site-0"]}
    for sites in (alone, twins):
        run = Trained(name, sites, server_view, gap=1e-4, rounds=150, **({"rho": 0.02} if "admm" in name else {}))
        assert run.status is Status.CERTIFIED
        assert run.certificates[-1].upper == pytest.approx(optimum, rel=2e-4)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_resumed_run_is_the_undisturbed_run(make_sites: MakeSites, server_view: ServerView, name: str) -> None:
    """State packed, stored and unpacked after every round gives the same numbers to the last bit."""
    sites = make_sites()
    method, problem = get_method(name), server_view(sites, dict(get_method(name).parameters), 1e-9)
    server: Any = method.server
    straight, resumed = server.init(problem), server.init(problem)
    for _ in range(6):
        messages = server.messages(straight, problem)
        answers = {k: method.site.answer(sites[k], messages[k], problem.parameters) for k in sites}
        again = {k: method.site.answer(sites[k], messages[k], problem.parameters) for k in sites}
        for key in answers:
            assert all((answers[key][part] == again[key][part]).all() for part in answers[key])
        straight = server.step(straight, problem, answers)
        packed = server.pack(server.step(resumed, problem, answers))
        assert all(array.dtype == np.float64 for array in packed.values())
        stored = {part: np.frombuffer(array.tobytes()).reshape(array.shape) for part, array in packed.items()}
        resumed = server.unpack(stored)
    first, second = server.pack(straight), server.pack(resumed)
    assert first.keys() == second.keys()
    for part in first:
        np.testing.assert_array_equal(first[part], second[part])
    assert server.certificate(straight) == server.certificate(resumed)


@pytest.mark.parametrize("name", ["level-bundle", "level-bundle-plain", "fdr-admm", "fdr-sm"])
def test_absent_sites(make_sites: MakeSites, server_view: ServerView, name: str) -> None:
    """A site that comes late, one that leaves: bounds of the true optimum whenever all are there."""
    sites = make_sites()
    absent = {number: {"site-2"} for number in range(1, 6)} | {number: {"site-0"} for number in range(12, 15)}
    run = Trained(name, sites, server_view, absent=absent, rounds=80, gap=1e-4)
    optimum = _optimum(sites)
    for number, certificate in enumerate(run.certificates, 1):
        fresh = 1 - len(absent.get(number, set())) / 3
        assert certificate.fresh_weight == pytest.approx(fresh)
        assert certificate.lower <= optimum * (1 + 1e-8)
        assert certificate.lower <= certificate.upper
        if fresh == 1:
            assert certificate.upper >= optimum * (1 - 1e-8)
    if "bundle" in name:
        assert run.status is Status.CERTIFIED
        assert run.certificates[-1].upper == pytest.approx(optimum, rel=2e-4)


def test_a_site_that_never_answers_counts_zero(make_sites: MakeSites, server_view: ServerView) -> None:
    sites = make_sites()
    run = Trained("level-bundle", sites, server_view, absent={number: {"site-1"} for number in range(1, 61)}, rounds=60)
    there = {each: site for each, site in sites.items() if each != "site-1"}
    assert run.certificates[-1].upper == pytest.approx(2 / 3 * _optimum(there), rel=1e-5)
    assert run.certificates[-1].fresh_weight == pytest.approx(2 / 3)
    assert math.isnan(run.server.site_risks(run.state, run.problem)["site-1"])


def test_all_sites_absent_is_no_information(make_sites: MakeSites, server_view: ServerView) -> None:
    sites = make_sites()
    run = Trained("level-bundle", sites, server_view, absent={1: set(sites)}, rounds=1)
    assert run.certificates[0].lower == 0
    assert run.certificates[0].fresh_weight == 0


def test_an_answer_that_is_no_cut_raises(make_sites: MakeSites, server_view: ServerView) -> None:
    """A site whose risk falls after it was a cut contradicts the bounds: that is never rounded into holding."""
    sites = make_sites()
    run = Trained("level-bundle-plain", sites, server_view, rounds=30, gap=1e-2)
    messages = run.server.messages(run.state, run.problem)
    method = get_method("level-bundle-plain")
    lying = {k: dict(method.site.answer(sites[k], messages[k], run.problem.parameters)) for k in sites}
    for answer in lying.values():
        answer["risk"] = 0.2 * answer["risk"]
    with pytest.raises(CertificateError, match="lies above the upper bound"):
        run.server.certificate(run.server.step(run.state, run.problem, lying))


def test_weight_zero_sites_do_not_matter(make_sites: MakeSites, server_view: ServerView) -> None:
    sites = make_sites()
    method = get_method("level-bundle")
    view = server_view(sites, dict(method.parameters), 1e-5)
    terms = tuple(replace(site, weight=weight) for site, weight in zip(view.sites, (0.5, 0.5, 0.0), strict=True))
    run = Trained("level-bundle", sites, lambda *_: replace(view, sites=terms), gap=1e-5)
    there = {each: sites[each] for each in ("site-0", "site-1")}
    assert run.status is Status.CERTIFIED
    assert run.certificates[-1].upper == pytest.approx(_optimum(there), rel=2e-5)
