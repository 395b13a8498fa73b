"""The estimator as a learner: it drives the level bundle over single answers, and tells sets and intervals.

It has features and targets as a plan's vaults make them, by the ranges and scales of the contract, to which estimates
and intervals are cut as the predictor cuts them; and its folds hold whole machines where the table names them.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from models.basics import FloatArray, ProblemError
from models.estimators import FederatedDRClassifier, FederatedDRRegressor
from tests.benchmarks.accuracy.contract import contract_of, in_shares
from tests.benchmarks.accuracy.deal import Part, class_numbers
from tests.benchmarks.accuracy.outcome import COVERAGE, Learner, Outcome, task_of

ROUNDS = 100
GAP = 1e-3
"""Rounds and gap of a plan that says nothing of them."""


def estimator(tuning: str | None) -> Learner:
    """The estimator over the plants, each with its own rows; ``tuning`` "auto" or None for the defaults of a plan."""

    def learner(train: Part, test: Part, seed: int) -> Outcome:
        contract = contract_of(train)
        features, held = in_shares(train.features, contract), in_shares(test.features, contract)
        low, span = _range_of(train)
        began = time.perf_counter()
        model = _ballast_model(task_of(train), tuning, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            if task_of(train) == "classification":
                model.fit(features, train.outcomes, groups=train.plants, machines=train.machines)
            else:
                model.fit(features, (train.outcomes - low) / span, groups=train.plants, machines=train.machines)
            seconds = time.perf_counter() - began
            tuned = tuning is not None
            said = {
                "rounds": model.n_rounds_ + (model.tuning_rounds_ if tuned else 0),
                "bytes_per_site": model.bytes_per_site_ + (model.tuning_bytes_per_site_ if tuned else 0),
                "tuning_rounds": model.tuning_rounds_ if tuned else None,
                "tuning_bytes": model.tuning_bytes_per_site_ if tuned else None,
            }
        predicted = model.predict(held)
        if task_of(train) == "regression":
            predicted = low + span * np.clip(predicted, 0.0, 1.0)
        coverage, width = _coverage_and_width(model, held, test, low, span)
        return Outcome(predicted, seconds, **said, coverage=coverage, width=width)

    return learner


def _ballast_model(task: str, tuning: str | None, seed: int) -> Any:
    known = {
        "method": "level-bundle", "gap": GAP, "max_rounds": ROUNDS, "client_weights": "uniform", "tuning": tuning,
        "random_state": seed,
    }
    if task == "classification":
        return FederatedDRClassifier(**known)
    return FederatedDRRegressor(loss="pinball", **known)


def _coverage_and_width(
    model: Any, held: FloatArray, test: Part, low: float, span: float
) -> tuple[float | None, float | None]:
    """Share of the test rows in their set or interval, and its mean size; None where held-out rows are too few."""
    classes = task_of(test) == "classification"
    try:
        found = model.predict_set(held, COVERAGE) if classes else model.predict_interval(held, COVERAGE)
    except ProblemError:
        return None, None
    if classes:
        covered, sizes = found[np.arange(len(held)), class_numbers(model.classes_, test.outcomes)], found.sum(axis=1)
    else:
        found = low + span * np.clip(found, 0.0, 1.0)
        covered, sizes = (found[:, 0] <= test.outcomes) & (test.outcomes <= found[:, 1]), found[:, 1] - found[:, 0]
    return float(covered.mean()), float(sizes.mean())


def _range_of(part: Part) -> tuple[float, float]:
    if task_of(part) == "classification":
        return 0.0, 1.0
    low, high = float(part.outcomes.min()), float(part.outcomes.max())
    return low, high - low or 1.0
