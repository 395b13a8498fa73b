"""All that the oracle asks of the project: what it claims, in plain numbers. Nothing else here imports ``models``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.basics import ProblemError
from models.centralised.bundle import train_at_hand
from models.estimators import FederatedDRClassifier, FederatedDRRegressor, FederatedDRSVC
from models.evaluation.robustness_radius import robustness_radius
from models.geometry.supports import BoxSupport, PolytopeSupport
from models.losses.catalogue import get_loss
from models.problem import RobustSpec, SiteProblem
from models.simulation.federation import train
from models.site_ambiguity.ball import MixtureBall
from models.worst_case.distribution import worst_case_atoms
from models.worst_case.risk import site_cut, worst_case_risk
from tests.oracles.wasserstein.draw import Drawn
from tests.oracles.wasserstein.losses import Array
from tests.oracles.wasserstein.problem import Box, OracleSite, gain_of_unit

Refused = ProblemError
"""What the project raises where a problem has no meaning to it."""

ROUNDS = {"auto": 300, "estimator": 300, "level-bundle": 300}
"""Limits of rounds of what must close its gap; of other methods a few rounds are enough: bounds hold in each."""
FEW_ROUNDS, POLYTOPE_ROUNDS, GAP = 30, 60, 1e-4


@dataclass(frozen=True)
class Risk:
    """Claimed risk, what it may be above the true one, the price of transport, and bounds at other planes.

    ``cuts`` give a bound at (plane, intercept) and the size of the numbers that it is a sum of.
    """

    value: float
    slack: float
    price: float
    cuts: tuple[Callable[[Array, float], tuple[float, float]], ...]


@dataclass(frozen=True)
class Fit:
    """A claimed optimum."""

    plane: Array
    intercept: float
    upper: float
    lower: float
    rounds: int
    closes: bool


def claimed_risk(site: OracleSite, plane: Array, intercept: float) -> Risk:
    """Worst-case risk with its two kinds of cut: by the subgradient, and with the norm apart."""
    stated = _stated(site, True)
    whole = np.append(plane, intercept)
    found = worst_case_risk(
        plane, site.features, site.labels, radius=site.radius, label_flip_cost=site.flip_cost,
        transport_norm=stated.spec.transport_norm, support=stated.spec.support, intercept=intercept,
        loss=stated.spec.loss,
    )
    cut = site_cut(whole, stated)
    gradient = np.append(found.subgradient, found.intercept_subgradient)

    def by_subgradient(u: Array, c: float) -> tuple[float, float]:
        there = np.append(u, c)
        size = abs(found.value) + float(np.abs(gradient) @ (np.abs(there) + np.abs(whole)))
        return cut.height + float(gradient @ (there - whole)), size

    def with_norm(u: Array, c: float) -> tuple[float, float]:
        there, norm = np.append(u, c), site.norm
        norms = cut.norm_weight * gain_of_unit(u, norm), cut.norm_weight * gain_of_unit(plane, norm)
        swing = np.zeros(plane.size) if cut.swing is None else cut.swing
        swings = float(swing @ np.abs(u)), float(swing @ np.abs(plane))
        size = abs(cut.height) + float(np.abs(cut.slope) @ (np.abs(there) + np.abs(whole))) + sum(norms) + sum(swings)
        return cut.height + float(cut.slope @ (there - whole)) + norms[0] - norms[1] + swings[0] - swings[1], size

    return Risk(found.value, found.value - cut.height, found.dual, (by_subgradient, with_norm))


def claimed_atoms(site: OracleSite, plane: Array, intercept: float) -> Any:
    """Atoms of the worst case: points, labels, masses, source, risk, transport; hinge, no support or a box."""
    box = site.support
    return worst_case_atoms(
        plane, site.features, site.labels, radius=site.radius, label_flip_cost=site.flip_cost,
        transport_norm=site.norm, support=(box.low, box.high) if isinstance(box, Box) else None, intercept=intercept,
    )  # type: ignore[arg-type]  # the norm is a plain string here


def claimed_radius(planes: Array, features: Array, norm: str) -> Array:
    """Smallest change of each row that changes its diagnosis; planes (K, P + 1)."""
    return robustness_radius(planes, features, norm)  # type: ignore[arg-type]  # the norm is a plain string here


def claimed_fit(drawn: Drawn) -> Fit:
    """Train as the drawn problem says; an estimator where it can state the problem."""
    limit = POLYTOPE_ROUNDS if drawn.support == "polytope" else ROUNDS.get(drawn.route, FEW_ROUNDS)
    closes = drawn.route in ROUNDS and drawn.support != "polytope"
    classes = len({y for site in drawn.sites for y in site.labels.tolist()})
    if drawn.route == "estimator" and (drawn.loss.regression or classes == 2):
        made = _estimator(drawn, limit)
        upper = float(made.worst_case_risk_)
        lower = upper * (1.0 - float(made.certified_gap_))
        return Fit(np.ravel(made.coef_), float(np.ravel(made.intercept_)[0]), upper, lower, made.n_rounds_, closes)
    sites = {str(g): _stated(site, drawn.fit_intercept) for g, site in enumerate(drawn.sites)}
    shares = {str(g): float(share) for g, share in enumerate(drawn.shares)}
    ball = MixtureBall(drawn.mixture_norm, drawn.mixture_radius)  # type: ignore[arg-type]  # a plain string here
    if drawn.route in ("auto", "estimator"):
        run = train_at_hand(sites, weights=shares, mixture=ball, gap=GAP, max_rounds=limit)
    else:
        run = train(sites, weights=shares, mixture=ball, method=drawn.route, gap=GAP, max_rounds=limit)
    p = drawn.sites[0].features.shape[1]
    intercept = float(run.weights[p]) if drawn.fit_intercept else 0.0
    return Fit(run.weights[:p], intercept, run.certificate.upper, run.certificate.lower, run.n_rounds, closes)


def _estimator(drawn: Drawn, limit: int) -> Any:
    sites, loss = drawn.sites, drawn.loss
    groups = np.concatenate([np.full(site.labels.shape[0], g) for g, site in enumerate(sites)])
    shares = {g: float(share) for g, share in enumerate(drawn.shares)}
    common = {
        "radius": {g: site.radius for g, site in enumerate(sites)}, "transport_norm": sites[0].norm,
        "support": _stated(sites[0], True).spec.support, "fit_intercept": drawn.fit_intercept, "gap": GAP,
        "max_rounds": limit,
    }
    clients = {
        "client_radius": drawn.mixture_radius, "client_norm": drawn.mixture_norm, "client_weights": shares,
    }
    cost = sites[0].flip_cost
    if loss.regression:
        number = {"quantile" if loss.name == "pinball" else "epsilon": loss.parameter}
        made: Any = FederatedDRRegressor(loss.name, target_cost=cost, **number, **common, **clients)
    elif loss.name == "hinge" and drawn.mixture_radius == 0 and drawn.support == "none":
        made = FederatedDRSVC(label_flip_cost=cost, weights=shares, **common)
    else:
        made = FederatedDRClassifier(loss.name, label_flip_cost=cost, **common, **clients)
    return made.fit(
        np.vstack([site.features for site in sites]), np.concatenate([site.labels for site in sites]), groups=groups
    )


def _stated(site: OracleSite, fit_intercept: bool) -> SiteProblem:
    loss, place, p = site.loss, site.support, site.features.shape[1]
    number = {"pinball": {"quantile": loss.parameter}}.get(loss.name, {"epsilon": loss.parameter})
    support: BoxSupport | PolytopeSupport | None = None
    if isinstance(place, Box):
        support = BoxSupport(place.low, place.high, place.target_low, place.target_high)
    elif place is not None:
        support = PolytopeSupport(place.matrix[:, :p], place.limits, place.matrix[:, p] if loss.regression else None)
    spec = RobustSpec(
        site.radius, site.flip_cost, site.norm, support, fit_intercept,  # type: ignore[arg-type]  # a plain string here
        get_loss(loss.name, **(number if loss.regression else {})),
    )
    return SiteProblem(site.features, site.labels, spec)
