"""The learners: Ballast as a plan comes and tuned, what a user would pick on pooled rows, each plant alone.

Ballast is the service itself (``service``), or the estimator, which drives the level bundle over single answers and
tells sets and intervals too. Features are scaled to [0, 1] by the drafted ranges of the training rows for both
(``contract``), and standardised for the others, as are targets: a grid of tolerances and penalties has no meaning
in a target's own unit. Every rival's grid is searched by three-fold cross-validation on
what it trains on, and keeps machines whole where the table names them, as a tuning of Ballast does.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import f1_score, mean_absolute_error
from sklearn.model_selection import GridSearchCV, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

from models.basics import FloatArray
from services.contracts.wire.messages import Reveal
from tests.benchmarks.accuracy.deal import PLANTS, Part
from tests.benchmarks.accuracy.estimated import estimator
from tests.benchmarks.accuracy.outcome import Learner, Outcome, task_of
from tests.benchmarks.accuracy.service import planned
from tests.benchmarks.accuracy.tables import LARGEST

FOLDS = 3


def service(tuning: str | None, reveal: Reveal) -> Learner:
    """A plan that says nothing but what it reveals, and ``tuning``, through the service."""

    def learner(train: Part, test: Part, seed: int) -> Outcome:
        began = time.perf_counter()
        found = planned(train, test, reveal, **({} if tuning is None else {"tuning": tuning}))
        return Outcome(
            found.predicted, time.perf_counter() - began, rounds=found.rounds + found.tuning_rounds,
            bytes_per_site=found.bytes_per_site + found.tuning_bytes_per_site,
            tuning_rounds=None if tuning is None else found.tuning_rounds,
            tuning_bytes=None if tuning is None else found.tuning_bytes_per_site,
            coverage=found.coverage, width=found.width,
        )

    return learner


def pooled(
    classifier: Any, regressor: Any, grid: dict[str, list[Any]], regression_grid: dict[str, list[Any]]
) -> Learner:
    """A rival on the rows of all plants together, which no plant would allow."""

    def learner(train: Part, test: Part, seed: int) -> Outcome:
        began = time.perf_counter()
        model = _searched(train, classifier, regressor, grid, regression_grid, seed)
        seconds = time.perf_counter() - began
        return Outcome(model.predict(test.features), seconds)

    return learner


def alone(train: Part, test: Part, seed: int) -> Outcome:
    """Each plant its own kernel machine, tuned on its own rows, for its own test rows."""
    predicted, began = np.empty(len(test.outcomes), dtype=train.outcomes.dtype), time.perf_counter()
    for plant in range(PLANTS):
        own = train.of(plant)
        model = _searched(own, SVC, SVR, RBF, RBF_REGRESSION, seed)
        predicted[test.plants == plant] = model.predict(test.of(plant).features)
    return Outcome(predicted, time.perf_counter() - began)


def _searched(
    train: Part, classifier: Any, regressor: Any, grid: dict[str, list[Any]], regression_grid: dict[str, list[Any]],
    seed: int,
) -> Any:
    """The rival with the best of its grid by three folds, refitted; without a grid as it is."""
    classes = task_of(train) == "classification"
    if classes and len(np.unique(train.outcomes)) == 1:
        return _Constant(train.outcomes[0])
    if not classes and np.abs(train.outcomes).max() > LARGEST:
        raise ValueError(f"targets beyond {LARGEST:g} cannot be standardised: take another unit")
    made = classifier() if classes else regressor()
    if "random_state" in made.get_params():
        made.set_params(random_state=seed)
    pipeline, wanted = make_pipeline(StandardScaler(), made), grid if classes else regression_grid
    prefix = type(made).__name__.lower()
    if not classes:
        pipeline = TransformedTargetRegressor(pipeline, transformer=StandardScaler())
        prefix = f"regressor__{prefix}"
    folds = _folds(train, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if not wanted or folds is None:
            return pipeline.fit(train.features, train.outcomes)
        search = GridSearchCV(
            pipeline, {f"{prefix}__{name}": values for name, values in wanted.items()}, cv=folds,
            scoring="f1_macro" if classes else "neg_mean_absolute_error",
        )
        return search.fit(train.features, train.outcomes)


def _folds(train: Part, seed: int) -> Any:
    """Three folds, whole machines where there are as many; None where a class is in too few rows."""
    is_target = task_of(train) == "regression"
    if train.machines is not None and len(np.unique(train.machines)) >= FOLDS:
        strata = np.zeros(len(train.outcomes), dtype=np.intp) if is_target else train.outcomes
        by_machine = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
        folds = list(by_machine.split(train.features, strata, train.machines))
        if all(len(held) and len(np.unique(strata[kept])) == len(np.unique(strata)) for kept, held in folds):
            return folds
    if is_target:
        return KFold(FOLDS, shuffle=True, random_state=seed)
    least = int(np.unique(train.outcomes, return_counts=True)[1].min())
    return StratifiedKFold(FOLDS, shuffle=True, random_state=seed) if least >= FOLDS else None


class _Constant:
    """A plant of one class knows no other."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def predict(self, features: FloatArray) -> NDArray[Any]:
        """The class."""
        return np.full(len(features), self._answer)


RBF: dict[str, list[Any]] = {"C": [0.3, 1.0, 3.0, 10.0, 30.0, 100.0], "gamma": ["scale", 0.01, 0.03, 0.1, 0.3]}
RBF_REGRESSION: dict[str, list[Any]] = {"C": [0.3, 3.0, 30.0], "gamma": ["scale", 0.03], "epsilon": [0.1, 0.5]}
_LINEAR: dict[str, list[Any]] = {"C": [0.01, 0.1, 1.0, 10.0]}

LEARNERS: dict[str, Learner] = {
    "ballast-default": service(None, "sums"),
    "ballast-auto": service("auto", "sums"),
    "ballast-default-seen": service(None, "each site"),
    "ballast-auto-seen": service("auto", "each site"),
    "estimator-default": estimator(None),
    "estimator-auto": estimator("auto"),
    "linear-svm-pooled": pooled(LinearSVC, LinearSVR, _LINEAR, _LINEAR),
    "logistic-pooled": pooled(LogisticRegression, Ridge, _LINEAR, {"alpha": [0.1, 1.0, 10.0]}),
    "rbf-svm-pooled": pooled(SVC, SVR, RBF, RBF_REGRESSION),
    "forest-pooled": pooled(
        RandomForestClassifier, RandomForestRegressor, {"n_estimators": [300], "max_features": ["sqrt", 0.5]},
        {"n_estimators": [300], "max_features": ["sqrt", 0.5]},
    ),
    "boosting-pooled": pooled(
        HistGradientBoostingClassifier, HistGradientBoostingRegressor, {"learning_rate": [0.03, 0.1]},
        {"learning_rate": [0.03, 0.1]},
    ),
    "alone": alone,
}


def score(task: str, truth: NDArray[Any], predicted: NDArray[Any]) -> float:
    """Macro F-1 over the classes that are there, or the mean absolute error."""
    if task == "regression":
        return float(mean_absolute_error(truth, predicted))
    return float(f1_score(truth, predicted, average="macro", labels=np.unique(truth), zero_division=0.0))
