"""The lower bound holds for any multipliers, and is tight for good ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.ambiguity import DUAL_NORM, vector_norm
from models.cut_model import CutModel, minimise, project
from models.lower_bound import lower_bound, nearest_in_ball
from models.mixture import MixtureBall, MixtureNorm, mixture_size, pull_into_ball
from models.problem import SiteProblem, TransportNorm
from models.worst_case import site_cut, site_risk

cp = pytest.importorskip("cvxpy", reason="the oracle of these tests needs the extra 'reference'")
MakeSites = Callable[..., dict[str, SiteProblem]]


def _model(sites: dict[str, SiteProblem], points: np.ndarray) -> CutModel:
    problems = list(sites.values())
    spec, p = problems[0].spec, problems[0].features.shape[1]
    site, offset, slope, norm_weight = [], [], [], []
    for point in points:
        norm = float(vector_norm(point[:p], DUAL_NORM[spec.transport_norm]))
        for g, problem in enumerate(problems):
            cut = site_cut(point, problem)
            site.append(g)
            offset.append(cut.value - cut.slope @ point - cut.norm_weight * norm)
            slope.append(cut.slope)
            norm_weight.append(cut.norm_weight)
    floor = np.zeros(len(problems))
    np.maximum.at(floor, np.array(site), np.array(norm_weight))
    shares = np.full(len(problems), 1 / len(problems))
    return CutModel(
        shares, floor, np.array(site), np.array(offset), np.array(slope), np.array(norm_weight), spec.transport_norm, p
    )


def _oracle(model: CutModel) -> float:
    weights, heights = cp.Variable(model.slope.shape[1]), cp.Variable(model.shares.shape[0], nonneg=True)
    norm = cp.norm(weights[: model.n_features], {"l1": "inf", "l2": 2, "linf": 1}[model.transport_norm])
    size = cp.Variable()
    cuts = model.offset + model.slope @ weights + model.norm_weight * size
    constraints = [heights[model.site] >= cuts, heights >= model.floor * size, norm <= size]
    total = model.shares @ heights
    if model.mixture.radius > 0:
        # DRFL Theorem 4.3; the heights may be raised, which is its eta.
        level, dual = cp.Variable(), {"l1": "inf", "l2": 2, "linf": 1}[model.mixture.norm]
        total = total + model.mixture.radius * cp.norm(heights - level, dual)
    program = cp.Problem(cp.Minimize(total), constraints)
    program.solve(solver=cp.CLARABEL)
    return float(program.value)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["ball", "box", "radius 0"])
def test_bound_is_the_minimum_of_the_model(
    make_sites: MakeSites, norm: TransportNorm, intercept: bool, kind: str
) -> None:
    sites = make_sites(norm=norm, intercept=intercept, box=kind == "box", radius=0.0 if kind == "radius 0" else 0.02)
    random = np.random.default_rng(1)
    for count in (1, 3, 12, 60):
        model = _model(sites, 3 * random.normal(size=(count, 4 + intercept)))
        found = minimise(model, np.zeros(4 + intercept))
        bound = lower_bound(model, found.multipliers, np.zeros(4 + intercept))
        oracle = _oracle(model)
        assert bound <= oracle + 1e-7 * (1 + abs(oracle))
        assert bound >= oracle - 1e-6 * (1 + abs(oracle))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    norm=st.sampled_from(["l1", "l2", "linf"]),
    intercept=st.booleans(),
    kind=st.sampled_from(["ball", "box", "radius 0"]),
    noise=st.sampled_from([0.0, 1e-12, 1e-6, 1e-2, 1.0]),
)
def test_bound_holds_for_any_multipliers(
    make_sites: MakeSites, seed: int, norm: TransportNorm, intercept: bool, kind: str, noise: float
) -> None:
    """However wrong the multipliers are, no point that anyone can find has a risk below the bound."""
    random = np.random.default_rng(seed)
    sites = make_sites(norm=norm, intercept=intercept, box=kind == "box", radius=0.0 if kind == "radius 0" else 0.02)
    model = _model(sites, 3 * random.normal(size=(20, 4 + intercept)))
    reference = random.normal(size=4 + intercept)
    good = minimise(model, reference)
    multipliers = good.multipliers * (1 + noise * random.normal(size=60)) + 0.01 * noise * random.normal(size=60)
    bound = lower_bound(model, multipliers, reference)
    oracle = _oracle(model)
    assert bound <= oracle + 1e-7 * (1 + abs(oracle))
    true = np.mean([site_risk(good.point, site).value for site in sites.values()])
    assert bound <= true


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    norm=st.sampled_from(["l1", "l2", "linf"]),
    over_sites=st.sampled_from(["l1", "l2", "linf"]),
    radius=st.sampled_from([1e-6, 0.05, 0.4, 2.0]),
    kind=st.sampled_from(["ball", "box"]),
    noise=st.sampled_from([0.0, 1e-6, 1e-2, 1.0]),
)
def test_bound_holds_for_the_worst_mixture(
    make_sites: MakeSites,
    seed: int,
    norm: TransportNorm,
    over_sites: MixtureNorm,
    radius: float,
    kind: str,
    noise: float,
) -> None:
    """One mixture of the ball proves the bound: tight with the one that was found, valid with any other."""
    random = np.random.default_rng(seed)
    points = 3 * random.normal(size=(12, 5))
    model = replace(_model(make_sites(norm=norm, box=kind == "box"), points), mixture=MixtureBall(over_sites, radius))
    oracle, reference = _oracle(model), random.normal(size=5)
    good = minimise(model, reference)
    assert model.value(good.point) == pytest.approx(oracle, rel=1e-6, abs=1e-7)
    assert mixture_size(good.mixture - model.shares, over_sites) <= radius + 1e-12
    mixture = pull_into_ball(good.mixture + noise * random.normal(size=3), model.shares, model.mixture)
    multipliers = good.multipliers * (1 + noise * random.normal(size=good.multipliers.shape[0]))
    bound = lower_bound(model.with_mixture(mixture), multipliers, reference)
    assert bound <= oracle + 1e-7 * (1 + abs(oracle))
    if noise == 0:
        assert bound >= oracle - 1e-6 * (1 + abs(oracle))


@pytest.mark.parametrize("over_sites", ["l1", "l2", "linf"])
def test_projection_on_a_level_of_the_worst_mixture(make_sites: MakeSites, over_sites: MixtureNorm) -> None:
    """The point is on the level set, and the multipliers say that none nearer is: a prox step of the model."""
    random = np.random.default_rng(4)
    model = _model(make_sites(), 3 * random.normal(size=(15, 5)))
    model = replace(model, mixture=MixtureBall(over_sites, 0.3))
    centre = 3 * random.normal(size=5)
    low, high = _oracle(model), model.value(centre)
    level = low + 0.3 * (high - low)
    found = project(model, centre, level)
    assert model.value(found.point) == pytest.approx(level, abs=1e-7)
    distance = float(np.linalg.norm(found.point - centre))
    lower = lower_bound(model.with_mixture(found.mixture), found.multipliers, found.point)
    assert lower <= low + 1e-7
    for _ in range(200):
        step = random.normal(size=5)
        nearer = centre + step * (0.999 * distance / np.linalg.norm(step))
        assert model.value(nearer) > level


def test_projection_is_the_nearest_point_of_the_level_set(make_sites: MakeSites) -> None:
    random = np.random.default_rng(2)
    for norm in ("l1", "l2", "linf"):
        model = _model(make_sites(norm=norm), 3 * random.normal(size=(15, 5)))
        centre = 3 * random.normal(size=5)
        low, high = _oracle(model), model.value(centre)
        level = low + 0.3 * (high - low)
        found = project(model, centre, level)
        assert model.value(found.point) <= level + 1e-8
        weights, size = cp.Variable(5), cp.Variable()
        heights = cp.Variable(3, nonneg=True)
        constraints = [
            heights[model.site] >= model.offset + model.slope @ weights + model.norm_weight * size,
            heights >= model.floor * size,
            cp.norm(weights[:4], {"l1": "inf", "l2": 2, "linf": 1}[norm]) <= size,
            model.shares @ heights <= level,
        ]
        cp.Problem(cp.Minimize(cp.sum_squares(weights - centre)), constraints).solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(found.point, weights.value, atol=1e-5)
        assert found.multipliers.sum() <= 1 + 1e-6


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), radius=st.floats(0, 3), norm=st.sampled_from(["l1", "l2", "linf"]))
def test_nearest_in_ball(seed: int, radius: float, norm: TransportNorm) -> None:
    random = np.random.default_rng(seed)
    vector = random.normal(size=4)
    nearest = nearest_in_ball(vector, radius, norm)
    assert vector_norm(nearest, norm) <= radius * (1 + 1e-12) + 1e-15
    for _ in range(20):
        other = random.normal(size=4)
        other *= radius / vector_norm(other, norm)
        # The projection is the point from which the whole ball lies behind.
        assert (vector - nearest) @ (other - nearest) <= 1e-9
