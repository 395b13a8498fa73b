"""The columns of the tables: each takes a split, tunes on its training part alone, and scores the test part once."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from models.basics import FloatArray, TransportNorm
from models.centralised.hinge import train_pooled
from models.features.fourier import FourierLift, fourier_lift
from models.problem import RobustSpec, SiteProblem
from models.simulation.federation import Training
from tests.benchmarks.papers.fdr_svm.choice import Cell, Grid, as_printed, judge
from tests.benchmarks.papers.fdr_svm.printed import admm_points, sm_points
from tests.benchmarks.papers.fdr_svm.rivals import knobs as rival_knobs
from tests.benchmarks.papers.fdr_svm.rivals import rival_points
from tests.benchmarks.papers.fdr_svm.uci import N_FOLDS, Split, f1_positive, scaled

RADII = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2)
FLIP_COSTS = (0.25, 1.0, math.inf)
BANDWIDTHS = (0.3, 0.6, 1.2)
COMPONENTS = 80
LIFT_SEED = 1
TUNING = 1e-5
"""Relative gap of the fits that are only compared in cross-validation."""


def sm_text(data: Split, grid: Grid) -> Cell:
    """SM as printed: step gamma / t, features in [0, 1]."""
    return as_printed(scaled(data), grid, grid.rounds_sm, grid.steps, lambda s, c, t: sm_points(s, c, 1.0, t))


def sm_code(data: Split, grid: Grid) -> Cell:
    """SM with the step of the authors' code, gamma / sqrt(t)."""
    return as_printed(scaled(data), grid, grid.rounds_sm, grid.steps, lambda s, c, t: sm_points(s, c, 0.5, t))


def admm(data: Split, grid: Grid) -> Cell:
    """ADMM as printed: raw features, no intercept, rounds tuned, no stopping rule."""
    return as_printed(data, grid, grid.rounds, grid.rhos, lambda s, c, t: admm_points(s, c, 0.0, t))


def admm_sc(data: Split, grid: Grid) -> Cell:
    """ADMM-SC as printed: tau = 18 rho."""
    return as_printed(data, grid, grid.rounds, grid.rhos, lambda s, c, t: admm_points(s, c, 18.0 * c, t))


def admm_reg(data: Split, grid: Grid) -> Cell:
    """ADMM-REG: ADMM as printed with label flip cost infinity, the regularised SVM of the paper's first version."""
    plain = replace(grid, flip_costs=(math.inf,))
    return as_printed(data, plain, grid.rounds, grid.rhos, lambda s, c, t: admm_points(s, c, 0.0, t))


def rival(name: str, *, unit: bool = False) -> Callable[[Split, Grid], Cell]:
    """A federated rival: no intercept, rounds and first step tuned; features raw or, like those of SM, in [0, 1]."""

    def column(data: Split, grid: Grid) -> Cell:
        plain = replace(grid, flip_costs=(1.0,), betas=(10.0,))
        data = scaled(data) if unit else data
        return as_printed(data, plain, grid.rounds, rival_knobs(name), lambda s, c, t: rival_points(name, s, c, t))

    return column


def central(data: Split, grid: Grid) -> Cell:
    """The centralised DR-SVM of the paper: raw features, no intercept, radius and label flip cost tuned."""
    began = time.perf_counter()
    choices = [(radius, cost) for radius in (1e-5, 1e-4, 1e-3, 1e-2, 1e-1) for cost in (0.1, 0.25, 0.5, 0.75, 1.0)]
    one = np.zeros_like(data.site)

    def fit(rows: np.ndarray, radius: float, cost: float) -> Training:
        return _train(data.features[rows], data.labels[rows], one[rows], (radius,), cost, "linf", False)

    scores = np.zeros(len(choices))
    for fold in range(grid.folds):
        inside, outside = data.fold != fold, data.fold == fold
        for c, choice in enumerate(choices):
            scores[c] += f1_positive(data.labels[outside], data.features[outside] @ fit(inside, *choice).weights)
    radius, cost = choices[int(np.argmax(scores))]
    fitted = fit(np.ones_like(data.fold, dtype=bool), radius, cost)
    tuned = {"radius": radius, "label_flip_cost": cost}
    return judge(data, data.test_features @ fitted.weights, fitted.certificate.gap, began, tuned)


def mended(data: Split, grid: Grid) -> Cell:
    """The paper's problem itself (raw features, no intercept, radius ``1 / (beta N_g)``) solved to its optimum.

    The exact worst case, stopped by a certificate: there are no rounds or step sizes left to tune.
    """
    began = time.perf_counter()
    choices = [(beta, cost) for beta in grid.betas for cost in grid.flip_costs]

    def fit(rows: np.ndarray, beta: float, cost: float) -> Training:
        radii = tuple(1.0 / (beta * int((data.site == g).sum())) for g in np.unique(data.site))
        return _train(data.features[rows], data.labels[rows], data.site[rows], radii, cost, "linf", False)

    scores = np.zeros(len(choices))
    for fold in range(grid.folds if len(choices) > 1 else 0):
        inside, outside = data.fold != fold, data.fold == fold
        for c, choice in enumerate(choices):
            scores[c] += f1_positive(data.labels[outside], data.features[outside] @ fit(inside, *choice).weights)
    beta, cost = choices[int(np.argmax(scores))]
    fitted = fit(np.ones_like(data.fold, dtype=bool), beta, cost)
    tuned = {"beta": beta, "label_flip_cost": cost}
    return judge(data, data.test_features @ fitted.weights, fitted.certificate.gap, began, tuned)


def ballast(data: Split, grid: Grid) -> Cell:
    """Ballast's default: intercept, ranges scaled to [0, 1], transport norm l2, and what cross-validation picks.

    First the lift (none, or 80 random Fourier features of one of three bandwidths) with the radius, at label flip cost
    1; then the label flip cost at the best of these. Among equals no lift and the larger radius win.
    """
    began = time.perf_counter()
    data = scaled(data, by_sensor=True)
    lifts = {"none": None} | {f"{width:g}": _lift(data.features.shape[1], width) for width in BANDWIDTHS}
    lifted = {name: _lifted(data.features, lift) for name, lift in lifts.items()}
    first = [(name, radius, 1.0) for name in lifts for radius in reversed(RADII)]
    name, radius, _ = _best(data, lifted, first)
    name, radius, cost = _best(data, lifted, [(name, radius, cost) for cost in (1.0, *FLIP_COSTS)])
    fitted = _train(lifted[name], data.labels, data.site, (radius,), cost, "l2", True)
    scores = _lifted(data.test_features, lifts[name]) @ fitted.weights[:-1] + fitted.weights[-1]
    tuned = {"lift_bandwidth": name, "radius": radius, "label_flip_cost": str(cost)}
    return judge(data, scores, fitted.certificate.gap, began, tuned)


def _lift(n_features: int, width: float) -> FourierLift:
    """Bandwidths in shares of half the diagonal of the unit box."""
    return fourier_lift(n_features, COMPONENTS, bandwidth=0.5 * width * math.sqrt(n_features), seed=LIFT_SEED)


def _lifted(features: FloatArray, lift: FourierLift | None) -> FloatArray:
    return features if lift is None else lift.apply(features)


def _best(
    data: Split, lifted: dict[str, FloatArray], choices: list[tuple[str, float, float]]
) -> tuple[str, float, float]:
    """Choice with the best F-1 over the folds; the first one among equals."""
    scores = np.zeros(len(choices))
    for fold in range(N_FOLDS):
        inside, outside = data.fold != fold, data.fold == fold
        for c, (name, radius, cost) in enumerate(choices):
            x = lifted[name]
            weights = _train(
                x[inside], data.labels[inside], data.site[inside], (radius,), cost, "l2", True, TUNING
            ).weights
            scores[c] += f1_positive(data.labels[outside], x[outside] @ weights[:-1] + weights[-1])
    return choices[int(np.argmax(np.round(scores, 12)))]


def _train(
    features: FloatArray,
    labels: FloatArray,
    site: np.ndarray,
    radii: tuple[float, ...],
    flip_cost: float,
    norm: TransportNorm,
    intercept: bool,
    tolerance: float = 1e-10,
) -> Training:
    """Federated objective over the sites with equal weights, at its certified optimum."""
    sites = {}
    for position, g in enumerate(np.unique(site)):
        spec = RobustSpec(radii[position % len(radii)], flip_cost, norm, fit_intercept=intercept)
        sites[str(g)] = SiteProblem(features[site == g], labels[site == g], spec)
    return train_pooled(sites, tolerance=tolerance)
