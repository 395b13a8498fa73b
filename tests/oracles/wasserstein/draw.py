"""Problems drawn from a seed: every loss, support, norm, ball over the clients and unit, the nasty ones among them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.oracles.wasserstein.losses import CLASSIFICATION, REGRESSION, Array, OracleLoss
from tests.oracles.wasserstein.problem import Box, OracleSite, Polytope

UNITS = (1e-9, 1e-7, 1e-5, 1e-3, 1e3, 1e5, 1e7, 1e9)
FLIP_COSTS = (1e-9, 0.05, 0.1, 0.5, 1.0, 3.0, 1e160, np.inf)
RADII = (0.0, 1e-12, 1e-4, 0.01, 0.05, 0.3, 1.0, 10.0)
SHAPES = ("box", "cut", "simplex", "redundant", "tiny", "thin", "flat")
ROUTES = ("auto", "auto", "estimator", "level-bundle", "level-bundle-plain", "drfl-admm", "fdr-sm")
MANY, EVERY = 5000, 97
"""Rows of one problem in so many: long columns are judged in pieces."""
PIECEWISE = ("hinge", "epsilon_insensitive", "pinball")


@dataclass(frozen=True)
class Drawn:
    """A federated problem, planes at which it is judged, and whether a fit is asked of it.

    ``unit`` and ``target_unit`` are the sizes of features and targets. ``route``: how it is trained, "" for not at all.
    """

    seed: int
    sites: tuple[OracleSite, ...]
    shares: Array
    mixture_norm: str
    mixture_radius: float
    fit_intercept: bool
    planes: tuple[tuple[Array, float], ...]
    unit: float
    target_unit: float
    support: str
    route: str

    @property
    def flat(self) -> bool:
        """Whether the support is a polytope without an inside, which may be refused."""
        place = self.sites[0].support
        return isinstance(place, Polytope) and bool(place.limits[0] + place.limits[place.matrix.shape[1]] == 0)

    @property
    def loss(self) -> OracleLoss:
        """The one loss of all sites."""
        return self.sites[0].loss


def draw(seed: int) -> Drawn:
    """The problem of a seed."""
    random = np.random.default_rng([seed, 20_26])

    def among(*choices: object) -> object:
        return choices[int(random.integers(len(choices)))]

    name = str(among(*CLASSIFICATION, *REGRESSION, *PIECEWISE))
    support = str(among("none", "box", "polytope")) if name in PIECEWISE else "none"
    regression = name in REGRESSION
    unit = float(random.choice(UNITS)) if random.random() < 0.4 else 1.0
    target_unit = float(random.choice(UNITS)) if regression and random.random() < 0.2 else 1.0
    of_loss = {
        "huber": [0.2 * target_unit, 1.35 * target_unit],
        "epsilon_insensitive": [0.0, 0.1 * target_unit],
        "pinball": [0.1, 0.5, 0.9],
    }
    loss = OracleLoss(name, float(random.choice(of_loss.get(name, [0.0]))))
    p = int(random.integers(1, {"none": 7, "box": 6, "polytope": 4 - regression}[support]))
    n_sites = int(random.integers(1, 4))
    place, inner = _support(random, p, regression, support)
    norm = str(among("l1", "l2", "linf"))
    flip_cost = float(random.choice(FLIP_COSTS))
    radii = [float(random.choice(RADII))] * n_sites
    if random.random() < 0.3:
        radii = [1e-4, 1e-4, 0.1][3 - n_sites :]
    of_radius = 1.0 if random.random() < 0.1 else unit  # now and then the radius has nothing to do with the unit
    of_cost = of_radius / target_unit
    many, sites = seed % EVERY == EVERY - 1 and support != "polytope", []
    for radius in radii:
        points = _rows(random, p + regression, place, inner, many)
        labels = random.choice([-1.0, 1.0], points.shape[0])
        if random.random() < 0.2:
            labels[:] = labels[0]
        sites.append(
            OracleSite(
                points[:, :p] * unit, points[:, p] * target_unit if regression else labels, loss, norm,
                radius * of_radius, flip_cost * of_cost, _in_units(place, unit, target_unit, regression),
            )
        )
    intercept = bool(random.random() < 0.6)
    planes = tuple(_plane(random, p, intercept, unit, target_unit if regression else 1.0) for _ in range(3))
    shares = np.full(n_sites, 1.0 / n_sites) if random.random() < 0.5 else random.dirichlet(np.ones(n_sites))
    mixture_radius = float(random.choice([0.0, 0.0, 0.1, 0.5, 2.0]))
    route = str(random.choice(ROUTES))
    asked = random.random() < (0.2 if support == "polytope" else 0.4)
    return Drawn(
        seed, tuple(sites), shares, str(among("l1", "l2", "linf")), mixture_radius, intercept, planes, unit,
        target_unit, support, route if asked and not many else "",
    )


def _plane(random: np.random.Generator, p: int, intercept: bool, unit: float, target: float) -> tuple[Array, float]:
    size = float(random.choice([0.0, 0.1, 1.0, 1.0, 5.0, 1e6], p=[0.05, 0.15, 0.3, 0.2, 0.15, 0.15]))
    plane = random.normal(size=p + 1) * size
    if random.random() < 0.3:
        plane = np.round(plane)
    return plane[:p] * target / unit, float(plane[p] * target) if intercept else 0.0


def _rows(random: np.random.Generator, d: int, place: Box | Polytope | None, inner: Array, many: bool) -> Array:
    """Rows (N, d) in the unit cube and the support: one alone, duplicates, on walls, with a column of zeros."""
    n = int(random.choice([1, 2, 3, 5, 8]))
    n = MANY if many else n
    rows = random.uniform(0.0, 1.0, (n, d))
    if random.random() < 0.3:
        rows = np.round(2.0 * rows) / 2.0
    if random.random() < 0.2:
        rows[:, int(random.integers(d))] = 0.0
    if random.random() < 0.2:
        rows[:] = rows[0]
    if isinstance(place, Box):
        p = place.low.shape[0]
        rows[:, :p] = np.clip(rows[:, :p], place.low, place.high)
    if isinstance(place, Polytope):
        room, reach = place.limits - place.matrix @ inner, (rows - inner) @ place.matrix.T
        share = np.divide(room, reach, out=np.full_like(reach, np.inf), where=reach > 0).min(axis=1)
        most = 1.0 if random.random() < 0.3 else 1.0 - 1e-3
        rows = inner + np.minimum(share * most, 1.0)[:, None] * (rows - inner)
    return rows


def _support(random: np.random.Generator, p: int, regression: bool, kind: str) -> tuple[Box | Polytope | None, Array]:
    """A support in the unit cube, and a point inside."""
    d, inner = p + regression, np.full(p + regression, 0.5)
    if kind == "none":
        return None, inner
    if kind == "box":
        low, high = -random.choice([0.0, 0.3], p), 1.0 + random.integers(0, 3, p)
        if random.random() < 0.15:
            at = int(random.integers(p))
            low[at] = high[at] = 0.5
        ends = [(-np.inf, np.inf), (0.0, 1.0), (-np.inf, 1.5), (-0.2, np.inf)][int(random.integers(4))]
        return Box(low, high, *(ends if regression else ())), inner
    walls, half = np.vstack([np.eye(d), -np.eye(d)]), np.full(2 * d, 0.5)
    shape = str(random.choice(SHAPES))
    if shape == "cut":
        walls = np.vstack([walls, random.normal(size=(2, d))])
        half = np.append(half, random.uniform(0.1, 1.0, 2))
    elif shape == "simplex":
        walls, inner = np.vstack([-np.eye(d), np.ones((1, d))]), np.full(d, 1.0 / (d + 1))
        half = np.full(d + 1, 1.0 / (d + 1))
    elif shape == "redundant":
        walls = np.vstack([walls, walls[:1], 1e-3 * walls[-1:], 1e3 * np.ones((1, d))])
        half = np.append(half, [0.5, 5e-4, 1e3 * d])
    elif shape == "tiny":
        half = half * 1e-5
    elif shape in ("thin", "flat"):
        half[[0, d]] = 1e-5 if shape == "thin" else 0.0
    return Polytope(walls, walls @ inner + half), inner


def _in_units(place: Box | Polytope | None, unit: float, target: float, regression: bool) -> Box | Polytope | None:
    if isinstance(place, Box):
        return Box(place.low * unit, place.high * unit, place.target_low * target, place.target_high * target)
    if place is None:
        return None
    units = np.append(np.full(place.matrix.shape[1] - regression, unit), [target] * regression)
    return Polytope(place.matrix / units, place.limits)
