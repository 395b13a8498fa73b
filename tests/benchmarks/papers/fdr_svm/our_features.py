"""The authors' rivals on what Ballast's own columns have: an intercept, and features in [0, 1].

That is not in the paper. It keeps apart what a rival lacks as a method and what it lacks as a model: in the code's
settings most rivals run on raw features, and all without an intercept. In [0, 1] gradients are small, so the grid
goes on to steps of 10 and 100. FedDRO's temperature, which the code has by set for its features, is tuned, too. The
intercept is a feature that is always 1, which the ridge shrinks like the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np

from models.basics import FloatArray
from tests.benchmarks.papers.fdr_svm.author_columns import RIVALS, tuned_rival
from tests.benchmarks.papers.fdr_svm.choice import Cell, Grid
from tests.benchmarks.papers.fdr_svm.rivals import STEPS, Knob
from tests.benchmarks.papers.fdr_svm.uci import Split, scaled

WIDER_STEPS = (*STEPS, 10.0, 100.0)
TEMPERATURES = (1.0, 10.0, 100.0)


def knobs(name: str) -> tuple[Knob, ...]:
    """What a rival chooses from: gamma; with mu for FedProx; with tracking 0.1 gamma, at most 1, for FedDRO.

    FedProx has the two mu that the code tries on the pump, where gamma mu is at most 1: above 2 the pull diverges.
    """
    if name == "FedProx":
        return tuple((step, pull) for step, pull in product(WIDER_STEPS, (0.1, 1.0)) if step * pull <= 1.0)
    if name == "FedDRO (KL)":
        return tuple((step, min(0.1 * step, 1.0), each) for step, each in product(WIDER_STEPS, TEMPERATURES))
    return WIDER_STEPS


def with_intercept(data: Split) -> Split:
    """Features in [0, 1], test rows clipped to it as the predictor does, and a feature that is always 1."""
    data = scaled(data, by_sensor=True)
    return replace(data, features=_extended(data.features), test_features=_extended(data.test_features))


def _extended(features: FloatArray) -> FloatArray:
    return np.column_stack([np.clip(features, 0.0, 1.0), np.ones(features.shape[0])])


def rival(name: str) -> Callable[[Split, Grid], Cell]:
    """A rival on our features; the ridge is ``||w||^2 / (10 N_g)``, FedDRO has none."""

    def column(data: Split, grid: Grid) -> Cell:
        data = with_intercept(data)
        return tuned_rival(name, data, knobs(name), betas=(10.0,), rounds=grid.rounds, folds=grid.folds)

    return column


SUFFIX = ", our features"
ON_OUR_FEATURES = {name + SUFFIX: rival(name) for name in RIVALS}
