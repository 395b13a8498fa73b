"""The lower bound holds for any multipliers, and is tight for good ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import TransportNorm
from models.cuts.cut_model import CutModel
from models.cuts.cut_program import minimise, project
from models.cuts.lower_bound import lower_bound, tilted_lower_bound
from models.geometry.norms import vector_norm
from models.geometry.supports import BoxSupport
from models.problem import RobustSpec, SiteProblem
from models.simulation.federation import train
from models.site_ambiguity.ball import MixtureBall, MixtureNorm, pull_into_ball
from models.worst_case.risk import site_risk
from tests.models.cuts.asked import model_of

cp = pytest.importorskip("cvxpy", reason="the oracle of these tests needs the extra 'reference'")
MakeSites = Callable[..., dict[str, SiteProblem]]


def _oracle(model: CutModel) -> float:
    weights, heights = cp.Variable(model.slope.shape[1]), cp.Variable(model.site_weights.shape[0], nonneg=True)
    norm = cp.norm(weights[: model.n_features], {"l1": "inf", "l2": 2, "linf": 1}[model.transport_norm])
    size = cp.Variable()
    cuts = model.offset + model.slope @ weights + model.norm_weight * size
    cuts = cuts + model.swings @ cp.abs(weights[: model.n_features])
    constraints = [heights[model.site] >= cuts, heights >= model.floor * size, norm <= size]
    total = model.site_weights @ heights
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
        model = model_of(sites, 3 * random.normal(size=(count, 4 + intercept)))
        found = minimise(model, np.zeros(4 + intercept))
        bound = lower_bound(model, found.multipliers, np.zeros(4 + intercept))
        oracle = _oracle(model)
        assert bound <= oracle + 1e-7 * (1 + abs(oracle))
        assert bound >= oracle - 1e-6 * (1 + abs(oracle))


@settings(max_examples=60, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    norm=st.sampled_from(["l1", "l2", "linf"]),
    intercept=st.booleans(),
    kind=st.sampled_from(["ball", "wide ball", "box", "radius 0"]),
    count=st.sampled_from([2, 20]),
    noise=st.sampled_from([0.0, 1e-12, 1e-6, 1e-2, 1.0]),
)
def test_bound_holds_for_any_multipliers(
    make_sites: MakeSites, seed: int, norm: TransportNorm, intercept: bool, kind: str, count: int, noise: float
) -> None:
    """However wrong the multipliers are, no point that anyone can find has a risk below the bound.

    Of few cuts no correction of the multipliers makes the slope vanish, and in a wide ball the norm carries much of it:
    then what the intercept can take off counts.
    """
    random = np.random.default_rng(seed)
    radius = {"radius 0": 0.0, "wide ball": 0.5}.get(kind, 0.02)
    sites = make_sites(norm=norm, intercept=intercept, box=kind == "box", radius=radius)
    model = model_of(sites, 3 * random.normal(size=(count, 4 + intercept)))
    reference = random.normal(size=4 + intercept)
    good, size = minimise(model, reference), model.site.shape[0]
    multipliers = good.multipliers * (1 + noise * random.normal(size=size)) + 0.01 * noise * random.normal(size=size)
    bound = lower_bound(model, multipliers, reference)
    oracle = _oracle(model)
    assert bound <= oracle + 1e-7 * (1 + abs(oracle))
    true = np.mean([site_risk(good.point, site).value for site in sites.values()])
    assert bound <= true


@pytest.mark.parametrize(("slope", "floor", "multiplier"), [(1.0, 0.1, 1.0), (-3.0, 0.5, 1.0), (0.2, 0.1, 0.7)])
def test_slope_that_neither_norm_nor_floor_carries_is_paid_for(slope: float, floor: float, multiplier: float) -> None:
    """One cut ``1/2 + slope w`` over one floor, which meet at the minimum: no multiplier of the cut proves more."""
    one = np.ones(1)
    model = CutModel(
        one, floor * one, np.zeros(1, dtype=np.intp), 0.5 * one, np.array([[slope]]), np.zeros(1), "l2", 1
    )
    least = 0.5 * floor / (abs(slope) + floor)
    assert least * (1 - 1e-9) <= lower_bound(model, np.array([multiplier]), np.zeros(1)) <= least * (1 + 1e-12)


def _two_cuts(offsets: tuple[float, float], floor: float) -> CutModel:
    """One site and one feature, two cuts that see the intercept alone, one rising with it and one falling."""
    one, slopes = np.ones(1), np.array([[0.0, 1.0], [0.0, -1.0]])
    return CutModel(one, floor * one, np.zeros(2, dtype=np.intp), np.array(offsets), slopes, np.zeros(2), "l2", 1)


@pytest.mark.parametrize(("intercept", "multipliers"), [(0.3, [1.0, 0.0]), (-0.3, [0.0, 1.0])])
def test_an_intercept_that_is_left_over_is_paid_for_on_its_own_side(intercept: float, multipliers: list[float]) -> None:
    """The one cut that counts says nothing of how far the intercept may move to lower it; the other one does."""
    model = _two_cuts((0.5, 0.5), floor=0.1)
    assert lower_bound(model, np.array(multipliers), np.array([0.0, intercept])) <= 0.5
    assert lower_bound(model, np.array([0.5, 0.5]), np.array([0.0, intercept])) == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_slope_that_is_a_little_more_than_the_swing_is_not_taken_off_whole(sign: float) -> None:
    """``max(1 + 1.005 u + |u|, -u)`` is least at -1 / 1.005, not at 0, whichever multipliers are proposed."""
    least = 1.0 / 1.005
    model = CutModel(
        np.ones(1), np.zeros(1), np.zeros(2, dtype=np.intp), np.array([1.0, 0.0]), sign * np.array([[1.005], [-1.0]]),
        np.zeros(2), "l2", 1, swing=np.array([[1.0], [0.0]]),
    )
    bounds = [lower_bound(model, np.array([1.0 - k, k]), np.array([-sign * least])) for k in (0.0, 1e-3, 5e-3, 0.5)]
    assert max(bounds) <= least
    best = minimise(model, np.zeros(1))
    assert lower_bound(model, best.multipliers, best.point) == pytest.approx(least, rel=1e-6)


def test_far_from_zero_the_floor_is_the_model() -> None:
    model = _two_cuts((0.5, 0.5), floor=0.1)
    assert model.value(np.array([50.0, 0.0])) == pytest.approx(5.0)
    assert model.value(np.array([1.0, 2.0])) == pytest.approx(2.5)


@pytest.mark.parametrize("floor", [0.0, 0.1])
def test_no_bound_is_above_the_minimum_even_by_rounding(floor: float) -> None:
    """In exact arithmetic: the minimum of max(a + b, c - b) is (a + c) / 2."""
    random = np.random.default_rng(5)
    for low, high in random.uniform(0.1, 1.0, (200, 2)):
        model, reference = _two_cuts((low, high), floor), np.array([0.0, (high - low) / 2])
        bound = lower_bound(model, np.array([0.5, 0.5]), reference)
        assert Fraction(bound) <= (Fraction(low) + Fraction(high)) / 2
        assert bound == pytest.approx((low + high) / 2, rel=1e-12)


def test_no_tilted_bound_is_above_what_its_cuts_sum_to_even_by_rounding() -> None:
    """In exact arithmetic, of flat cuts."""
    random = np.random.default_rng(6)
    for _ in range(100):
        flat = CutModel(
            np.ones(1), np.zeros(1), np.zeros(9, dtype=np.intp), random.uniform(0.1, 1.0, 9), np.zeros((9, 2)),
            np.zeros(9), "l2", 2,
        )
        cuts = random.uniform(size=9) / 9
        bound = tilted_lower_bound(flat, cuts, np.zeros(2), np.ones(2))
        exact = sum(Fraction(each) * Fraction(height) for each, height in zip(cuts, flat.offset, strict=True))
        assert exact * (1 - Fraction(1, 10**13)) <= Fraction(bound) <= exact


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_tilted_bound_holds_in_its_box(make_sites: MakeSites, norm: TransportNorm) -> None:
    """A slope that the norm does not carry is charged over the whole of the box, wherever its points lie."""
    random = np.random.default_rng(6)
    for radius in (0.02, 0.5):
        model = model_of(make_sites(norm=norm, radius=radius), 3 * random.normal(size=(6, 5)))
        for _ in range(20):
            tilt, extent = random.normal(size=5), random.uniform(0.1, 2.0, 5)
            bound = tilted_lower_bound(model, random.uniform(size=18) / 6, tilt, extent)
            corners = extent * np.sign(random.normal(size=(50, 5)))
            points = np.vstack([corners, corners * random.uniform(size=(50, 5)), -extent * np.sign(tilt)])
            assert bound <= min(model.value(point) + tilt @ point for point in points) + 1e-12


@settings(max_examples=30, derandomize=True)
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
    # With the cuts at zero, where every run starts: the others alone may fall for ever, or nearly so.
    points = np.vstack([np.zeros(5), 3 * random.normal(size=(12, 5))])
    model = replace(model_of(make_sites(norm=norm, box=kind == "box"), points), mixture=MixtureBall(over_sites, radius))
    oracle, reference = _oracle(model), random.normal(size=5)
    good = minimise(model, reference)
    assert model.value(good.point) == pytest.approx(oracle, rel=1e-6, abs=1e-7)
    assert vector_norm(good.mixture - model.site_weights, over_sites) <= radius + 1e-12
    mixture = pull_into_ball(good.mixture + noise * random.normal(size=3), model.site_weights, model.mixture)
    multipliers = good.multipliers * (1 + noise * random.normal(size=good.multipliers.shape[0]))
    bound = lower_bound(model.with_mixture(mixture), multipliers, reference)
    assert bound <= oracle + 1e-7 * (1 + abs(oracle))
    if noise == 0:
        assert bound >= oracle - 1e-6 * (1 + abs(oracle))


@pytest.mark.parametrize("over_sites", ["l1", "l2", "linf"])
def test_projection_on_a_level_of_the_worst_mixture(make_sites: MakeSites, over_sites: MixtureNorm) -> None:
    """The point is on the level set, and the multipliers say that none nearer is: a prox step of the model."""
    random = np.random.default_rng(4)
    model = model_of(make_sites(), 3 * random.normal(size=(15, 5)))
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
        model = model_of(make_sites(norm=norm), 3 * random.normal(size=(15, 5)))
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
            model.site_weights @ heights <= level,
        ]
        cp.Problem(cp.Minimize(cp.sum_squares(weights - centre)), constraints).solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(found.point, weights.value, atol=1e-5)
        assert found.multipliers.sum() <= 1 + 1e-6


@pytest.mark.parametrize("seed", [0, 1])
def test_the_bound_of_a_box_closes_where_features_nearly_depend_on_each_other(seed: int) -> None:
    """Few cuts carry the multipliers at the end, and what rounding leaves of their slope is flat in those alone."""
    random = np.random.default_rng(seed)
    features = random.uniform(0, 1, (60, 3))
    twins = np.round(features[:, :2] @ [[0.5, 0.3], [0.5, 0.7]], 6)
    features = np.hstack([features, twins])
    score = features[:, 0] - 0.6 * features[:, 1] + 0.3 * random.normal(size=60)
    spec = RobustSpec(0.01, 1.0, "l2", BoxSupport(np.zeros(5), np.ones(5)))
    labels = np.where(score > 0.2, 1.0, -1.0)
    sites = {f"site-{g}": SiteProblem(features[g::2], labels[g::2], spec) for g in range(2)}
    assert train(sites, gap=3e-3, max_rounds=45).certificate.gap <= 3e-3
