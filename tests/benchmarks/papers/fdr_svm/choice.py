"""Choosing by cross-validation on the training part, and what a column returns: the parts that columns share."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.basics import FloatArray
from tests.benchmarks.papers.fdr_svm.printed import ROUNDS, ROUNDS_SM, Site
from tests.benchmarks.papers.fdr_svm.rivals import Knob
from tests.benchmarks.papers.fdr_svm.uci import N_FOLDS, Split, correct_rate, f1_macro, f1_positive

RHOS = (1e-3, 1e-2, 1e-1, 1.0)
STEPS = (1.0, 1e1, 1e2, 1e3)
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
    a, b, t = first_best(scores)
    everything = sites_of(data, np.ones_like(data.fold, dtype=bool), *local[a])
    *_, weights = (final or points)(everything, knobs[b], rounds[t])
    tuned = {"rounds": rounds[t], "knob": knobs[b], "beta": local[a][0], "label_flip_cost": str(local[a][1])}
    return judge(data, data.test_features @ weights, math.nan, began, tuned)


def first_best(scores: FloatArray) -> tuple[int, int, int]:
    """Place of the best of scores (local, knobs, rounds); among equals the fewest rounds win.

    The authors' table has rounds first.
    """
    first = np.moveaxis(scores, 2, 0)
    t, a, b = (int(index) for index in np.unravel_index(np.argmax(first), first.shape))
    return a, b, t


def judge(data: Split, scores: FloatArray, gap: float, began: float, tuned: dict[str, Any]) -> Cell:
    """The cell of scores of the test rows."""
    labels = data.test_labels
    return Cell(
        f1_positive(labels, scores), f1_macro(labels, scores), correct_rate(labels, scores), gap,
        time.perf_counter() - began, json.dumps(tuned),
    )
