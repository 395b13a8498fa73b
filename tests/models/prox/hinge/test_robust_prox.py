"""What the client step promises, whichever solver runs."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from models.basics import ProblemError
from models.problem import RobustSpec, SiteProblem
from models.prox.hinge import robust_prox

NORMS = ("l1", "l2", "linf")
SIZES = (40, 2_000)
"""Solved over at once, and over a working set."""


def _close(one, other):
    assert one.value == pytest.approx(other.value, rel=1e-9)
    np.testing.assert_allclose(one.point, other.point, rtol=0, atol=1e-4 * (1.0 + np.abs(other.point).max()))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", SIZES)
def test_row_order_changes_nothing(make_site, norm, n):
    site = make_site(n, norm=norm)
    order = np.random.default_rng(1).permutation(n)
    centre = np.arange(6.0)
    turned = SiteProblem(site.features[order], site.labels[order], site.spec)
    _close(robust_prox(turned, centre, 0.1), robust_prox(site, centre, 0.1))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("start", ["answer", "centre", "zero", "far"])
def test_start_changes_the_time_only(make_site, norm, n, start):
    site, centre = make_site(n, norm=norm), np.linspace(-2.0, 2.0, 6)
    cold = robust_prox(site, centre, 0.05)
    starts = {"answer": cold.point, "centre": centre, "zero": np.zeros(6), "far": 50.0 * np.ones(6)}
    _close(robust_prox(site, centre, 0.05, warm_start=starts[start]), cold)


@pytest.mark.parametrize("n", SIZES)
def test_same_input_gives_the_same_bits(make_site, n):
    site, centre = make_site(n), np.ones(6)
    first = robust_prox(site, centre, 0.1, warm_start=0.5 * centre)
    robust_prox(make_site(n, seed=5), -centre, 3.0)
    again = robust_prox(site, centre, 0.1, warm_start=0.5 * centre)
    assert first.point.tobytes() == again.point.tobytes()
    assert (first.value, first.offset, first.gap) == (again.value, again.offset, again.gap)
    assert first.slope.tobytes() == again.slope.tobytes()


def test_inputs_stay_as_they_were(make_site):
    site, centre, start = make_site(500), np.ones(6), np.full(6, 0.3)
    before = [part.tobytes() for part in (site.features, site.labels, centre, start)]
    robust_prox(site, centre, 0.1, warm_start=start)
    assert [part.tobytes() for part in (site.features, site.labels, centre, start)] == before


@pytest.mark.parametrize("n", SIZES)
def test_columns_in_memory_order_do_not_matter(make_site, n):
    site, centre = make_site(n), np.ones(6)
    turned = SiteProblem(np.asfortranarray(site.features), site.labels, site.spec)
    _close(robust_prox(turned, centre, 0.1), robust_prox(site, centre, 0.1))


@pytest.mark.parametrize("norm", NORMS)
def test_ridge_is_a_second_prox_term(make_site, norm):
    site, centre, penalty, ridge = make_site(60, norm=norm), np.linspace(-1.0, 2.0, 6), 0.3, 0.2
    found = robust_prox(site, centre, penalty, ridge=ridge)
    stiff = penalty + 2.0 * ridge
    pulled = robust_prox(site, centre * penalty / stiff, stiff)
    np.testing.assert_allclose(found.point, pulled.point, atol=1e-7)
    left = 0.5 * penalty * (1.0 - penalty / stiff) * float(centre @ centre)
    assert found.value == pytest.approx(pulled.value + left, rel=1e-9)


def test_penalty_may_be_0_with_a_ridge(make_site, objective):
    site = make_site(60)
    found = robust_prox(site, np.ones(6), 0.0, ridge=0.1)
    assert found.value == pytest.approx(objective(found.point, site, np.ones(6), 0.0, 0.1), rel=1e-10)
    assert found.gap <= 1e-9


@pytest.mark.parametrize("norm", NORMS)
def test_dear_flips_are_no_flips(make_site, norm):
    site = make_site(60, norm=norm, flip_cost=1e9)
    never = SiteProblem(site.features, site.labels, replace(site.spec, label_flip_cost=math.inf))
    _close(robust_prox(site, np.ones(6), 0.1), robust_prox(never, np.ones(6), 0.1))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("flip_cost", [0.3, math.inf])
def test_radius_0_is_the_plain_support_vector_machine(make_site, norm, flip_cost):
    site, centre = make_site(60, norm=norm, radius=0.0, flip_cost=flip_cost), np.ones(6)
    found = robust_prox(site, centre, 0.1)
    margins = site.labels * (site.features @ found.point[:-1] + found.point[-1])
    away = found.point - centre
    hinge = float(np.maximum(1.0 - margins, 0.0).mean())
    assert found.value == pytest.approx(hinge + 0.05 * float(away @ away), rel=1e-10)
    assert found.gap <= 1e-9


@pytest.mark.parametrize("norm", NORMS)
def test_huge_radius_puts_the_weights_to_0_and_leaves_the_intercept(make_site, norm):
    site = make_site(60, norm=norm, radius=1e6, flip_cost=math.inf, positive=0.9)
    found = robust_prox(site, np.zeros(6), 0.01)
    assert np.abs(found.point[:-1]).max() <= 1e-10
    assert found.point[-1] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("norm", NORMS)
def test_tiny_radius_is_near_radius_0(make_site, norm):
    site, plain = (make_site(60, norm=norm, radius=radius) for radius in (1e-300, 0.0))
    assert robust_prox(site, np.ones(6), 0.1).value == pytest.approx(
        robust_prox(plain, np.ones(6), 0.1).value, rel=1e-8
    )


@pytest.mark.parametrize("norm", NORMS)
def test_one_row_and_one_class(norm, objective):
    spec = RobustSpec(0.1, 0.5, norm)
    for labels in ([1.0], [-1.0], [1.0, 1.0, 1.0]):
        site = SiteProblem(np.full((len(labels), 2), 0.5), np.array(labels), spec)
        found = robust_prox(site, np.array([1.0, -2.0, 0.3]), 0.5)
        assert found.value == pytest.approx(
            objective(found.point, site, np.array([1.0, -2.0, 0.3]), 0.5, 0.0), rel=1e-9
        )
        assert found.gap <= 1e-9


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [600, 3_000])
def test_more_rows_tie_than_there_are_weights(make_site, objective, norm, n):
    site, centre = make_site(n, norm=norm, positive=0.05), np.zeros(6)
    found = robust_prox(site, centre, 1e-3)
    margins = site.labels * (site.features @ found.point[:-1] + found.point[-1])
    assert np.count_nonzero(np.abs(margins - 1.0) < 1e-6) > 0.8 * n
    for answer in (found, robust_prox(site, 0.01 * np.ones(6), 1e-3, warm_start=found.point)):
        assert answer.gap <= 1e-9 * answer.value
    assert found.value == pytest.approx(objective(found.point, site, centre, 1e-3, 0.0), rel=1e-9)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("size", [1e155, 1e200])
def test_a_step_whose_numbers_overflow_is_refused(make_site, size):
    site = make_site(40)
    large = SiteProblem(size * site.features, site.labels, site.spec)
    for far, centre in ((large, np.ones(6)), (site, np.full(6, size))):
        with pytest.raises(ProblemError, match="scale them to order 1"):
            robust_prox(far, centre, 0.1)


def test_repeated_rows_weigh_like_one(make_site):
    site, centre = make_site(30), np.ones(6)
    thrice = SiteProblem(np.tile(site.features, (40, 1)), np.tile(site.labels, 40), site.spec)
    _close(robust_prox(thrice, centre, 0.1), robust_prox(site, centre, 0.1))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [500, 5_000, 50_000])
def test_a_warm_step_reads_the_data_a_few_times_whatever_their_number(make_site, norm, n):
    site = make_site(n, 14, norm=norm, radius=0.1 / n)
    before = robust_prox(site, np.zeros(15), 0.1)
    warm = robust_prox(site, 0.05 * before.point, 0.1, warm_start=before.point)
    assert warm.gap <= 1e-9 * warm.value
    assert warm.passes <= 10
    assert before.passes <= 14


@pytest.mark.parametrize("start", ["cold", "warm", "crowded"])
def test_memory_stays_within_4_times_the_data(make_site, start):
    site = make_site(30_000, 14, radius=1e-6, positive=0.02 if start == "crowded" else None)
    known = robust_prox(site, np.zeros(15), 1e-3).point if start == "warm" else None
    tracemalloc.start()
    robust_prox(site, np.full(15, 0.01), 1e-3, warm_start=known)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 4.0 * (site.features.nbytes + site.labels.nbytes)


def _bad(make_site, **changes):
    site = make_site(10)
    given = {"problem": site, "centre": np.zeros(6), "penalty": 1.0, "ridge": 0.0, "warm_start": None} | changes
    with pytest.raises(ProblemError) as refusal:
        robust_prox(
            given["problem"], given["centre"], given["penalty"], ridge=given["ridge"], warm_start=given["warm_start"]
        )
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def test_refused_with_one_clear_line(make_site):
    nan = np.array([0.0, 0.0, np.nan, 0.0, 0.0, 0.0])
    assert "penalty must be a finite number at or above 0, got -1.0" in _bad(make_site, penalty=-1.0)
    assert "penalty must be a finite" in _bad(make_site, penalty=math.nan)
    assert "penalty must be a finite" in _bad(make_site, penalty=math.inf)
    assert "ridge must be a finite number at or above 0" in _bad(make_site, ridge=-0.5)
    assert "both 0" in _bad(make_site, penalty=0.0)
    assert "centre must be finite" in _bad(make_site, centre=nan)
    assert "centre must have length 6, got shape (5,)" in _bad(make_site, centre=np.zeros(5))
    assert "centre must have length 6, got shape (1, 6)" in _bad(make_site, centre=np.zeros((1, 6)))
    assert "warm_start must have length 6" in _bad(make_site, warm_start=np.zeros(7))
    assert "warm_start must be finite" in _bad(make_site, warm_start=np.full(6, np.inf))


def test_refused_rows(make_site):
    site = make_site(10)

    def problem(features=site.features, labels=site.labels):
        return SiteProblem(features, labels, site.spec)

    hole = site.features.copy()
    hole[3, 2] = np.nan
    assert "features must be finite" in _bad(make_site, problem=problem(features=hole))
    hole[3, 2] = np.inf
    assert "features must be finite" in _bad(make_site, problem=problem(features=hole))
    assert "labels must be -1 or +1" in _bad(make_site, problem=problem(labels=np.where(site.labels > 0, 1.0, 0.0)))
    assert "labels must be -1 or +1" in _bad(make_site, problem=problem(labels=np.full(10, np.nan)))
    assert "labels must have shape (10,)" in _bad(make_site, problem=problem(labels=site.labels[:9]))
    assert "at least one row and column" in _bad(make_site, problem=problem(np.zeros((0, 5)), np.zeros(0)))
    assert "at least one row and column" in _bad(make_site, problem=problem(np.zeros((10, 0)), site.labels))
