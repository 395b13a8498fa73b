"""WAFL and the kin without a ball at the sites: optima of their problems, bounds, limits, refusals."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from models.basics import ProblemError, TransportNorm
from models.cuts.cut_model import CutModel
from models.losses.catalogue import get_loss
from models.methods.bundle.wafl import WaflServer, priced_risk, priced_rows, priced_value
from models.methods.catalogue import METHODS
from models.problem import RobustSpec, ServerProblem, SiteProblem, SiteTerms, Status
from models.simulation.federation import train
from models.site_ambiguity.ball import MixtureBall

Sites = dict[str, SiteProblem]


def drawn_sites(
    norm: TransportNorm = "l2", flip_cost: float = 1.0, radius: float = 0.1, loss: str = "hinge", seed: int = 0
) -> Sites:
    random, judged = np.random.default_rng(seed), get_loss(loss)
    sites, classes = {}, judged.task == "classification"
    for g in range(3):
        features = random.uniform(size=(15 + 5 * g, 3))
        score = (features - 0.5) @ (4 * np.ones(3) + random.normal(size=3))
        noise = 0.3 * random.normal(size=score.shape)
        labels = np.where(score + noise > 0, 1.0, -1.0) if classes else 0.5 + 0.2 * score + 0.1 * noise
        spec = RobustSpec(radius * (1 + g), flip_cost, norm, None, True, judged)
        sites[f"site-{g}"] = SiteProblem(features, labels, spec)
    return sites


def joint_optimum(sites: Sites) -> tuple[float, float, float]:
    """Optimum of the hinge loss over one ball around all rows in CVXPY; the price and the norm there."""
    import cvxpy as cp

    spec = next(iter(sites.values())).spec
    weights, intercept, price, total = cp.Variable(3), cp.Variable(), cp.Variable(), 0.0
    constraints = [price >= cp.norm(weights, {"l1": "inf", "l2": 2, "linf": 1}[spec.transport_norm])]
    for site in sites.values():
        margins = cp.multiply(site.labels, site.features @ weights + intercept)
        losses = cp.Variable(site.labels.shape[0], nonneg=True)
        constraints += [losses >= 1 - margins]
        if math.isfinite(spec.label_flip_cost):
            constraints += [losses >= 1 + margins - spec.label_flip_cost * price]
        total = total + (site.spec.radius * price + cp.sum(losses) / site.labels.shape[0]) / len(sites)
    program = cp.Problem(cp.Minimize(total), constraints)
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11)
    return float(program.value), float(price.value), float(constraints[0].args[0].value)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize(("flip_cost", "radius"), [(1.0, 0.05), (0.5, 0.02), (3.0, 0.1), (math.inf, 0.02)])
def test_reaches_the_optimum_over_one_ball_around_all_rows(
    norm: TransportNorm, flip_cost: float, radius: float
) -> None:
    pytest.importorskip("cvxpy", reason="the oracle needs the extra 'reference'")
    sites = drawn_sites(norm, flip_cost, radius)
    best, _, _ = joint_optimum(sites)
    run = train(sites, method="wafl", gap=1e-6, max_rounds=300)
    assert run.status is Status.CERTIFIED
    for each in run.history:
        assert each.lower <= best * (1 + 1e-8) and each.upper >= best * (1 - 1e-8)
    assert run.certificate.upper == pytest.approx(best, rel=1e-5)


def test_cuts_hold_in_weights_and_price() -> None:
    random = np.random.default_rng(1)
    for loss in ("hinge", "logistic", "huber"):
        site = drawn_sites(loss=loss, flip_cost=0.7)["site-1"]
        for _ in range(20):
            (w, u), (t, s) = random.normal(size=(2, 4)), random.uniform(0, 4, 2)
            risk, slope, price_slope = priced_risk(w, t, site)
            there = priced_risk(u, s, site)[0]
            assert there >= risk + slope @ (u - w) + price_slope * (s - t) - 1e-10
            assert there >= site.spec.radius * site.spec.loss.lipschitz * s


@pytest.mark.parametrize("loss", ["hinge", "logistic", "huber", "pinball"])
@pytest.mark.parametrize("price", [0.0, 0.5, 3.0])
def test_a_row_of_weight_two_is_two_rows_and_coefficients_make_the_slope(loss: str, price: float) -> None:
    site, point = drawn_sites(loss=loss, flip_cost=0.7)["site-0"], np.array([1.0, -2.0, 0.5, 0.3])
    often = np.ones(15)
    often[[1, 4, 9]] = 2.0
    twice = np.repeat(np.arange(15), often.astype(int))
    weighed = replace(site, row_weights=often / often.mean())
    copied = replace(site, features=site.features[twice], labels=site.labels[twice])
    found, expected = priced_rows(point, price, weighed), priced_rows(point, price, copied)
    assert found[0] == pytest.approx(expected[0]) and found[2] == pytest.approx(expected[2])
    np.testing.assert_allclose(found[1], expected[1], atol=1e-14)
    np.testing.assert_allclose(np.append(found[3] @ site.features, found[3].sum()), found[1], atol=1e-14)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "huber"])
def test_slopes_in_the_price_are_those_of_the_risk(loss: str) -> None:
    """Of a target a price below what its move costs is worth nothing: the risk is as if it were that."""
    site, point = drawn_sites(loss=loss, flip_cost=0.7)["site-1"], np.array([1.0, -2.0, 0.5, 0.3])
    for price in (0.2, 1.1, 2.0, 5.0):
        before, after = (priced_risk(point, price + step, site)[0] for step in (-1e-6, 1e-6))
        assert priced_risk(point, price, site)[2] == pytest.approx((after - before) / 2e-6, abs=1e-6)
    if loss == "huber":
        assert priced_risk(point, 0.2, site)[0] == priced_risk(point, 1 / 0.7, site)[0]


@pytest.mark.parametrize("seed", range(6))
def test_the_price_of_a_point_is_the_best_one_at_or_above_its_norm(seed: int) -> None:
    """Cuts may fall in the price; a site without a cut has its floor."""
    random = np.random.default_rng(seed)
    model = CutModel(
        random.dirichlet(np.ones(3)), random.uniform(0.05, 0.3, 3), random.integers(0, 2 + seed % 2, 8),
        random.normal(size=8) + 1.0, random.normal(size=(8, 2)), random.choice([0.3, 1.0]) * random.normal(size=8),
        "l2", 2,
    )
    point = random.normal(size=2)
    norm = float(np.linalg.norm(point))

    def at(price: float) -> float:
        heights = np.maximum(model.floor * price, 0.0)
        np.maximum.at(heights, model.site, model.offset + model.slope @ point + model.norm_weight * price)
        return float(model.site_weights @ heights)

    value, price = priced_value(model, point)
    assert price >= norm and value == pytest.approx(at(price), rel=1e-12)
    grid = norm + np.append(np.linspace(0.0, 2.0, 400), np.geomspace(2.0, 200.0, 200))
    assert value <= min(at(each) for each in grid) + 1e-12


def test_regression_is_drfl_with_fixed_weights() -> None:
    """Every site's ball costs the Lipschitz constant times the norm, so where the radius lies does not matter."""
    sites = drawn_sites(loss="huber", flip_cost=5.0, radius=0.02)
    joint, apart = (train(sites, method=name, gap=1e-6, max_rounds=300) for name in ("wafl", "level-bundle"))
    assert joint.certificate.upper == pytest.approx(apart.certificate.upper, rel=1e-5)


def test_one_site_is_the_robust_model_of_its_rows() -> None:
    alone = {"a": drawn_sites()["site-0"]}
    joint, robust = (train(alone, method=name, gap=1e-6) for name in ("wafl", "level-bundle"))
    assert joint.certificate.upper == pytest.approx(robust.certificate.upper, rel=1e-5)


def test_kin_ignore_the_radius_and_order_as_their_mixtures_do() -> None:
    sites, ball = drawn_sites("l2", 1.0, 0.3, "smooth_hinge"), MixtureBall("l2", 0.2)
    bare = {name: replace(site, spec=replace(site.spec, radius=0.0)) for name, site in sites.items()}
    twins = {
        "standard": (MixtureBall(), MixtureBall()), "afl": (ball, ball), "drfa-exact": (ball, MixtureBall("l1", 2.0)),
    }
    found = []
    for name, (stated, meant) in twins.items():
        run = train(sites, method=name, gap=1e-3, mixture=stated)
        plain = train(bare, gap=1e-3, mixture=meant)
        assert run.certificate.upper == pytest.approx(plain.certificate.upper, rel=3e-3)
        found.append(run.certificate.upper)
    assert found == sorted(found) and found[0] < found[2]
    worst = train(sites, method="drfa-exact", gap=1e-3)
    assert worst.certificate.upper == pytest.approx(max(worst.site_risks.values()), rel=1e-9)


@pytest.mark.parametrize("name", ["standard", "afl", "drfa-exact"])
def test_a_radius_that_is_ignored_bounds_no_question(name: str) -> None:
    """Best weights of 50 under a loss of some thousandths; a ball of radius 100 would let none be beyond .2."""
    found = []
    for radius in (100.0, 0.0):
        sites = drawn_sites("l2", 1.0, radius, "hinge")
        apart = {
            each: replace(site, features=0.02 * site.features, labels=np.where(site.features[:, 0] > 0.5, 1.0, -1.0))
            for each, site in sites.items()
        }
        found.append(train(apart, method=name, gap=1e-3, max_rounds=40))
    ignored, bare = found
    assert ignored.n_rounds == bare.n_rounds
    np.testing.assert_array_equal(ignored.weights, bare.weights)


def test_refused_in_one_line() -> None:
    sites = drawn_sites()
    unlike = {**sites, "site-1": replace(sites["site-1"], spec=replace(sites["site-1"].spec, label_flip_cost=2.0))}
    with pytest.raises(ProblemError, match="they must have the same label flip cost"):
        train(unlike, method="wafl")
    with pytest.raises(ProblemError, match="wafl needs a radius above 0; without a ball take the method standard"):
        train(drawn_sites(radius=0.0), method="wafl")
    one = {**sites, "site-0": replace(sites["site-0"], spec=replace(sites["site-0"].spec, radius=0.0))}
    train(one, method="wafl", max_rounds=2)
    with pytest.raises(ProblemError, match="trains with fixed site weights"):
        train(sites, method="wafl", mixture=MixtureBall("l2", 0.1))


@pytest.mark.parametrize("first", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_a_site_that_goes_away_enters_both_bounds_by_its_cuts_and_its_floor(first: int, seed: int) -> None:
    """The lower bound knows that its risk is at least the floor times the price, so the upper one has to."""
    sites, method = drawn_sites(seed=seed, radius=0.01), METHODS["wafl"]
    terms = tuple(
        SiteTerms(name, 1 / 3, each.spec.radius, each.spec.label_flip_cost) for name, each in sites.items()
    )
    problem = ServerProblem(3, terms, "l2", True, parameters=dict(method.parameters))
    state, lower = method.server.init(problem), 0.0
    for number in range(1, 16):
        messages = method.server.messages(state, problem)
        there = [name for name in sites if name != "site-2" or number < first]
        answers = {name: method.site.answer(sites[name], messages[name], method.parameters) for name in there}
        state = method.server.step(state, problem, answers)
        found = method.server.certificate(state)
        assert lower <= found.lower <= found.upper * (1 + 1e-9)
        lower = found.lower
        known = {name: each.spec.radius for name, each in sites.items() if name != "site-2" or first > 1}
        assert state.floor.tolist() == [known.get(name, 0.0) for name in sites]
    assert found.fresh_weight == pytest.approx(2 / 3)
    assert method.server.carried_proof(state, problem) is None  # others cannot judge cuts in a price


def test_an_answer_as_cuts_lies_below_the_risk_in_weights_and_price() -> None:
    """By these a plant's answers are held to one another; its floor is a cut in the price."""
    random, site, method = np.random.default_rng(2), drawn_sites(flip_cost=0.7)["site-1"], METHODS["wafl"]
    w, t = random.normal(size=4), 1.5
    cuts = WaflServer().as_cuts(method.site.answer(site, {"point": w, "price": np.array(t)}, {}))
    assert cuts["risk"] == cuts["cut_height"] == priced_risk(w, t, site)[0]
    assert cuts["norm_weight"] == cuts["minorant_norm_weight"] == 0.0
    lowest = np.inf
    for _ in range(200):
        u, s = 3.0 * random.normal(size=4), random.uniform(0.0, 8.0)
        there, away = priced_risk(u, s, site)[0], np.append(u - w, s - t)
        assert cuts["cut_height"] + cuts["slope"] @ away <= there + 1e-12
        below = float(cuts["minorant_offset"] + cuts["minorant_slope"] @ np.append(u, s))
        assert 0.0 <= below <= there + 1e-12
        lowest = min(lowest, there - below)
    assert lowest < 0.5 and below == pytest.approx(site.spec.radius * s)


def test_the_first_round_counts_with_the_floors_that_were_told_in_it() -> None:
    """Without them the price costs nothing: the first step would be that of a problem without a ball."""
    sites, method = drawn_sites(), METHODS["wafl"]
    problem = ServerProblem(
        3, tuple(SiteTerms(name, 1 / 3, site.spec.radius, 1.0) for name, site in sites.items()), "l2", True,
        parameters=dict(method.parameters),
    )
    server = WaflServer()
    begun = server.init(problem)
    messages = server.messages(begun, problem)
    answers = {name: method.site.answer(site, messages[name], problem.parameters) for name, site in sites.items()}
    first = server.step(begun, problem, answers)
    known = server.step(replace(begun, floor=first.floor), problem, answers)
    assert first.floor.all() and not begun.floor.any()
    assert first.evidence.lower == known.evidence.lower and first.point.tolist() == known.point.tolist()
