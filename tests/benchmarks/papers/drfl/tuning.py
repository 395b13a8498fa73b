r"""Five-fold cross-validation on the training clients, and the curves of the model that it chooses.

Folds are drawn within each client. A setting's score on a fold is the mean over the clients of their own accuracy
(minus their mean squared error), on the rows as the clients have them, client 1's noise and all. Of all settings whose
mean score is within one standard error of the best, the most robust is taken (the one-standard-error rule): the one
whose optimal worst-case risk is the largest, that is, whose set of distributions is the hardest to be good on. The
same rule holds for every method. Nothing here reads the test rows before the one chosen model is scored on them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray
from tests.benchmarks.papers.drfl.methods import METHODS, fit, score, tuner
from tests.benchmarks.papers.drfl.settings import Grid, Setting
from tests.benchmarks.papers.drfl.tables import N_FOLDS, Rows, Scenario, load, split

FINAL_GAP = 1e-4
NOISE_DRAWS = 10
"""Draws of the test noise that a level's score is the mean of; the same ones for every method."""


@dataclass(frozen=True)
class Cell:
    """A method on a repetition: the setting, its score, the curves (JSON: one list a sweep), gap and seconds."""

    setting: str
    validation: float
    curves: str
    gap: float
    seconds: float


@dataclass(frozen=True)
class Tried:
    """A setting, its scores on the folds (5,), and its mean optimal worst-case risk over them."""

    setting: Setting
    scores: FloatArray
    risk: float


def choose(tried: Sequence[Tried]) -> Tried:
    """The setting of the largest worst-case risk among those within one standard error of the best score."""
    best = max(tried, key=lambda one: (float(one.scores.mean()), one.risk))
    error = float(best.scores.std(ddof=1)) / np.sqrt(best.scores.shape[0])
    level = float(best.scores.mean()) - error - 1e-12
    return max((one for one in tried if one.scores.mean() >= level), key=lambda one: one.risk)


def tune(rows: Rows, method: str, grid: Grid, scenario: Scenario) -> tuple[Setting, float]:
    """The chosen setting and its mean score; nothing is fitted where there is no choice."""
    settings = list(METHODS[method](grid))
    if len(settings) == 1:
        return settings[0], float("nan")
    scores, risks = np.empty((2, len(settings), N_FOLDS))
    for fold in range(N_FOLDS):
        fitted = tuner(rows.where(rows.fold != fold), method, scenario.task)
        for i, setting in enumerate(settings):
            found = fitted(setting)
            scores[i, fold] = score(found.weights, rows.where(rows.fold == fold), scenario.task)
            risks[i, fold] = found.risk
    chosen = choose([Tried(each, scores[i], float(risks[i].mean())) for i, each in enumerate(settings)])
    return chosen.setting, float(chosen.scores.mean())


def curves(weights: FloatArray, test: Rows, scenario: Scenario, repetition: int) -> list[list[float]]:
    """Score at every level of every sweep: accuracy, or mean squared error."""
    sign = 1.0 if scenario.task == "classification" else -1.0
    found = []
    for s, sweep in enumerate(scenario.sweeps):
        line = []
        for noise in sweep.noises:
            rng = np.random.default_rng([repetition, s])  # the same standard normals at every level
            drawn = [
                score(weights, Rows(noise.on(test.features, rng), test.labels, test.client, test.fold), scenario.task)
                for _ in range(NOISE_DRAWS)
            ]
            line.append(sign * float(np.mean(drawn)))
        found.append(line)
    return found


def run_cell(scenario: Scenario, method: str, repetition: int, grid: Grid) -> Cell:
    """Split, tune, fit to a certified gap, score."""
    features, labels = load(scenario)
    train, test = split(scenario, features, labels, repetition)
    return study(scenario, train, test, method, repetition, grid)


def study(scenario: Scenario, train: Rows, test: Rows, method: str, repetition: int, grid: Grid) -> Cell:
    """A cell on rows that are at hand."""
    began = time.perf_counter()
    setting, validation = tune(train, method, grid, scenario)
    found = fit(train, method, setting, scenario.task, FINAL_GAP)
    chosen = {"rho": setting.radius, "kappa": setting.label_flip_cost, "theta": setting.theta}
    lines = curves(found.weights, test, scenario, repetition)
    return Cell(json.dumps(chosen), validation, json.dumps(lines), found.gap, time.perf_counter() - began)
