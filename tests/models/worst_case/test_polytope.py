"""Polytopes: bounds that hold however far the solver got, held to boxes, whose risk is exact."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models.basics import FloatArray
from models.centralised.bundle import train_at_hand
from models.geometry.supports import BoxSupport, PolytopeSupport
from models.losses.catalogue import get_loss
from models.problem import RobustSpec, SiteProblem
from models.site_ambiguity.ball import MixtureBall
from models.worst_case.polytope import evaluate_polytope
from models.worst_case.risk import site_cut, site_risk, worst_case_risk

pytest.importorskip("cvxpy", reason="polytopes need the extra 'reference'")

PIECEWISE = ("hinge", "pinball", "epsilon_insensitive")
ROUNDING = 1e-12


def unit_polytope(p: int, *, targets: bool) -> PolytopeSupport:
    """Unit box of p features, and targets between -2 and 2 where there are any."""
    matrix, limits = np.vstack([np.eye(p), -np.eye(p)]), np.concatenate([np.ones(p), np.zeros(p)])
    if not targets:
        return PolytopeSupport(matrix, limits)
    column = np.append(np.zeros(2 * p), [1.0, -1.0])
    return PolytopeSupport(np.vstack([matrix, np.zeros((2, p))]), np.append(limits, [2.0, 2.0]), column)


def polytope_site(random: np.random.Generator, loss: str, norm: Any, radius: float, cost: float) -> SiteProblem:
    """A few rows in the unit box, targets within 2 of 0, the box stated as a polytope."""
    n, p = int(random.integers(2, 12)), int(random.integers(1, 4))
    judged = get_loss(loss, quantile=0.8 if loss == "pinball" else None)  # steeper on one side
    x, targets = random.uniform(size=(n, p)), judged.task == "regression"
    y = random.uniform(-2, 2, n) if targets else random.choice([-1.0, 1.0], n)
    support = unit_polytope(p, targets=targets)
    return SiteProblem(x, y, RobustSpec(radius, cost, norm, support, loss=judged))


def as_box(site: SiteProblem) -> SiteProblem:
    """The same site with its support as the box that it is."""
    p = site.features.shape[1]
    return replace(site, spec=replace(site.spec, support=BoxSupport(np.zeros(p), np.ones(p), -2.0, 2.0)))


def bounds_hold(site: SiteProblem, weights: FloatArray, random: np.random.Generator) -> float:
    """Check risk and cut against the exact risk of the box; what they differ by, over the risk."""
    cut, exact = site_cut(weights, site), site_risk(weights, as_box(site)).value
    size = 1.0 + float(np.abs(weights).sum())
    assert cut.norm_weight == 0.0 and cut.swing is None  # behind walls a cut is a plane
    assert cut.risk >= exact - ROUNDING * size and cut.height <= exact + ROUNDING * size
    for scale in (1e-3, 1.0, 1e3, 1e6):
        other = scale * random.normal(size=weights.shape)
        assert cut.offset(weights, 0.0) + cut.slope @ other <= site_risk(other, as_box(site)).value + ROUNDING * scale
    return (cut.risk - cut.height) / max(cut.risk, 1e-9)


@pytest.mark.parametrize("loss", PIECEWISE)
def test_cuts_hold_however_long_the_weights_are(loss: str) -> None:
    random = np.random.default_rng(7)
    for norm in ("l1", "l2", "linf"):
        for radius, cost in ((1e-4, 0.05), (0.5, 0.05), (0.3, 1.0), (0.3, np.inf)):
            site = polytope_site(random, loss, norm, radius, cost)
            direction = random.normal(size=site.features.shape[1] + 1)
            for scale in (1e-3, 1.0, 1e6):
                assert bounds_hold(site, scale * direction, random) <= 1e-7


@pytest.mark.parametrize("loss", PIECEWISE)
@pytest.mark.parametrize("early", [True, False], ids=["stops early", "finds nothing"])
def test_bounds_hold_whatever_the_solver_does(loss: str, early: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds come from points that are feasible by arithmetic, never from what the solver says of its gap."""
    from models.reference import polytope, solve

    def fails(program: object) -> float:
        raise ArithmeticError("the reference solver failed on this problem")

    if early:
        monkeypatch.setattr(solve, "_TIGHT", {"tol_gap_abs": 0.3, "tol_gap_rel": 0.3, "tol_feas": 0.1})
    else:
        monkeypatch.setattr(polytope, "solve_tightly", fails)
    random, widest = np.random.default_rng(3), 0.0
    for norm, cost in (("l1", 0.3), ("l2", 1.0), ("linf", np.inf), ("l2", np.inf)):
        site = polytope_site(random, loss, norm, 0.4, cost)
        widest = max(widest, bounds_hold(site, random.normal(size=site.features.shape[1] + 1), random))
    assert widest > 1e-4


@pytest.mark.parametrize("loss", ["hinge", "pinball"])
def test_a_fit_proves_what_the_box_has(loss: str) -> None:
    """The lower bound stays below what the box attains, and near it; a solver's error of 1e-9 ends no fit."""
    for seed in (0, 3):
        random = np.random.default_rng(seed)
        plane, sites = random.normal(size=2), {}
        for name in ("a", "b", "c"):
            x = random.uniform(size=(10, 2))
            heights = x @ plane - plane.sum() / 2 + 0.2 * random.normal(size=10)
            y = np.where(heights > 0, 1.0, -1.0) if loss == "hinge" else np.clip(heights, -2, 2)
            spec = RobustSpec(0.5, 0.05, "l2", unit_polytope(2, targets=loss != "hinge"), loss=get_loss(loss))
            sites[name] = SiteProblem(x, y, spec)
        found = train_at_hand(sites, mixture=MixtureBall(), gap=1e-4, max_rounds=40)
        best = sum(site_risk(found.weights, as_box(site)).value for site in sites.values()) / len(sites)
        exact = train_at_hand({n: as_box(s) for n, s in sites.items()}, mixture=MixtureBall(), gap=1e-6, max_rounds=200)
        assert found.certificate.gap <= 1e-4
        assert found.certificate.lower <= exact.certificate.upper * (1 + 1e-9)
        assert found.certificate.upper == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("loss", PIECEWISE)
@pytest.mark.parametrize("cost", [0.05, np.inf])
def test_no_program_where_no_wall_is_met(loss: str, cost: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows with room for all of the radius make the answer that without walls, which is exact."""
    from models.reference import polytope

    monkeypatch.delattr(polytope, "solve_polytope")
    site = polytope_site(np.random.default_rng(1), loss, "l2", 1e-5, cost)
    weights = np.random.default_rng(2).normal(size=site.features.shape[1] + 1)
    cut, free = site_cut(weights, site), site_risk(weights, replace(site, spec=replace(site.spec, support=None)))
    assert cut.risk == cut.height == free.value and cut.norm_weight == 0.0
    np.testing.assert_allclose(cut.slope, free.subgradient, rtol=1e-12)


@pytest.mark.parametrize("loss", PIECEWISE)
@pytest.mark.parametrize("cost", [0.3, np.inf])
def test_rows_that_count_unlike_often_and_entries_near_zero(loss: str, cost: float) -> None:
    """Nothing but rounding is taken for 0, and every sum over the rows has their weights."""
    random = np.random.default_rng(11)
    x = random.uniform(size=(6, 2))
    x[0, 0], x[1, 1] = 4e-4, 1e-9
    y = random.choice([-1.0, 1.0], 6)
    if loss != "hinge":
        y = np.append(random.uniform(-2, 2, 5), 3e-4)
    spec = RobustSpec(0.3, cost, "l2", unit_polytope(2, targets=loss != "hinge"), loss=get_loss(loss))
    site = SiteProblem(x, y, spec, np.array([2.5, 0.25, 0.5, 0.25, 1.5, 1.0]))
    for scale in (1.0, 20.0):
        assert bounds_hold(site, scale * random.normal(size=3), random) <= 1e-7


def test_the_multiplier_is_what_a_unit_of_the_radius_adds() -> None:
    """In the units of the features as given, here a thousand."""
    random = np.random.default_rng(4)
    x, y = 1e3 * random.uniform(size=(8, 2)), random.choice([-1.0, 1.0], 8)
    support = PolytopeSupport(np.vstack([np.eye(2), -np.eye(2)]), np.array([1e3, 1e3, 0.0, 0.0]))
    weights = np.array([2e-3, -3e-3, 0.4])

    def risk(radius: float) -> Any:
        terms: Any = {"label_flip_cost": 400.0, "transport_norm": "l2", "support": support, "intercept": 0.4}
        return worst_case_risk(weights[:2], x, y, radius=radius, **terms)

    before, here, after = risk(99.0), risk(100.0), risk(101.0)
    # The risk is concave in the radius.
    assert 1e-4 < after.value - here.value - 1e-7 <= here.dual <= here.value - before.value + 1e-7


@pytest.mark.parametrize("upper", [-0.01, 0.01])
@pytest.mark.parametrize("lower", [-0.01, 0.01])
def test_the_better_of_each_bound_counts(upper: float, lower: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the program and of the answer without walls; the slope is that of the lower one, with its rows if known."""
    from models.reference import polytope

    site = polytope_site(np.random.default_rng(3), "hinge", "l2", 2.0, np.inf)
    weights: FloatArray = np.random.default_rng(4).normal(size=(site.features.shape[1],))
    monkeypatch.setattr(polytope, "solve_polytope", lambda *given: None)
    free = evaluate_polytope(weights, 0.3, site)
    assert free.slack > 0.05 and free.rows is not None
    slope = np.full(weights.shape, 7.0)
    made = polytope.PolytopeBounds(free.value + upper, 0.125, free.value - free.slack + lower, slope, 5.0)
    monkeypatch.setattr(polytope, "solve_polytope", lambda *given: made)
    found = evaluate_polytope(weights, 0.3, site)
    assert found.value == free.value + min(upper, 0.0) and found.multiplier == 0.125
    assert found.value - found.slack == pytest.approx(free.value - free.slack + max(lower, 0.0))
    if lower > 0:
        assert (found.slope == slope).all() and found.intercept_slope == 5.0 and found.rows is None
    else:
        assert (found.slope == free.slope).all() and found.intercept_slope == free.intercept_slope
        assert found.rows is free.rows or (found.rows == free.rows).all()
