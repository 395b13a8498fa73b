"""Problems for the tests of the mathematics: drawn ones, and sites that differ."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from models.problem import BoxSupport, FloatArray, RobustSpec, ServerProblem, SiteProblem, SiteTerms, TransportNorm

Drawn = tuple[SiteProblem, FloatArray]


@st.composite
def _drawn_problem(draw: DrawFn, boxed: bool) -> Drawn:
    """A site problem and weights (D,), degenerate ones among them: see MATH section 1."""
    n, p = draw(st.integers(1, 8)), draw(st.integers(1, 5))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    features = random.uniform(0.0, 1.0, (n, p))
    if draw(st.booleans()):
        features = np.round(2 * features) / 2  # walls, ties and duplicate rows
    if draw(st.sampled_from([False, False, True])):
        features[:, random.integers(p)] = 0.0
    if draw(st.sampled_from([False, False, True])):
        features[:] = features[0]
    labels = random.choice([-1.0, 1.0], n)
    if draw(st.sampled_from([False, False, True])):
        labels[:] = labels[0]
    weights = random.normal(size=p + 1) * draw(st.sampled_from([0.1, 1.0, 5.0]))
    if draw(st.sampled_from([False, False, True])):
        weights = np.round(weights)
    radius = draw(st.sampled_from([0.0, 1e-4, 0.05, 0.3, 1.0, 10.0]))
    flip_cost = draw(st.sampled_from([1e-9, 0.1, 0.5, 1.0, 3.0, np.inf]))
    norm: TransportNorm = draw(st.sampled_from(["l1", "l2", "linf"]))
    box = None
    if boxed:
        box = BoxSupport(np.full(p, -draw(st.sampled_from([0.0, 0.3]))), 1.0 + random.integers(0, 3, p).astype(float))
    intercept = draw(st.booleans())
    spec = RobustSpec(radius, flip_cost, norm, box, intercept)
    return SiteProblem(features, labels, spec), weights if intercept else weights[:p]


@pytest.fixture(scope="session")
def unbounded_problems() -> SearchStrategy[Drawn]:
    """Problems without a support."""
    return _drawn_problem(boxed=False)


@pytest.fixture(scope="session")
def box_problems() -> SearchStrategy[Drawn]:
    """Problems on a box."""
    return _drawn_problem(boxed=True)


MakeSites = Callable[..., dict[str, SiteProblem]]


@pytest.fixture(scope="session")
def make_sites() -> MakeSites:
    """Make sites whose rows differ in size and place, noisy enough that no plane separates them."""

    def make(
        *,
        sizes: tuple[int, ...] = (30, 20, 12),
        n_features: int = 4,
        norm: TransportNorm = "l2",
        radius: float = 0.02,
        flip_cost: float = 1.0,
        box: bool = False,
        intercept: bool = True,
        seed: int = 0,
    ) -> dict[str, SiteProblem]:
        random = np.random.default_rng(seed)
        truth = random.normal(size=n_features)
        support = BoxSupport(np.zeros(n_features), np.ones(n_features)) if box else None
        spec = RobustSpec(radius, flip_cost, norm, support, intercept)
        sites = {}
        for g, size in enumerate(sizes):
            features = np.clip(random.uniform(0, 1, (size, n_features)) + 0.1 * g - 0.1, 0, 1)
            labels = np.where((features - 0.5) @ truth + 0.4 * random.normal(size=size) > 0, 1.0, -1.0)
            sites[f"site-{g}"] = SiteProblem(features, labels, spec)
        return sites

    return make


@pytest.fixture(scope="session")
def server_view() -> Callable[..., ServerProblem]:
    """What the server knows of sites of equal weight."""

    def view(sites: dict[str, SiteProblem], parameters: dict[str, float], gap: float = 1e-6) -> ServerProblem:
        spec = next(iter(sites.values())).spec
        return ServerProblem(
            n_features=next(iter(sites.values())).features.shape[1],
            sites=tuple(
                SiteTerms(name, 1 / len(sites), site.spec.radius, site.spec.label_flip_cost)
                for name, site in sites.items()
            ),
            transport_norm=spec.transport_norm,
            fit_intercept=spec.fit_intercept,
            gap=gap,
            parameters=parameters,
        )

    return view
