"""The columns of the tables: each takes a split, tunes on its training part alone, and scores the test part once."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from models.basics import FloatArray, TransportNorm
from models.centralised.hinge import train_pooled
from models.features.fourier import FourierLift, fourier_lift
from models.problem import RobustSpec, SiteProblem
from models.simulation.federation import Training
from tests.benchmarks.papers.fdr_svm.printed import ROUNDS, ROUNDS_SM, Site, admm_points, sm_points
from tests.benchmarks.papers.fdr_svm.rivals import Knob, rival_points
from tests.benchmarks.papers.fdr_svm.rivals import knobs as rival_knobs
from tests.benchmarks.papers.fdr_svm.uci import N_FOLDS, Split, correct_rate, f1_macro, f1_positive, scaled

RHOS = (1e-3, 1e-2, 1e-1, 1.0)
STEPS = (1.0, 1e1, 1e2, 1e3)
RADII = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2)
FLIP_COSTS = (0.25, 1.0, math.inf)
BANDWIDTHS = (0.3, 0.6, 1.2)
COMPONENTS = 80
LIFT_SEED = 1
TUNING = 1e-5
"""Relative gap of the fits that are only compared in cross-validation."""
QUICK_FOLDS = 2
QUICK_ROUNDS = 60


@dataclass(frozen=True)
class Cell:
    """What a column makes of a repetition. ``gap`` is the certified relative gap of the final fit, NaN without one."""

    f1: float
    f1_macro: float
    correct_rate: float
    gap: float
    seconds: float
    tuned: str


@dataclass(frozen=True)
class Grid:
    """What the columns as printed may choose from, and how many of the folds judge it."""

    rounds: tuple[int, ...] = ROUNDS
    rounds_sm: tuple[int, ...] = ROUNDS_SM
    rhos: tuple[float, ...] = RHOS
    steps: tuple[float, ...] = STEPS
    flip_costs: tuple[float, ...] = (1.0,)
    betas: tuple[float, ...] = (10.0,)
    folds: int = N_FOLDS


def quick(grid: Grid) -> Grid:
    """The grid of ``--quick``: two of the five folds judge, and no run is longer than 60 rounds (SM 140)."""
    return Grid(
        tuple(t for t in grid.rounds if t <= QUICK_ROUNDS) or (QUICK_ROUNDS,),
        tuple(t for t in grid.rounds_sm if t <= 140) or (140,),
        grid.rhos, grid.steps, grid.flip_costs, grid.betas, QUICK_FOLDS,
    )


def sites_of(data: Split, rows: np.ndarray, beta: float, flip_cost: float) -> list[Site]:
    """Sites of some training rows; the radius ``1 / (beta N_g)`` is that of the whole site, as in the authors' code."""
    return [
        Site(
            data.features[rows & (data.site == g)], data.labels[rows & (data.site == g)],
            1.0 / (beta * int((data.site == g).sum())), flip_cost,
        )
        for g in np.unique(data.site)
    ]


Points = Callable[[list[Site], Any, int], Iterable[FloatArray]]


def as_printed(
    data: Split, grid: Grid, rounds: tuple[int, ...], knobs: Sequence[Knob], points: Points,
    final: Points | None = None,
) -> Cell:
    """Tune rounds and one knob (and what the grid has of flip cost and beta) by cross-validation; first best wins.

    ``final`` makes the points of the fit on all training rows, where it is another method than the one that was tuned.
    """
    began = time.perf_counter()
    local = [(beta, cost) for beta in grid.betas for cost in grid.flip_costs]
    scores = np.zeros((len(local), len(knobs), len(rounds)))
    for fold in range(grid.folds):
        inside, outside = data.fold != fold, data.fold == fold
        for a, (beta, cost) in enumerate(local):
            sites = sites_of(data, inside, beta, cost)
            for b, knob in enumerate(knobs):
                for t, weights in enumerate(points(sites, knob, rounds[-1]), start=1):
                    if t in rounds:
                        judged = f1_positive(data.labels[outside], data.features[outside] @ weights)
                        scores[a, b, rounds.index(t)] += judged
    # The authors' table has rounds first: among equals the fewest rounds win.
    first = np.moveaxis(scores, 2, 0)
    t, a, b = (int(index) for index in np.unravel_index(np.argmax(first), first.shape))
    everything = sites_of(data, np.ones_like(data.fold, dtype=bool), *local[a])
    *_, weights = (final or points)(everything, knobs[b], rounds[t])
    tuned = {"rounds": rounds[t], "knob": knobs[b], "beta": local[a][0], "label_flip_cost": str(local[a][1])}
    return judge(data, data.test_features @ weights, math.nan, began, tuned)


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


def judge(data: Split, scores: FloatArray, gap: float, began: float, tuned: dict[str, Any]) -> Cell:
    """The cell of scores of the test rows."""
    labels = data.test_labels
    return Cell(
        f1_positive(labels, scores), f1_macro(labels, scores), correct_rate(labels, scores), gap,
        time.perf_counter() - began, json.dumps(tuned),
    )
