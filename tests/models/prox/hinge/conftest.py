"""Client steps for the tests: drawn ones, degenerate ones among them, and an exact judge of any answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from models.basics import FloatArray, TransportNorm
from models.problem import RobustSpec, SiteProblem
from models.prox.solution import ProxSolution
from models.worst_case.risk import site_risk


@dataclass(frozen=True)
class Step:
    """Arguments of `robust_prox`."""

    problem: SiteProblem
    centre: FloatArray
    penalty: float
    ridge: float
    warm_start: FloatArray | None


@st.composite
def _drawn_step(draw: DrawFn) -> Step:
    n = draw(st.sampled_from([1, 1, 2, 3, 5, 8, 12]))
    p = draw(st.sampled_from([1, 2, 3, 5, 14]))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    features = random.normal(size=(n, p)) * draw(st.sampled_from([0.1, 1.0, 1.0, 10.0]))
    kind = draw(st.sampled_from(["plain", "plain", "rounded", "duplicate rows", "zero columns", "one row", "all zero"]))
    if kind == "rounded":
        features = np.round(features)
    elif kind == "duplicate rows":
        features = features[random.integers(n, size=n)]
    elif kind == "zero columns":
        features[:, random.random(p) < 0.5] = 0.0
    elif kind == "one row":
        features[:] = features[0]
    elif kind == "all zero":
        features[:] = 0.0
    labels = random.choice([-1.0, 1.0], n)
    if draw(st.sampled_from([False, False, False, True])):
        labels[:] = labels[0]
    norm: TransportNorm = draw(st.sampled_from(["l1", "l2", "linf"]))
    intercept = draw(st.booleans())
    radius = draw(st.sampled_from([0.0, 1e-9, 1e-4, 0.01, 0.1, 1.0, 1e3]))
    flip_cost = draw(st.sampled_from([1e-9, 0.1, 0.5, 1.0, 10.0, 1e6, np.inf]))
    size = p + int(intercept)
    centre = random.normal(size=size) * draw(st.sampled_from([0.0, 1.0, 10.0]))
    warm = draw(st.sampled_from(["none", "zero", "near", "far"]))
    start = {"none": None, "zero": np.zeros(size), "near": centre + 0.01, "far": 100.0 * random.normal(size=size)}[warm]
    return Step(
        SiteProblem(features, labels, RobustSpec(radius, flip_cost, norm, None, intercept)),
        centre,
        draw(st.sampled_from([1e-3, 0.1, 1.0, 100.0])),
        draw(st.sampled_from([0.0, 0.0, 0.05, 1.0])),
        start,
    )


@pytest.fixture(scope="session")
def steps() -> SearchStrategy[Step]:
    """Client steps without a support."""
    return _drawn_step()


Objective = Callable[[FloatArray, SiteProblem, FloatArray, float, float], float]


@pytest.fixture(scope="session")
def objective() -> Objective:
    """Objective of the client step by the exact worst case, which shares no code with the solvers."""

    def value(point: FloatArray, problem: SiteProblem, centre: FloatArray, penalty: float, ridge: float) -> float:
        away = point - centre
        return site_risk(point, problem).value + ridge * float(point @ point) + 0.5 * penalty * float(away @ away)

    return value


MakeSite = Callable[..., SiteProblem]


@pytest.fixture(scope="session")
def make_site() -> MakeSite:
    """Make a noisy site of n rows."""

    def make(
        n: int,
        p: int = 5,
        *,
        norm: TransportNorm = "l2",
        radius: float = 0.01,
        flip_cost: float = 1.0,
        intercept: bool = True,
        positive: float | None = None,
        seed: int = 0,
    ) -> SiteProblem:
        random = np.random.default_rng(seed)
        features = random.uniform(size=(n, p))
        score = (features - 0.5) @ random.normal(size=p) + 0.2 * random.normal(size=n)
        labels = np.where(score > 0.0, 1.0, -1.0)
        if positive is not None:
            labels = np.where(random.uniform(size=n) < positive, 1.0, -1.0)
        return SiteProblem(features, labels, RobustSpec(radius, flip_cost, norm, None, intercept))

    return make


@pytest.fixture(scope="session")
def assert_minorant() -> Callable[[ProxSolution, SiteProblem, list[FloatArray]], None]:
    """Check both forms of a solution's minorant against the exact worst case at the points given."""

    def check(solution: ProxSolution, problem: SiteProblem, points: list[FloatArray]) -> None:
        p = problem.features.shape[1]
        order = {"l1": np.inf, "l2": 2, "linf": 1}[problem.spec.transport_norm]
        for u in points:
            risk = site_risk(u, problem).value
            room = 1e-12 * (1.0 + abs(risk) + float(np.abs(solution.slope) @ np.abs(u)))
            assert solution.offset + float(solution.slope @ u) <= risk + room
            if solution.norm_slope is not None:
                sharper = solution.offset + float((solution.slope - solution.norm_slope) @ u)
                assert sharper + solution.norm_weight * float(np.linalg.norm(u[:p], order)) <= risk + room

    return check
