"""The joint dual step against CVXPY and its own gap; the set Lambda against brute force; refusals."""

from itertools import combinations, permutations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from models.basics import ProblemError
from models.fairness.ambiguity_set import RelativeSet, balanced_phi, check_convexity
from models.fairness.dual_step import _gap, dual_step, nearest_member
from models.geometry.capped_simplex import CappedSimplex
from models.geometry.linear_program import Optimum
from models.geometry.projections import water_level

SHARES = (1.0, 0.7, 0.5, 1 / 3, 0.2, 0.1)


def random_set(rng, n, phi):
    def side():
        if rng.random() < 0.5:
            return CappedSimplex.of_share(n, float(rng.choice(SHARES)))
        caps = rng.random(n) * rng.choice([0.3, 1.0, 3.0])
        return CappedSimplex(caps / min(caps.sum(), 1.0))

    return RelativeSet(side(), side(), phi)


def by_cvxpy(ambiguity, losses, current, step):
    n, phi = ambiguity.size, ambiguity.phi
    a, b, weights = cp.Variable(n, nonneg=True), cp.Variable(n, nonneg=True), cp.Variable(n)
    limits = [a <= ambiguity.worst.caps, b <= ambiguity.best.caps, cp.sum(a) == 1, cp.sum(b) == 1]
    aim = cp.sum_squares(weights - current - step * losses) / (2 * step)
    program = cp.Problem(cp.Minimize(aim), [*limits, weights == (a - phi * b) / (1 - phi)])
    program.solve(solver="CLARABEL", tol_gap_abs=1e-15, tol_gap_rel=1e-15, tol_feas=1e-13)
    return weights.value, program.value


@given(st.integers(0, 10**6), st.integers(1, 12), st.sampled_from([0.0, 0.05, 0.2, 0.5, 0.9]), st.booleans())
@settings(max_examples=25, derandomize=True)
def test_dual_step_is_optimal_and_agrees_with_cvxpy(seed, n, phi, ties):
    rng = np.random.default_rng(seed)
    ambiguity = random_set(rng, n, phi)
    losses = np.round(rng.normal(size=n)) if ties else rng.normal(size=n)
    current, step = ambiguity.member(rng.normal(size=n)), float(rng.choice([0.01, 0.3, 3.0]))
    found = dual_step(ambiguity, losses, current, step)
    for member, caps in ((found.worst, ambiguity.worst.caps), (found.best, ambiguity.best.caps)):
        assert member.sum() == pytest.approx(1.0, abs=1e-12)
        assert member.min() >= -1e-14 and (member <= caps + 1e-13).all()
    assert (1 - phi) * found.weights == pytest.approx(found.worst - phi * found.best, abs=1e-14)
    assert found.gap <= 1e-13
    weights, value = by_cvxpy(ambiguity, losses, current, step)
    ours = float(((found.weights - current - step * losses) ** 2).sum() / (2 * step))
    assert ours <= value + 1e-8 * (1 + abs(value))
    assert ours == pytest.approx(value, abs=1e-8, rel=1e-8)
    # Clarabel's own point is only as exact as the root of its gap.
    assert found.weights == pytest.approx(weights, abs=2e-6)


@pytest.mark.parametrize("n", [100, 500])
def test_many_sites_agree_with_cvxpy_to_1e_8(n):
    rng = np.random.default_rng(n)
    ambiguity = RelativeSet.of_shares(n, 0.2, 0.2, 0.2)
    losses, current = rng.random(n), np.full(n, 1 / n)
    found = dual_step(ambiguity, losses, current, 0.05)
    weights, _ = by_cvxpy(ambiguity, losses, current, 0.05)
    assert np.abs(found.weights - weights).max() <= 1e-8


def test_equal_caps_give_the_projection_on_the_orders_of_one_vector():
    # A and B with equal caps make a permutahedron; projecting on it is isotonic regression (pool adjacent violators).
    rng = np.random.default_rng(3)
    ambiguity = RelativeSet.of_shares(7, 0.3, 0.4, 0.25)
    point = rng.normal(size=7)
    order = np.argsort(-point)
    corner = ambiguity.member(np.arange(7, 0, -1.0))
    fitted = [[value, 1] for value in point[order] - corner]
    k = 0
    while k + 1 < len(fitted):
        if fitted[k][0] < fitted[k + 1][0]:
            (x, p), (y, q) = fitted[k], fitted.pop(k + 1)
            fitted[k] = [(x * p + y * q) / (p + q), p + q]
            k = max(k - 1, 0)
        else:
            k += 1
    levels = np.concatenate([[value] * count for value, count in fitted])
    expected = np.empty(7)
    expected[order] = point[order] - levels
    assert nearest_member(ambiguity, point).weights == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("phi", [0.0, 0.2, 0.7])
def test_a_gap_is_what_the_best_member_would_gain_and_bounds_the_distance(phi):
    """For any a and b of the sets: what is left of the residual, in (1 - phi) of lambda."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        ambiguity = random_set(rng, 6, phi)
        point, a, b = rng.normal(size=6), ambiguity.worst.nearest(rng.random(6)), ambiguity.best.nearest(rng.random(6))
        residual = (1 - phi) * point - a + phi * b
        gap = _gap((1 - phi) * point, a, b, ambiguity)
        assert gap == pytest.approx((1 - phi) * ambiguity.largest(residual) - residual @ (a - phi * b))
        away = (a - phi * b) / (1 - phi) - nearest_member(ambiguity, point).weights
        assert (1 - phi) ** 2 * (away @ away) <= gap + 1e-12


def test_members_stay_members_whatever_the_scale():
    rng = np.random.default_rng(0)
    for trial in range(300):
        n, phi = int(rng.integers(1, 30)), float(rng.choice([0.0, 1e-6, 0.2, 0.999]))
        ambiguity = RelativeSet.of_shares(n, phi, float(rng.choice(SHARES)), float(rng.choice(SHARES)))
        losses = rng.normal(size=n) * 10.0 ** rng.integers(-12, 13)
        losses = np.round(losses) if trial % 3 == 0 else losses
        found = dual_step(ambiguity, losses, ambiguity.member(rng.normal(size=n)), 10.0 ** rng.integers(-6, 7))
        for member, caps in ((found.worst, ambiguity.worst.caps), (found.best, ambiguity.best.caps)):
            assert member.sum() == pytest.approx(1.0, abs=1e-12)
            assert member.min() >= 0.0 and (member <= caps + 1e-15).all()


def test_phi_zero_is_the_projection_and_one_point_never_moves():
    rng = np.random.default_rng(1)
    plain = RelativeSet.of_shares(6, 0.0, 0.5, 0.2)
    point = rng.normal(size=6)
    assert nearest_member(plain, point).weights == pytest.approx(plain.worst.nearest(point), abs=1e-15)
    fixed = CappedSimplex(np.array([0.2, 0.3, 0.5]))
    for phi in (0.0, 0.4):
        still = dual_step(RelativeSet(fixed, fixed, phi), np.array([9.0, -1.0, 3.0]), np.zeros(3), 2.0)
        assert still.weights == pytest.approx([0.2, 0.3, 0.5], abs=1e-15)
    assert dual_step(RelativeSet.of_shares(1, 0.3, 0.5, 0.5), np.array([2.0]), np.zeros(1), 1.0).weights == [1.0]


@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from([0.0, 0.1, 0.6]))
@settings(max_examples=25, derandomize=True)
def test_size_of_the_set_against_all_corners(seed, n, phi):
    rng = np.random.default_rng(seed)
    ambiguity = random_set(rng, n, phi)
    orders = [np.array(order, dtype=float) for order in permutations(range(n))]
    # Corners of A - phi B are those of one order of the sites each.
    corners = [ambiguity.member(order) for order in orders]
    losses = rng.random(n)
    assert ambiguity.largest(losses) == pytest.approx(max(corner @ losses for corner in corners), abs=1e-12)
    assert ambiguity.sum_norm() == pytest.approx(max(np.abs(corner).sum() for corner in corners), abs=1e-9)
    assert ambiguity.skewness() == pytest.approx(max(n * (corner @ corner) for corner in corners), abs=1e-9)


@given(st.integers(0, 10**6), st.integers(2, 6), st.sampled_from([0.0, 0.3, 0.6]))
@settings(max_examples=40, derandomize=True)
def test_over_many_sites_the_skewness_is_said_to_be_no_less_than_it_is(seed, n, phi):
    ambiguity = random_set(np.random.default_rng(seed), n, phi)
    exact = ambiguity.skewness()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("models.fairness.ambiguity_set._FEW", 1)
        known = ambiguity.skewness()
    assert exact * (1.0 - 1e-12) <= known <= 2.0 * exact


def test_the_skewness_of_one_mixture_of_many_sites_is_that_of_its_weights():
    shares = np.arange(1.0, 13.0) / 78.0
    assert RelativeSet.of_weights(shares, 0.4, 1.0, 1.0).skewness() == pytest.approx(12.0 * (shares @ shares))


def test_a_total_is_of_all_risks_or_not_known():
    ambiguity = RelativeSet.of_shares(3, 0.2, 0.5, 0.5)
    rows = np.array([[1.0, 2.0, 4.0], [1.0, np.nan, 4.0], [np.nan, np.nan, np.nan], [np.inf, 1.0, 1.0]])
    assert ambiguity.totals(rows).tolist() == [ambiguity.largest(rows[0]), np.inf, np.inf, np.inf]
    assert ambiguity.largest(rows[0]) == pytest.approx((2 / 3 * 4 + 1 / 3 * 2 - 0.2 * (2 / 3 * 1 + 1 / 3 * 2)) / 0.8)


def test_sum_norm_of_unequal_caps_is_a_search_over_sets_of_sites():
    worst, best = CappedSimplex(np.array([0.7, 0.6, 0.2, 0.1])), CappedSimplex(np.array([0.2, 0.5, 0.3, 0.1]))
    part = max(
        min(1, worst.caps[list(inside)].sum()) - 0.5 * max(0, 1 - best.caps.sum() + best.caps[list(inside)].sum())
        for size in range(5)
        for inside in combinations(range(4), size)
    )
    assert RelativeSet(worst, best, 0.5).sum_norm() == pytest.approx(2 * part / 0.5 - 1, abs=1e-12)


@pytest.mark.parametrize(("bound", "part"), [(-0.9, 0.9), (-np.inf, 1.0), (np.nan, 1.0)])
def test_a_search_that_was_stopped_says_no_less_than_there_is(bound, part, monkeypatch):
    """Its own bound, or that no part is above 1: a size that is too small would promise convergence."""
    stopped = Optimum(False, np.zeros(6), bound, "time is up")
    monkeypatch.setattr("models.fairness.ambiguity_set.solve_linear_program", lambda *given: stopped)
    worst, best = CappedSimplex(np.array([0.7, 0.6, 0.2, 0.1])), CappedSimplex(np.array([0.2, 0.5, 0.3, 0.1]))
    assert RelativeSet(worst, best, 0.5).sum_norm() == pytest.approx(min(2 * part / 0.5 - 1, 1.5 / 0.5))


def test_a_search_over_many_sets_of_sites_ends_when_its_time_is_up(monkeypatch):
    """Servers ask for the size in a round: of some tens of sites all sets are too many, and a bound is told."""
    shares = np.random.default_rng(0).dirichlet(np.full(10, 3.0))
    ambiguity = RelativeSet(CappedSimplex(shares / 0.83), CappedSimplex(shares / 0.71), 0.3)
    exact = ambiguity.sum_norm()
    monkeypatch.setattr("models.fairness.ambiguity_set._SECONDS", 1e-6)
    assert exact + 0.1 < ambiguity.sum_norm() <= 1.3 / 0.7


def test_skewness_of_equal_shares_in_closed_form():
    assert RelativeSet.of_shares(100, 0.2, 0.2, 0.2).skewness() == pytest.approx(1.04 / (0.64 * 0.2))
    assert RelativeSet.of_shares(10, 0.0, 1.0, 1.0).skewness() == pytest.approx(1.0)


def test_condition_of_theorem_3():
    ambiguity = RelativeSet.of_shares(100, 0.2, 0.2, 0.2)
    assert ambiguity.sum_norm() == pytest.approx(1.5)
    between = check_convexity(ambiguity, 0.9, 1.0)
    assert not between.holds and between.sum_norm < between.stated == pytest.approx(2.8)
    near = RelativeSet.of_shares(100, 0.1, 0.2, 0.2)
    held = check_convexity(near, 1.0, 2.2)
    assert held.holds and str(held).endswith(": the condition holds")
    failed = check_convexity(near, 1.0, 2.3)
    assert not failed.holds and "fails" in str(failed) and failed.largest_phi == pytest.approx(1 / 10.2)
    assert check_convexity(RelativeSet.of_shares(100, 1 / 10.3, 0.2, 0.2), 1.0, 2.3).holds


@given(st.floats(0.01, 1.0), st.floats(0.0, 0.6))
def test_the_condition_holds_exactly_where_the_steps_of_the_proof_grow(curvature: float, phi: float) -> None:
    """Assumption 8 is that m/4 - M (||Lambda||_1 - 1)/2, by which its step sizes grow, is above 0."""
    found = check_convexity(RelativeSet.of_shares(10, phi, 0.1, 0.1), curvature, 1.0)
    growth = curvature / 4 - (found.sum_norm - 1) / 2
    assume(abs(growth) > 1e-9)
    assert found.holds == (growth > 0)
    assert not (found.holds and found.sum_norm >= found.stated)
    # B is the one point (1/n, ..): every site has some negative weight, so the norm stays below its ceiling 3.
    assert RelativeSet.of_shares(4, 0.5, 0.25, 1.0).sum_norm() == pytest.approx(2 * (1 - 0.125 + 0.0) / 0.5 - 1)


def test_balanced_phi_is_the_root_and_is_clipped():
    phi = balanced_phi(1.0, 0.8, 2.0)
    assert 0.75 * 2.0 * phi**2 + 0.8 * phi - 0.5 == pytest.approx(0.0, abs=1e-15)
    assert balanced_phi(1.0, 0.8, 0.0) == pytest.approx(0.625)
    assert balanced_phi(9.0, 0.1, 0.0) == 0.99 and balanced_phi(1.0, 0.0, 0.0) == 0.99
    assert balanced_phi(0.0, 0.0, 0.0) == 0.0


def test_water_level_meets_its_total():
    rng = np.random.default_rng(5)
    for _ in range(50):
        values, low = rng.normal(size=9), -rng.random(9)
        high = low + rng.random(9)
        total = rng.uniform(low.sum(), high.sum())
        level = water_level(values, low, high, total)
        assert np.clip(values - level, low, high).sum() == pytest.approx(total, abs=1e-13)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: CappedSimplex(np.array([0.3, 0.3])), "is empty: the caps must sum to at least 1"),
        (lambda: CappedSimplex(np.array([-0.3, 2.0])), "at or above 0, got -0.3"),
        (lambda: CappedSimplex(np.array([np.nan, 2.0])), "at or above 0, got nan"),
        (lambda: CappedSimplex(np.zeros(0)), "one cap for each site"),
        (lambda: CappedSimplex.of_share(3, 0.0), "above 0 and at most 1, got 0.0"),
        (lambda: CappedSimplex.of_share(3, 1.2), "above 0 and at most 1, got 1.2"),
        (lambda: CappedSimplex.of_share(0, 0.5), "at least one site"),
        (lambda: RelativeSet.of_shares(3, 1.0, 0.5, 0.5), "phi must be at or above 0 and below 1, got 1.0"),
        (lambda: RelativeSet.of_shares(3, -0.1, 0.5, 0.5), "phi must be at or above 0 and below 1, got -0.1"),
        (lambda: RelativeSet(CappedSimplex.of_share(3, 0.5), CappedSimplex.of_share(4, 0.5), 0.1), "3 sites and B"),
        (
            lambda: dual_step(RelativeSet.of_shares(3, 0.1, 0.5, 0.5), np.ones(2), np.ones(3), 1.0),
            "losses must have shape",
        ),
        (
            lambda: dual_step(RelativeSet.of_shares(3, 0.1, 0.5, 0.5), np.ones(3), np.ones((3, 1)), 1.0),
            r"current must have shape \(3,\), one number a site, got \(3, 1\)",
        ),
        (lambda: dual_step(RelativeSet.of_shares(3, 0.1, 0.5, 0.5), np.ones(3), np.ones(3), 0.0), "step must be"),
        (
            lambda: dual_step(RelativeSet.of_shares(3, 0.1, 0.5, 0.5), np.array([1.0, np.inf, 0.0]), np.ones(3), 1.0),
            "losses must be finite, 1 are not",
        ),
        (lambda: check_convexity(RelativeSet.of_shares(3, 0.1, 0.5, 0.5), 2.0, 1.0), "0 <= m_f <= M_f"),
        (lambda: check_convexity(RelativeSet.of_shares(3, 0.1, 0.5, 0.5), 0.0, 0.0), "with M_f above 0"),
        (lambda: balanced_phi(-1.0, 0.0, 0.0), "worst must be"),
    ],
)
def test_refusals_are_one_clear_line(make, words):
    with pytest.raises(ProblemError, match=words) as refusal:
        make()
    assert "\n" not in str(refusal.value)
