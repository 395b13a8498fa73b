"""Problems for the tests of the mathematics: drawn ones, and sites that differ."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from models.basics import FloatArray, TransportNorm
from models.geometry.supports import BoxSupport, PolytopeSupport, Support
from models.losses.catalogue import get_loss
from models.problem import RobustSpec, ServerProblem, SiteProblem, SiteTerms

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


@st.composite
def _loss_problem(draw: DrawFn, names: tuple[str, ...], kinds: tuple[str, ...]) -> Drawn:
    """A site problem of one of the losses on one of the kinds of support, and weights (D,), degenerate ones too."""
    name = draw(st.sampled_from(names))
    quantile = draw(st.sampled_from([0.1, 0.5, 0.9])) if name == "pinball" else None
    epsilon = draw(st.sampled_from([0.0, 0.1])) if name == "epsilon_insensitive" else None
    loss = get_loss(name, quantile=quantile, epsilon=epsilon)
    regression, kind = loss.task == "regression", draw(st.sampled_from(kinds))
    n, p = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = random.uniform(0.0, 1.0, (n, p + 1))
    support: Support | None = None
    if kind == "polytope":
        support, rows = _polytope(random, rows, p, regression, draw(st.booleans()))
    elif draw(st.booleans()):
        rows = np.round(2 * rows) / 2  # walls, ties and duplicate rows
    if draw(st.sampled_from([False, False, True])):
        rows[:] = rows[0]
    ends = [(-np.inf, np.inf), (0.0, 1.0), (-np.inf, 1.5), (-0.2, np.inf)]
    low, high = draw(st.sampled_from(ends)) if kind == "box" and regression else ends[0]
    if kind == "box":
        support = BoxSupport(np.zeros(p), 1.0 + random.integers(0, 3, p).astype(float), low, high)
    labels = rows[:, p] if regression else random.choice([-1.0, 1.0], n)
    if not regression and draw(st.sampled_from([False, False, True])):
        labels[:] = labels[0]
    # Where targets move without end for next to nothing, the oracle loses its digits.
    tiny = [] if kind == "box" and regression and np.isinf(high - low) else [1e-9]
    flip_cost = draw(st.sampled_from([*tiny, 0.1, 0.5, 1.0, 3.0, np.inf]))
    radius = draw(st.sampled_from([0.0, 1e-4, 0.05, 0.3, 1.0, 10.0]))
    norm: TransportNorm = draw(st.sampled_from(["l1", "l2", "linf"]))
    intercept = draw(st.booleans())
    weights = random.normal(size=p + int(intercept)) * draw(st.sampled_from([0.0, 0.1, 1.0, 5.0]))
    if draw(st.sampled_from([False, False, True])):
        weights = np.round(weights)
    return SiteProblem(rows[:, :p], labels, RobustSpec(radius, flip_cost, norm, support, intercept, loss)), weights


def _polytope(
    random: np.random.Generator, rows: FloatArray, p: int, regression: bool, to_walls: bool
) -> tuple[PolytopeSupport, FloatArray]:
    """The unit box cut by some planes, and rows drawn inside it, on its walls where wanted."""
    d = p + int(regression)
    matrix = np.vstack([np.eye(d), -np.eye(d), random.normal(size=(2, d))])
    limits = np.concatenate([np.ones(d), np.zeros(d), matrix[2 * d :] @ np.full(d, 0.5) + random.uniform(0.1, 1.0, 2)])
    support = PolytopeSupport(matrix[:, :p], limits, matrix[:, p] if regression else None)
    away, room = rows[:, :d] - support.inner, limits - matrix @ support.inner
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(away @ matrix.T > 0, room / (away @ matrix.T), np.inf).min(axis=1)
    share = reach if to_walls else np.minimum(reach, 1.0)
    rows[:, :d] = support.inner + share[:, None] * away
    return support, rows


@pytest.fixture(scope="session")
def loss_problems() -> Callable[[tuple[str, ...], tuple[str, ...]], SearchStrategy[Drawn]]:
    """Strategy of problems for names of losses and kinds of support ("free", "box", "polytope")."""
    return _loss_problem


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
            box=isinstance(spec.support, BoxSupport),
        )

    return view
