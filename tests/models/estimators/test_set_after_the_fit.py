"""Parameters that are set after a fit change no claim of it, and what a fit cannot say is refused in one line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from models.basics import ProblemError
from models.estimators import DRSVC, FederatedDRClassifier, FederatedDRRegressor, FederatedDRSVC

RNG = np.random.default_rng(11)
X = RNG.uniform(size=(60, 2))
SCORE = X[:, 0] + 0.2 * RNG.normal(size=60)
GROUPS = np.arange(60) % 3
CLASSIFIERS = (DRSVC, FederatedDRSVC, FederatedDRClassifier)


def given(kind: Any) -> dict[str, Any]:
    return {} if kind is DRSVC else {"groups": GROUPS}


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "predict_set", "robustness_radius", "decision_function"])
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_what_is_not_fitted_says_so(kind: Any, ask: str) -> None:
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(kind(), ask)(X)


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("ask", ["predict_proba", "predict_set"])
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_folds_that_are_asked_for_after_the_fit_are_not_there(kind: Any, ask: str, before: bool) -> None:
    """Also not those of an earlier fit, whose rows were others."""
    model = kind(gap=1e-2)
    if before:
        model.fit(X, SCORE > 0.5, **given(kind))
    model.set_params(calibration_folds=0).fit(X[:, ::-1], SCORE > 0.6, **given(kind)).set_params(calibration_folds=3)
    with pytest.raises(ProblemError, match="fitted with 0: fit it anew"):
        getattr(model, ask)(X)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_without_folds_each_question_says_what_is_missing(kind: Any) -> None:
    model = kind(gap=1e-2, calibration_folds=0).fit(X, SCORE > 0.5, **given(kind))
    with pytest.raises(ProblemError, match="this needs calibration_folds, and the estimator was fitted with 0: fit it"):
        model.predict_set(X)
    assert not hasattr(model, "predict_proba") and hasattr(kind(), "predict_proba"), "as scikit-learn asks"
    with pytest.raises(AttributeError, match="predict_proba needs calibration_folds, and there are 0: set 2 or more"):
        model.predict_proba(X)


@pytest.mark.parametrize("wrong", [1, -1, 2.0, True, "three"])
def test_another_number_of_folds_is_refused(wrong: Any) -> None:
    for model, outcomes in ((DRSVC(), SCORE > 0.5), (FederatedDRRegressor(), SCORE)):
        more = {} if isinstance(model, DRSVC) else {"groups": GROUPS}
        with pytest.raises(ProblemError, match="calibration_folds must be a whole number at or above 2, or 0 for none"):
            model.set_params(calibration_folds=wrong).fit(X, outcomes, **more)


@pytest.mark.parametrize("before", [False, True])
def test_intervals_need_the_folds_of_the_fit(before: bool) -> None:
    model = FederatedDRRegressor(gap=1e-2)
    if before:
        model.fit(X, SCORE, groups=GROUPS)
    model.set_params(calibration_folds=0).fit(X, 2.0 * SCORE, groups=GROUPS).set_params(calibration_folds=3)
    with pytest.raises(ProblemError, match="fitted with 0: fit it anew"):
        model.predict_interval(X)
    assert np.isfinite(model.predict_interval(X, method="markov")).all()


def test_the_proven_interval_is_that_of_the_loss_that_was_fitted() -> None:
    """The risk is that of the Huber loss: read as one of another loss it would prove what is not true."""
    model = FederatedDRRegressor(loss="huber", epsilon=0.05, gap=1e-2).fit(X, SCORE, groups=GROUPS)
    proven = model.predict_interval(X, method="markov")
    model.set_params(loss="pinball", epsilon=None, quantile=0.9)
    assert model.predict_interval(X, method="markov").tolist() == proven.tolist()


def test_sets_of_too_few_rows_are_refused_in_words() -> None:
    """A row a class and group is never held out, so there is no model without it."""
    few = FederatedDRSVC().fit(X[:6], [0, 1] * 3, groups=[0, 0, 1, 1, 2, 2])
    with pytest.raises(ProblemError, match=r"needs 1 rows of each group .* group 0 has 0"):
        few.predict_set(X, 0.5)
    assert few.predict_proba(X).sum(axis=1) == pytest.approx(1.0)
