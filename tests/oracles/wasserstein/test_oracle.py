"""The oracle itself: against the definition on a grid, one way of moving against the other, and its independence."""

from __future__ import annotations

import ast
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from tests.oracles.wasserstein.attacks import random_attack
from tests.oracles.wasserstein.draw import draw
from tests.oracles.wasserstein.losses import CLASSIFICATION, REGRESSION, Array, OracleLoss
from tests.oracles.wasserstein.problem import Box, OracleSite, Polytope, gain_of_unit, norm_of
from tests.oracles.wasserstein.risk import Oracle
from tests.oracles.wasserstein.whole import Mixtures, WholeOracle

NORMS = ("l1", "l2", "linf")


def _site(random: np.random.Generator, name: str, norm: str, p: int) -> OracleSite:
    """Rows on a grid of eighths, on the unit box; targets too."""
    loss = OracleLoss(name, {"huber": 0.4, "epsilon_insensitive": 0.125, "pinball": 0.3}.get(name, 0.0))
    points = random.integers(0, 9, (3, p + 1)) / 8.0
    labels = points[:, p] if loss.regression else random.choice([-1.0, 1.0], 3)
    cost = float(random.choice([0.05, 0.5, 2.0, np.inf]))
    box = Box(np.zeros(p), np.ones(p), *((0.0, 1.0) if loss.regression else ()))
    return OracleSite(points[:, :p], labels, loss, norm, float(random.choice([0.01, 0.1, 0.4])), cost, box)


def _on_grid(site: OracleSite, plane: Array, intercept: float, steps: int) -> float:
    """The definition itself: the most that masses on a grid can make, moved within the radius; a linear program."""
    regression, d = site.loss.regression, site.points.shape[1]
    places = np.array(list(product(np.linspace(0.0, 1.0, steps + 1), repeat=d)))
    if regression and np.isinf(site.flip_cost):
        raise ValueError("targets that stay need a grid of their own")
    values, costs, rows = [], [], []
    for i, point in enumerate(site.points):
        for sign in (1.0,) if regression or np.isinf(site.flip_cost) else (1.0, -1.0):
            scores = places[:, : plane.shape[0]] @ plane + intercept
            values.append(site.loss.value(scores - places[:, -1] if regression else sign * site.labels[i] * scores))
            costs.append(site.move_cost(places - point) + (0.0 if sign > 0 else site.flip_cost))
            rows.append(np.full(places.shape[0], i))
    row = np.concatenate(rows)
    whole = (row == np.arange(site.labels.shape[0])[:, None]).astype(float)
    found = linprog(
        -np.concatenate(values), A_ub=np.concatenate(costs)[None], b_ub=[site.radius], A_eq=whole,
        b_eq=np.full(whole.shape[0], 1.0 / whole.shape[0]), bounds=(0, None),
    )
    return -float(found.fun)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["hinge", "epsilon_insensitive", "pinball"])
@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_and_meet_on_a_grid(name: str, norm: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    site = _site(random, name, norm, 1 if name != "hinge" else 2)
    if site.loss.regression and np.isinf(site.flip_cost):
        site = replace(site, flip_cost=1.0)
    plane, intercept, steps = 2.0 * random.normal(size=site.features.shape[1]), float(random.normal()), 24
    truth = Oracle(site).risk(plane, intercept)
    found = _on_grid(site, plane, intercept, steps)
    coarse = (float(np.abs(plane).sum()) + 1.0) * site.loss.steepest / steps
    assert truth.lower - coarse <= found <= truth.upper + 1e-7
    assert truth.lower <= truth.upper + 1e-12
    assert truth.upper - truth.lower <= 1e-9 * truth.size


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["hinge", "epsilon_insensitive", "pinball"])
def test_a_box_is_a_polytope(name: str, norm: str) -> None:
    random = np.random.default_rng(NORMS.index(norm))
    for _ in range(6):
        site = _site(random, name, norm, 2)
        d = site.points.shape[1]
        walls = Polytope(np.vstack([np.eye(d), -np.eye(d)]), np.append(np.ones(d), np.zeros(d)))
        plane, intercept = 3.0 * random.normal(size=2), float(random.normal())
        one, other = Oracle(site).risk(plane, intercept), Oracle(replace(site, support=walls)).risk(plane, intercept)
        assert one.upper == pytest.approx(other.upper, rel=1e-9, abs=1e-9)
        assert one.lower == pytest.approx(other.lower, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", [*CLASSIFICATION, *REGRESSION])
def test_a_large_box_is_no_box(name: str) -> None:
    """Unbounded features are what boxes come to, but for the mass that then moves farther than any box."""
    random = np.random.default_rng(5)
    for norm in NORMS:
        site = replace(_site(random, name, norm, 2), support=None)
        plane = 2.0 * random.normal(size=2)
        free = Oracle(site).risk(plane, 0.3)
        assert free.upper - free.lower <= 1e-9 * free.size
        if site.loss.lines:
            wide = replace(site, support=Box(np.full(2, -1e7), np.full(2, 1e7)))
            assert Oracle(wide).risk(plane, 0.3).upper == pytest.approx(free.upper, rel=1e-5)


def test_no_attack_beats_duality() -> None:
    random = np.random.default_rng(1)
    for seed in range(40):
        drawn = draw(seed)
        for site in drawn.sites:
            for plane, intercept in drawn.planes:
                truth = Oracle(site).risk(plane, intercept)
                assert truth.upper - truth.lower <= 1e-9 * truth.size
                assert random_attack(random, site, plane, intercept) <= truth.upper + 1e-11 * truth.size


def test_subgradients_support_the_risk() -> None:
    for seed in range(60):
        drawn = draw(seed)
        whole = WholeOracle(drawn)
        found = [(np.append(*at), whole.risk(*at)) for at in drawn.planes]
        for here, risk in found:
            for there, other in found:
                size = risk.size + other.size + float(np.abs(risk.gradient) @ (np.abs(here) + np.abs(there)))
                assert risk.lower + risk.gradient @ (there - here) <= other.upper + 1e-9 * size, seed


def test_mixtures_are_the_worst_of_their_ball() -> None:
    random = np.random.default_rng(2)
    for norm in NORMS:
        for radius in (0.1, 0.5, 2.0):
            centre, risks = random.dirichlet(np.ones(3)), random.normal(size=3)
            member, value = Mixtures(centre, norm, radius).worst(risks)
            assert member.min() >= -1e-12 and norm_of(member - centre, norm) <= radius + 1e-12
            others = random.dirichlet(np.ones(3), 20_000)
            others = others[norm_of(others - centre, norm) <= radius]
            assert value - 0.1 <= (others @ risks).max() <= value + 1e-12
            assert gain_of_unit(risks, norm) * radius + centre @ risks >= value - 1e-12


def test_only_the_adapter_knows_the_project() -> None:
    for path in Path(__file__).parent.glob("*.py"):
        tree = ast.walk(ast.parse(path.read_text()))
        names = {node.module or "" for node in tree if isinstance(node, ast.ImportFrom)}
        knows = {name for name in names if name.split(".")[0] in ("models", "services", "flows", "api")}
        assert not knows or path.name == "project.py", path.name
