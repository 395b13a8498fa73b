"""Log-sum-exp, softmax and the logistic function: the digits of SciPy's, at both ends too."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from models.losses.exponentials import log_sum_exp, logistic, softmax

SIZES = (1e-3, 1.0, 40.0, 800.0, 1e8)


@pytest.mark.parametrize("size", SIZES)
def test_they_are_scipys(size: float) -> None:
    random = np.random.default_rng(1)
    values, weights = size * random.normal(size=(6, 5)), random.uniform(size=5)
    weights[int(values[0].argmax())] = 0.0
    np.testing.assert_allclose(log_sum_exp(values), special.logsumexp(values, axis=1), rtol=1e-14, atol=1e-15)
    found = log_sum_exp(values, weights)
    np.testing.assert_allclose(found, special.logsumexp(values, b=weights, axis=1), rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(softmax(values), special.softmax(values, axis=1), rtol=1e-12)
    np.testing.assert_allclose(logistic(values), special.expit(values), rtol=1e-14)


def test_what_counts_nothing_is_left_out_and_infinities_stay() -> None:
    one = np.array([1.0, 0.0])
    assert log_sum_exp(np.array([2.0, 1e9]), one) == 2.0
    assert log_sum_exp(np.array([2.0, np.inf]), one) == 2.0
    assert log_sum_exp(np.array([2.0, np.inf])) == np.inf
    assert log_sum_exp(np.array([-np.inf, -np.inf])) == -np.inf
    assert logistic(np.array([-745.0, 745.0])).tolist() == [5e-324, 1.0]
