"""A frame's column that is no number is told by its name, and nothing is read as one without a word."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from models.basics import ProblemError
from models.estimators import DRSVC, FederatedDRRegressor

N = 24
RNG = np.random.default_rng(3)
FRAME = pd.DataFrame(RNG.normal(size=(N, 2)), columns=["flow", "temp"])
LABELS = np.where(FRAME["flow"] > 0, "leak", "ok")
DAYS = pd.date_range("2026-01-01", periods=N)


def _classifier() -> DRSVC:
    return DRSVC(radius=0.01, calibration_folds=0)


def _regressor() -> FederatedDRRegressor:
    return FederatedDRRegressor(radius=0.01, calibration_folds=0)


@pytest.mark.parametrize(("column", "told"), [
    (DAYS, "X has dates in the column 'when'"),
    (DAYS.tz_localize("UTC"), "X has dates in the column 'when'"),
    (pd.to_timedelta(range(N), unit="s"), "X has spans of time in the column 'when'"),
    (pd.Categorical(["7", "high"] * (N // 2)), "the column 'when' of X must hold numbers, got 'high' in row 1"),
    ([1.0, *["x"] * (N - 1)], "the column 'when' of X must hold numbers, got 'x' in row 1"),
    (np.ones(N) * 1j, "the column 'when' of X must hold real numbers"),
    (pd.array([*range(N - 1), None], dtype="Int64"), f"'when' of X has no value in row {N - 1} \\(1 of {N} rows"),
    ([None, *range(N - 1)], "the column 'when' of X has no value in row 0"),
    ([0.0, -math.inf, *range(N - 2)], "the column 'when' of X has an infinite value in row 1"),
])
@pytest.mark.filterwarnings("ignore:fit got no groups")
def test_a_column_that_is_no_number_is_told_by_its_name(column: Any, told: str) -> None:
    frame = FRAME.assign(when=column)
    for estimator, outcomes in ((_classifier(), LABELS), (_regressor(), FRAME["temp"])):
        with pytest.raises(ProblemError, match=told) as refused:
            estimator.fit(frame, outcomes)
        assert "\n" not in str(refused.value)
        fitted = estimator.fit(FRAME.assign(when=1.0), outcomes)
        with pytest.raises(ProblemError, match=told):
            fitted.predict(frame)


def test_columns_that_are_numbers_in_another_type_are_read_as_those() -> None:
    plain = _classifier().fit(FRAME.assign(k=[1.0, 0.0] * (N // 2)), LABELS)
    for column in (pd.array([1, 0] * (N // 2), dtype="Int64"), pd.Categorical([1, 0] * (N // 2)), [True, False] * 12):
        other = _classifier().fit(FRAME.assign(k=column), LABELS)
        assert other.coef_.tolist() == plain.coef_.tolist()


def test_dates_alone_and_masked_values_are_not_read_as_numbers() -> None:
    table = np.ma.masked_array(FRAME.to_numpy(), mask=np.eye(N, 2) > 0)
    for given, told in ((pd.DataFrame({"day": DAYS}), "in the column 'day'"), (DAYS.to_numpy()[:, None], "X has dates"),
                        (table, "X has 2 masked values")):
        with pytest.raises(ProblemError, match=told):
            _classifier().fit(given, LABELS)
    for target, told in ((pd.Series(DAYS), "y has dates"), (pd.Series(DAYS - DAYS[0]), "y has spans of time"),
                         (table[:, 0], "y has 1 masked values")):
        with pytest.raises(ProblemError, match=told):
            _regressor().fit(FRAME, target, groups=[0] * N)
