"""Fairness indices: values worked out by hand, conventions for ties, zeros and one site, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import ProblemError
from models.fairness.ambiguity_set import RelativeSet
from models.fairness.generalisation import generalisation_bound, log_covering_number
from models.fairness.indices import (
    INDICES,
    atkinson,
    best_share,
    fairness_discrepancy,
    get_index,
    gini,
    lorenz_curve,
    palma,
    relative_unfairness,
    skewness,
    transformed_lorenz_curve,
    twenty_twenty,
    unfairness_over,
    worst_share,
)
from models.geometry.capped_simplex import CappedSimplex

LOSSES = st.lists(st.floats(0.0, 100.0), min_size=1, max_size=12)


def test_ratios_by_hand():
    ten = np.arange(1.0, 11.0)
    assert twenty_twenty(ten) == pytest.approx(9.5 / 1.5)
    assert palma(ten) == pytest.approx(10 / 2.5)
    assert relative_unfairness(ten, 1.0, 0.1) == pytest.approx(5.5)
    assert relative_unfairness(ten, 0.01, 0.01) == pytest.approx(10.0)
    assert worst_share(ten) == pytest.approx(9.5) and best_share(ten) == pytest.approx(1.5)
    assert worst_share(ten, 0.35) == pytest.approx((10 + 9 + 8 + 0.5 * 7) / 3.5)
    assert fairness_discrepancy(ten, 0.5, 0.2, 0.2) == pytest.approx(9.5 - 0.75)


def test_shares_that_split_a_site_are_exact():
    # The worst 20 % of 7 sites are 1.4 sites: all of the worst and 0.4 of the next.
    seven = np.array([3.0, 1.0, 4.0, 1.5, 9.0, 2.0, 6.0])
    assert twenty_twenty(seven) == pytest.approx(((9 + 0.4 * 6) / 1.4) / ((1 + 0.4 * 1.5) / 1.4))
    assert palma(seven) == pytest.approx(9 / ((1 + 1.5 + 0.8 * 2) / 2.8))


def test_unequal_caps_by_hand():
    losses = np.array([4.0, 1.0, 2.0])
    worst, best = CappedSimplex(np.array([0.5, 0.3, 0.9])), CappedSimplex(np.array([1.0, 0.25, 0.5]))
    assert unfairness_over(losses, worst, best) == pytest.approx((0.5 * 4 + 0.5 * 2) / (0.25 + 0.5 * 2 + 0.25 * 4))
    low, high = CappedSimplex(np.array([0.0, 1.0, 0.0])), CappedSimplex(np.array([1.0, 0.0, 0.0]))
    assert unfairness_over(losses, low, high) == pytest.approx(0.25)


def test_gini_and_lorenz_by_hand():
    assert gini([1.0, 3.0]) == pytest.approx(0.25)
    assert gini([0.0, 0.0, 0.0, 5.0]) == pytest.approx(0.75)
    x, curve = lorenz_curve([3.0, 1.0, 4.0])
    assert x == pytest.approx([0, 1 / 3, 2 / 3, 1]) and curve == pytest.approx([0, 0.125, 0.5, 1])
    assert transformed_lorenz_curve([3.0, 1.0, 4.0])[1] == pytest.approx([0, 0.125 - 1 / 6, 0.5 - 1 / 3, 0.5])


def test_atkinson_by_hand():
    losses = [1.0, 4.0]
    assert atkinson(losses, 0.0) == 0.0
    assert atkinson(losses, 0.5) == pytest.approx(1 - 1.5**2 / 2.5)
    assert atkinson(losses, 1.0) == pytest.approx(1 - 2 / 2.5)
    assert atkinson(losses, 2.0) == pytest.approx(1 - (1 / 0.625) / 2.5)
    assert atkinson(losses, math.inf) == pytest.approx(1 - 1 / 2.5)
    assert atkinson(losses, 1 + 1e-9) == pytest.approx(atkinson(losses, 1.0), abs=1e-8)
    assert atkinson(losses, 1e4) == pytest.approx(atkinson(losses, math.inf), abs=1e-3)
    assert atkinson([0.0, 1.0, 2.0], 0.5) == pytest.approx(1 - ((1 + math.sqrt(2)) / 3) ** 2)
    assert atkinson([0.0, 1.0], 1.0) == atkinson([0.0, 1.0], 7.0) == atkinson([0.0, 1.0], math.inf) == 1.0
    assert atkinson(losses, math.inf) == pytest.approx(1 - 1 / relative_unfairness(losses, 1.0, 0.5))


@pytest.mark.parametrize("aversion", [1 - 9e-7, 1 - 2e-6, 1 + 2e-6, 1 + 9e-7])
def test_atkinson_near_an_aversion_of_1_is_that_of_the_power_mean(aversion):
    losses = np.array([0.01, 1.0, 4.0], dtype=np.longdouble)
    power = 1 - np.longdouble(aversion)
    expected = 1 - np.exp(np.log1p(np.expm1(power * np.log(losses)).mean()) / power) / losses.mean()
    assert atkinson(losses.astype(float), aversion) == pytest.approx(float(expected), abs=1e-9)


@pytest.mark.parametrize("aversion", [1 - 1e-5, 1 - 9e-7, 1 - 1e-12, 1.0])
def test_a_site_without_loss_is_counted_at_an_aversion_a_little_below_1_too(aversion):
    """``(1/2)^(1 / (1 - aversion))`` is as good as 0 there."""
    assert atkinson([0.0, 1.0], aversion) == atkinson([0.0, 0.0, 3.0], aversion) == 1.0


@pytest.mark.parametrize("losses", [[0.0, 0.0, 0.0], [0.1] * 9, [3.0], [0.0]])
def test_equal_losses_one_site_and_zeros_are_fair(losses):
    assert twenty_twenty(losses) == palma(losses) == relative_unfairness(losses, 0.3, 0.7) == 1.0
    assert gini(losses) == pytest.approx(0.0, abs=1e-15)
    assert all(atkinson(losses, aversion) == 0.0 for aversion in (0.0, 0.5, 1.0, 3.0, math.inf))
    x, curve = lorenz_curve(losses)
    assert curve == pytest.approx(x) and curve[-1] == 1.0
    assert (curve <= x).all(), "no curve lies above equality, not even by rounding"


def test_a_best_share_without_loss_makes_the_ratio_infinite():
    assert twenty_twenty([0.0, 1.0, 1.0, 1.0, 1.0]) == math.inf
    assert palma([0.0, 0.0, 1.0, 1.0, 1.0]) == math.inf
    assert relative_unfairness([0.0, 1.0], 1.0, 1.0) == 1.0


@given(LOSSES, st.floats(0.02, 1.0), st.floats(0.02, 1.0), st.randoms(use_true_random=False))
@settings(max_examples=25, derandomize=True)
def test_indices_ignore_order_and_scale_and_meet_their_definitions(losses, alpha, beta, random):
    values = np.array(losses)
    shuffled = list(losses)
    random.shuffle(shuffled)
    ratio = relative_unfairness(values, alpha, beta)
    assert ratio >= 1 - 1e-12
    assert relative_unfairness(shuffled, alpha, beta) == pytest.approx(ratio, rel=1e-9)
    assert relative_unfairness(4 * values, alpha, beta) == pytest.approx(ratio, rel=1e-9)
    pairs = np.abs(values[:, None] - values).sum()
    expected = pairs / (2 * len(values) ** 2 * values.mean()) if values.any() else 0.0
    assert gini(values) == pytest.approx(expected, abs=1e-9)
    x, curve = lorenz_curve(values)
    assert gini(values) == pytest.approx(1 - 2 * np.trapezoid(curve, x), abs=1e-9)
    rising = [atkinson(values, aversion) for aversion in (0.0, 0.3, 0.999, 1.0, 1.001, 4.0, math.inf)]
    assert (np.diff(rising) >= -1e-9).all() and 0.0 <= rising[0] and rising[-1] <= 1.0


def test_generalisation_bound_by_hand():
    assert skewness(10, 0.2, 0.2, 0.2) == pytest.approx(8.125) and skewness(7, 0.4, 1.0, 1.0) == pytest.approx(1.0)
    ambiguity = RelativeSet.of_shares(10, 0.2, 0.2, 0.2)
    covering = 9 * math.log(1 + 2 * 2.5 / 0.1)
    assert log_covering_number(ambiguity, 0.1) == pytest.approx(covering)
    expected = 2 * 0.1 + math.sqrt(8.125 / 2000) * (
        4 * math.sqrt(5 * (1 + math.log(200))) + 2 * math.sqrt(covering + math.log(20))
    )
    found = generalisation_bound(ambiguity, rows_per_site=100, vc_dimension=5, loss_bound=2.0, epsilon=0.1)
    assert found == pytest.approx(expected)
    assert log_covering_number(RelativeSet.of_shares(1, 0.2, 1.0, 1.0), 0.1) == 0.0
    with pytest.raises(ProblemError, match="below the number of all rows 1000, got 1000"):
        generalisation_bound(ambiguity, rows_per_site=100, vc_dimension=1000)
    for delta in (0.0, 1.0):
        with pytest.raises(ProblemError, match=f"delta must be above 0 and below 1, got {delta}"):
            generalisation_bound(ambiguity, rows_per_site=100, vc_dimension=5, delta=delta)
    with pytest.raises(ProblemError, match="epsilon must be a finite number above 0, got 0"):
        log_covering_number(ambiguity, 0)
    sizes = {"rows_per_site": 100, "vc_dimension": 5, "loss_bound": 1.0}
    for name in sizes:
        for wrong in (0, -1, math.nan, math.inf):
            with pytest.raises(ProblemError, match=f"{name} must be a finite number above 0"):
                generalisation_bound(ambiguity, **(sizes | {name: wrong}))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gini([-0.1, 1.0]), "losses must be at or above 0, the least is -0.1"),
        (lambda: palma([np.nan, 1.0, 2.0, np.inf, 3.0]), "losses must be finite numbers, 2 are not"),
        (lambda: atkinson([np.inf, 1.0], 1.0), "losses must be finite numbers, 1 are not"),
        (lambda: lorenz_curve([]), "one number for each of at least one site"),
        (lambda: gini([[1.0], [2.0]]), r"got shape \(2, 1\)"),
        (lambda: gini(["poor"]), "losses must be one number for each site"),
        (lambda: relative_unfairness([1.0, 2.0], 0.0, 0.5), "above 0 and at most 1, got 0.0"),
        (lambda: relative_unfairness([1.0, 2.0], 0.5, 1.5), "above 0 and at most 1, got 1.5"),
        (lambda: relative_unfairness([1.0, 2.0], math.nan, 0.5), "above 0 and at most 1, got nan"),
        (lambda: fairness_discrepancy([1.0, 2.0], 1.0, 0.5, 0.5), "phi must be at or above 0 and below 1, got 1.0"),
        (lambda: atkinson([1.0, 2.0], -1.0), "aversion must be a number at or above 0"),
        (lambda: unfairness_over([1.0], CappedSimplex.of_share(2, 1.0), CappedSimplex.of_share(1, 1.0)), "A is over 2"),
        (lambda: get_index("equity"), "there is no fairness index 'equity'; indices are atkinson"),
    ],
)
def test_refusals_are_one_clear_line(call, words):
    with pytest.raises(ProblemError, match=words) as refusal:
        call()
    assert "\n" not in str(refusal.value)


def test_named_indices_are_what_their_names_say():
    ten = np.arange(1.0, 11.0)
    geometric = math.exp(np.log(ten).mean())
    expected = {
        "relative_unfairness": 9.5 / 1.5, "twenty_twenty": 9.5 / 1.5, "palma": 4.0, "gini": 0.3,
        "atkinson": 1 - geometric / 5.5, "atkinson_infinite": 1 - 1 / 5.5, "worst_share": 9.5, "best_share": 1.5,
    }
    assert {name: get_index(name)(ten) for name in INDICES} == pytest.approx(expected)


@given(LOSSES)
@settings(max_examples=50, derandomize=True)
def test_all_sites_together_bear_all_of_the_loss_to_the_last_digit(losses):
    x, curve = lorenz_curve(losses)
    assert (x[-1], curve[-1], curve[0]) == (1.0, 1.0, 0.0)


@pytest.mark.parametrize("seed", range(12))
def test_the_sum_norm_under_unlike_caps_is_that_of_the_best_set_of_sites(seed):
    draw = np.random.default_rng(seed)
    drawn = draw.uniform(0.05, 1.0, (2, 4))
    worst, best = np.minimum(1.1 * drawn / drawn.sum(axis=1, keepdims=True) + draw.uniform(0.0, 0.2, (2, 4)), 1.0)
    phi = draw.uniform(0.1, 0.9)
    sets = (np.array([number >> site & 1 for site in range(4)], dtype=bool) for number in range(16))
    part = max(
        min(1.0, worst[chosen].sum()) - phi * max(0.0, 1.0 - best[~chosen].sum()) for chosen in sets
    )
    found = RelativeSet(CappedSimplex(worst), CappedSimplex(best), phi).sum_norm()
    assert found == pytest.approx(max(1.0, 2.0 * part / (1.0 - phi) - 1.0))
