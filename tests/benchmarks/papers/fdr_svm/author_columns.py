"""Columns in the settings of the authors' published code; ``authors`` says where that differs from the text.

Features by set, FedDRO's temperature by set, steps gamma / sqrt. ADMM-SC is judged in cross-validation with
tau = 18 rho, and fitted on the UCI sets with tau = 0, which is plain ADMM; on the pump the code keeps 18 rho.
On the pump it tunes more of the rivals: gamma out of .01, .1 and 1, the ridge's beta out of 10 and 100, FedProx's mu
out of .1 and 1, FedDRO's tracking out of .01 and .1 gamma, always at 220 rounds.

All runs of a column, those of the folds and the last one on all training rows, go side by side with all candidates; the
choice is the one of ``columns.as_printed``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from models.basics import FloatArray
from tests.benchmarks.papers.fdr_svm.authors import IN_UNIT_BOX, TEMPERATURES, TRACKING, fedavg, feddro, fedsgd
from tests.benchmarks.papers.fdr_svm.choice import Cell, Grid, as_printed, first_best, judge, sites_of
from tests.benchmarks.papers.fdr_svm.printed import admm_points
from tests.benchmarks.papers.fdr_svm.rivals import STEPS, Knob
from tests.benchmarks.papers.fdr_svm.runs import Runs, stacked
from tests.benchmarks.papers.fdr_svm.uci import Split, f1_positive, scaled

RIVALS = ("FedSGD", "FedAvg", "FedProx", "FedDRO (KL)")
PUMP_ROUNDS = 220  # on the pump's set no other number is tried
PUMP_STEPS, PUMP_BETAS = (1e-2, 1e-1, 1.0), (10.0, 100.0)


def knobs(name: str, chosen: str) -> tuple[Knob, ...]:
    """What a rival chooses from on a set: gamma; with mu for FedProx, with the tracking for FedDRO."""
    steps = PUMP_STEPS if chosen == "pump" else STEPS
    if name == "FedProx":
        return tuple(product(steps, (0.1, 1.0) if chosen == "pump" else (1.0,)))
    if name == "FedDRO (KL)":
        factors = (0.01, 0.1) if chosen == "pump" else (TRACKING.get(chosen, 0.1),)
        return tuple((step, factor * step) for step, factor in product(steps, factors))
    return steps


def rival_points(name: str, chosen: str, runs: Runs, candidates: tuple[Knob, ...], rounds: int) -> Iterator[FloatArray]:
    """The server's points (R, C, P) of all candidates after each round; ``chosen`` is the set, or "pump".

    A candidate is a step; or a step with FedProx's mu; or a step with FedDRO's tracking and, if not the set's own, its
    temperature.
    """
    known = [knob if isinstance(knob, tuple) else (knob,) for knob in candidates]
    steps = np.array([knob[0] for knob in known])
    if name == "FedSGD":
        return fedsgd(runs, steps, rounds)
    more = np.array([knob[1] if len(knob) > 1 else 0.0 for knob in known])
    if name == "FedDRO (KL)":
        temperature = np.array([knob[2] if len(knob) > 2 else TEMPERATURES[chosen] for knob in known])
        return feddro(runs, steps, rounds, temperature=temperature, tracking=more)
    return fedavg(runs, steps, rounds, proximal=more)


def tuned_rival(
    name: str, data: Split, candidates: tuple[Knob, ...], *,
    betas: tuple[float, ...], rounds: tuple[int, ...], folds: int,
) -> Cell:
    """Choose candidate, rounds and the ridge ``||w||^2 / (beta N_g)`` by cross-validation; score the test part once."""
    began, outside = time.perf_counter(), [data.fold == fold for fold in range(folds)]
    parts = [~rows for rows in outside] + [np.ones_like(data.fold, dtype=bool)]
    runs = stacked([sites_of(data, rows, beta, 1.0) for beta in betas for rows in parts])
    at = {}
    for t, points in enumerate(rival_points(name, data.name, runs, candidates, rounds[-1]), start=1):
        if t in rounds:
            at[t] = points.reshape(len(betas), len(parts), len(candidates), -1).copy()
    scores = np.zeros((len(betas), len(candidates), len(rounds)))
    for fold, rows in enumerate(outside):
        for a, b, t in np.ndindex(scores.shape):
            weights = at[rounds[t]][a, fold, b]
            scores[a, b, t] += f1_positive(data.labels[rows], data.features[rows] @ weights)
    a, b, t = first_best(scores)
    tuned = {"rounds": rounds[t], "knob": candidates[b], "beta": betas[a], "label_flip_cost": "1.0"}
    return judge(data, data.test_features @ at[rounds[t]][a, -1, b], math.nan, began, tuned)


def authors_rival(name: str) -> Callable[[Split, Grid], Cell]:
    """A rival as the code runs it; beta is 10 on the UCI sets."""

    def column(data: Split, grid: Grid) -> Cell:
        chosen, data = data.name, scaled(data) if data.name in IN_UNIT_BOX else data
        betas = PUMP_BETAS if chosen == "pump" and name != "FedDRO (KL)" else (10.0,)
        rounds = (PUMP_ROUNDS,) if chosen == "pump" else grid.rounds
        return tuned_rival(name, data, knobs(name, chosen), betas=betas, rounds=rounds, folds=grid.folds)

    return column


def authors_admm_sc(data: Split, grid: Grid) -> Cell:
    """ADMM-SC as the code runs it on the UCI sets: rho and rounds chosen with tau = 18 rho, fitted with tau = 0."""
    return as_printed(
        data, grid, grid.rounds, grid.rhos, lambda s, c, t: admm_points(s, c, 18.0 * c, t),
        final=None if data.name == "pump" else lambda s, c, t: admm_points(s, c, 0.0, t),
    )


AUTHORS = {f"{name}, code's settings": authors_rival(name) for name in RIVALS} | {
    "ADMM-SC, code's tau": authors_admm_sc
}
