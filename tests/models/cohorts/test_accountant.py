"""What is said of epsilon and delta is proven, and is what others' accountants say."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from models.basics import ProblemError
from models.cohorts.accountant import NoiseAccount, delta_of, epsilon_of, rho_of

# sigma, number of answers, delta; epsilon by dp-accounting 0.6.0: its Renyi accountant (the same theorem, orders of its
# own) and its privacy loss distributions (nearly exact, so lower).
OTHERS = [
    (1.0, 1, 1e-5, 4.728406486, 4.377178100), (20.0, 25, 1e-6, 1.142932303, 1.060701864),
    (5.0, 40, 1e-5, 6.208076206, 5.759481469), (100.0, 10, 1e-9, 0.171170070, 0.161652216),
]


@pytest.mark.parametrize(("sigma", "answers", "delta", "renyi", "nearly_exact"), OTHERS)
def test_epsilon_is_that_of_another_accountant(
    sigma: float, answers: int, delta: float, renyi: float, nearly_exact: float
) -> None:
    found = epsilon_of(answers / (2 * sigma**2), delta)
    assert found == pytest.approx(renyi, rel=1e-5) and nearly_exact <= found <= 1.1 * nearly_exact


@given(rho=st.floats(1e-8, 20.0), delta=st.floats(1e-12, 0.1))
def test_the_promise_holds_for_gaussian_noise(rho: float, delta: float) -> None:
    """Exact delta of a Gaussian with this rho: Balle and Wang 2018, theorem 8."""
    epsilon, mu = epsilon_of(rho, delta), math.sqrt(2 * rho)
    exact = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))
    assert exact <= delta * (1 + 1e-9)
    if epsilon > 0:
        assert delta_of(rho, epsilon) == pytest.approx(delta, rel=1e-6) and exact <= delta_of(rho, epsilon) * (1 + 1e-9)
        assert rho_of(epsilon, delta) == pytest.approx(rho, rel=1e-9)


@given(epsilon=st.floats(1e-3, 50.0), delta=st.floats(1e-12, 0.1))
def test_a_budget_is_used_and_not_exceeded(epsilon: float, delta: float) -> None:
    rho = rho_of(epsilon, delta)
    assert epsilon_of(rho, delta) <= epsilon < epsilon_of(rho * 1.001, delta)


def test_a_plant_tells_no_more_than_its_own_limit_whatever_it_is_asked() -> None:
    rho, account = rho_of(2.0, 1e-6) / 30, NoiseAccount()
    for _ in range(10):
        account = account.charged(rho, 3, 2.0, 1e-6)
    assert epsilon_of(account.rho, 1e-6) == pytest.approx(2.0)
    with pytest.raises(ProblemError, match="and the limit is 2"):
        account.charged(rho, 3, 2.0, 1e-6)
    with pytest.raises(ProblemError, match="and the limit is 2"):
        NoiseAccount().charged(rho * 31, 1, 2.0, 1e-6)
    with pytest.raises(ProblemError, match="and the limit is 2"):
        NoiseAccount().charged(rho_of(2.0 * (1 + 1e-6), 1e-6), 1, 2.0, 1e-6)
    for rho, heads in ((0.0, 1), (-1.0, 1), (math.nan, 1), (1.0, 0)):
        with pytest.raises(ProblemError, match="budget above 0"):
            account.charged(rho, heads, 2.0, 1e-6)


@pytest.mark.parametrize("stated", [(0.0, 1e-5), (-1.0, 1e-5), (math.inf, 1e-5), (1.0, 0.0), (1.0, 1.0)])
def test_a_promise_that_is_none_is_refused(stated: tuple[float, float]) -> None:
    with pytest.raises(ProblemError, match="epsilon must be above 0"):
        rho_of(*stated)


@pytest.mark.parametrize("stated", [(-1.0, 1e-5), (1.0, 0.0), (1.0, 1.0), (1.0, -0.1)])
def test_an_epsilon_of_no_budget_or_no_delta_is_refused(stated: tuple[float, float]) -> None:
    with pytest.raises(ProblemError, match="rho must be at or above 0 and delta in"):
        epsilon_of(*stated)
