"""Cuts from sums are true of weights up to a reach alone: the bound is of these, whatever the cuts leave unbounded."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from models.basics import FloatArray
from models.cohorts.dealing import cohort_problem
from models.cuts.best_weights import reach_charge
from models.cuts.cut_model import CutModel
from models.cuts.cut_program import minimise
from models.cuts.lower_bound import lower_bound
from models.problem import REACH, ServerProblem, SiteTerms

SITES = tuple(SiteTerms(f"plant-{number}", 1 / 3, 0.1, 1.0) for number in range(3))


def one_site(slope: FloatArray, offset: FloatArray, reach: float) -> CutModel:
    """Cuts of one site without a norm."""
    count, d = slope.shape
    return CutModel(
        np.ones(1), np.zeros(1), np.zeros(count, np.intp), offset, slope, np.zeros(count), "l1", d, reach=reach
    )


def least(model: CutModel) -> float:
    """Of the model within the reach, by a linear program."""
    d = model.slope.shape[1]
    found = linprog(
        np.eye(d + 1)[d], np.hstack([model.slope, -np.ones((len(model.offset), 1))]), -model.offset,
        bounds=[(-model.reach, model.reach)] * d + [(0.0, None)], method="highs",
    )
    return float(found.fun)


def test_cuts_that_leave_a_direction_open_bound_the_weights_within_the_reach() -> None:
    """As of all classes as one problem under a lift: a segment that few rows reach, along which the cuts fall by 1e-9.

    Over all weights nothing is proven, for far enough out the cuts are at 0.
    """
    slope, offset, half = np.array([[1.0, -1e-9], [-1.0, -1e-9]]), np.full(2, 0.9), np.full(2, 0.5)
    assert lower_bound(one_site(slope, offset, np.inf), half, np.zeros(2)) == 0.0
    assert lower_bound(one_site(slope, offset, REACH), half, np.zeros(2)) == pytest.approx(0.9 - 1e-9 * REACH, abs=1e-9)


def test_no_reach_counts_where_weights_are_in_units_of_their_own() -> None:
    """It is said of the weights themselves; a bound in other units is of all weights."""
    model, slope = one_site(np.array([[1.0, 0.5]]), np.array([0.9]), 10.0), np.array([1.0, 0.5])
    assert reach_charge(model, np.ones(1), slope, np.zeros(2)) == pytest.approx(15.0)
    for open_ended in (replace(model, feature_scale=np.array([2.0, 1.0])), replace(model, reach=np.inf)):
        assert reach_charge(open_ended, np.ones(1), slope, np.zeros(2)) == np.inf


@settings(max_examples=60, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), noise=st.sampled_from([0.0, 1e-9, 1e-3]))
def test_the_bound_is_at_most_the_least_within_the_reach(seed: int, noise: float) -> None:
    """Also of multipliers that are not the best, from any point; of good ones it misses little."""
    draw = np.random.default_rng(seed)
    d = int(draw.integers(1, 5))
    slope = draw.normal(size=(3 * d, d))
    slope[:, -1] *= 10.0 ** draw.uniform(-12, 0)
    model = one_site(slope, draw.uniform(0.2, 1.0, 3 * d), 10.0 ** draw.uniform(0, 2))
    found = minimise(model, np.zeros(d)).multipliers
    bound = lower_bound(model, found + noise * draw.uniform(size=3 * d), draw.uniform(-1, 1, d) * model.reach)
    assert bound <= least(model) + 1e-9


@pytest.mark.parametrize("at", [0.0, -40.0])
def test_an_intercept_that_cuts_bound_from_one_side_is_charged_up_to_the_reach(at: float) -> None:
    """As where zero weights are the best ones: the cuts' slopes in the intercept are roundings, all of one sign."""
    flat = 1e-13
    slope, offset, half = np.array([[0.1, flat], [-0.1, flat]]), np.full(2, 1.0), np.full(2, 0.5)
    model = replace(
        one_site(slope, offset, np.inf), n_features=1, transport_norm="l2", floor=np.array([0.3]), norm_weight=half,
    )
    reference = np.array([0.0, at])
    assert lower_bound(model, half, reference) == 0.0
    found = lower_bound(replace(model, reach=REACH), half, reference)
    assert found == pytest.approx(1.0 + flat * at - flat * (REACH + abs(at)), abs=3e-12) and found < 1.0 - flat * REACH


def test_a_problem_of_cohorts_has_it_and_one_of_single_answers_has_not() -> None:
    single = ServerProblem(4, SITES, "l1", fit_intercept=True)
    summed = cohort_problem(single, {"cohort-1": tuple(site.site_id for site in SITES)})
    assert (single.reach, summed.reach) == (np.inf, REACH)


def test_what_rounding_has_left_of_a_slope_is_charged_too() -> None:
    """Slopes that seem to cancel fall by some 1e-17 for each unit of the way, and the reach is thousands of units."""
    draw, seen = np.random.default_rng(3), 0
    for _ in range(20):
        half, middle = draw.uniform(0.1, 1.0, (2, 3))
        slope = np.vstack([middle + half, middle - half, -middle])
        cuts = np.array([0.25, 0.25, 0.5]) * draw.uniform(0.1, 1.0)
        tilt, model = cuts @ slope, one_site(slope, np.ones(3), REACH)
        left = Fraction(0)
        for column in slope.T:
            left += abs(sum((Fraction(a) * Fraction(b) for a, b in zip(cuts, column, strict=True)), Fraction(0)))
        assert Fraction(reach_charge(model, cuts, tilt, np.zeros(3))) >= left * Fraction(REACH)
        seen += int(sum((abs(Fraction(each)) for each in tilt), Fraction(0)) < left)
    assert seen > 0
