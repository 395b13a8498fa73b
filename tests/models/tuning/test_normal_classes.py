"""Planes of classes that are taken for normal: against numerical minima, Fisher's discriminant, and Bayes' own rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from models.basics import FloatArray
from models.tuning.normal_classes import _NORMAL, NormalClasses


def drawn(seed: int, n_classes: int, size: int) -> NormalClasses:
    random = np.random.default_rng(seed)
    root = random.normal(size=(size, size)) + 1.5 * np.eye(size)
    shares = random.uniform(0.5, 1.5, n_classes)
    return NormalClasses(shares / shares.sum(), random.normal(size=(n_classes, size)), root @ root.T / size)


def risk_of(classes: NormalClasses, k: int, direction: FloatArray, offset: float, price: float) -> float:
    """The head's risk as its definition has it: a sum over classes and equally likely normal numbers."""
    total, spread = 0.0, float(np.sqrt(direction @ classes.within @ direction))
    for number, (share, mean) in enumerate(zip(classes.shares, classes.means, strict=True)):
        side = 1.0 if number == k else -1.0
        total += share * float(np.logaddexp(0.0, -side * (direction @ mean + spread * _NORMAL + offset)).mean())
    return total + price * float(np.linalg.norm(direction))


def head_of(classes: NormalClasses, k: int, price: float) -> FloatArray:
    sizes, turned = np.linalg.eigh(classes.within)
    return turned @ classes._head(k, classes.means @ turned, sizes, float(sizes.mean()), price)


def least(classes: NormalClasses, k: int, price: float) -> float:
    """Minimum over all directions, sizes and intercepts, from several starts."""
    size = classes.means.shape[1]

    def value(at: FloatArray) -> float:
        return risk_of(classes, k, at[:-1], float(at[-1]), price)

    starts = [np.zeros(size + 1) + 1e-3, *np.random.default_rng(0).normal(size=(3, size + 1))]
    return min(float(minimize(value, start, method="BFGS").fun) for start in starts)


@pytest.mark.parametrize("share", [0.5, 0.9])
@pytest.mark.parametrize("price", [1e-4, 0.02, 0.1])
@pytest.mark.parametrize("seed", [0, 1, 5])
def test_a_head_of_two_classes_has_the_least_risk_of_all_planes(seed: int, price: float, share: float) -> None:
    classes = replace(drawn(seed, 2, 3), shares=np.array([share, 1.0 - share]))
    head = head_of(classes, 0, price)
    start = np.array([np.log(share / (1.0 - share))])
    own = minimize(lambda at: risk_of(classes, 0, head, float(at[0]), price), start, method="BFGS").fun
    best = least(classes, 0, price)
    assert best - 1e-6 <= own <= best + 6e-4


def test_a_head_pays_for_its_size_and_of_a_high_price_there_is_none() -> None:
    classes = drawn(3, 3, 4)
    sizes = [float(np.linalg.norm(head_of(classes, 1, price))) for price in (1e-4, 1e-2, 1e-1, 10.0)]
    assert sizes[0] > sizes[1] > sizes[2] >= sizes[3] == 0.0
    assert classes.planes(10.0)[:, :-1] == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(classes.planes(10.0)[:, -1], np.log(classes.shares), atol=1e-9)


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-6, 1e-3]))
def test_where_heads_span_all_directions_the_planes_are_fishers(seed: int, price: float) -> None:
    classes = drawn(seed, 3, 2)
    planes = classes.planes(price)
    wanted = np.linalg.solve(classes.within, classes.means.T).T
    intercepts = np.log(classes.shares) - 0.5 * (wanted * classes.means).sum(axis=1)
    found, own = (each - each[0] for each in (planes, np.column_stack([wanted, intercepts])))
    np.testing.assert_allclose(found, own, rtol=1e-4, atol=1e-4 * np.abs(own).max())


def test_a_head_that_is_hardly_paid_for_goes_from_the_other_classes_middle_to_its_own() -> None:
    """At zero the risk falls by pi_k (1 - pi_k) ||mu_k - mu_rest|| along that line, which is where it begins to pay."""
    classes = replace(drawn(8, 3, 5), shares=np.array([0.2, 0.7, 0.1]))
    line = classes.means[0] - np.average(classes.means[1:], axis=0, weights=classes.shares[1:])
    falls = 0.2 * 0.8 * float(np.linalg.norm(line))
    head = head_of(classes, 0, 0.97 * falls)
    assert head @ line / np.linalg.norm(head) / np.linalg.norm(line) > 1.0 - 1e-3
    assert not head_of(classes, 0, 1.03 * falls).any()


def test_a_small_price_tells_classes_apart_as_bayes_does_and_shares_count() -> None:
    classes = drawn(11, 4, 3)
    random, root = np.random.default_rng(0), np.linalg.cholesky(classes.within)
    numbers = random.choice(4, 4000, p=classes.shares)
    rows = classes.means[numbers] + random.normal(size=(4000, 3)) @ root.T
    apart = [
        np.log(share) - 0.5 * np.einsum("nr,nr->n", rows - mean, np.linalg.solve(classes.within, (rows - mean).T).T)
        for share, mean in zip(classes.shares, classes.means, strict=True)
    ]
    best = float((np.argmax(apart, axis=0) == numbers).mean())
    planes = classes.planes(1e-5)
    assert (np.argmax(rows @ planes[:, :-1].T + planes[:, -1], axis=1) == numbers).mean() >= best - 5e-3


def test_a_spread_that_bends_downwards_or_is_nothing_has_finite_planes() -> None:
    classes = drawn(5, 3, 4)
    bent = NormalClasses(classes.shares, classes.means, classes.within - 2.0 * np.eye(4))
    flat = NormalClasses(classes.shares, classes.means, np.zeros((4, 4)))
    alike = NormalClasses(classes.shares, np.ones((3, 4)), classes.within)
    for each in (bent, flat, alike):
        assert np.isfinite(each.planes(1e-2)).all()
    assert alike.planes(1e-2)[:, :-1] == pytest.approx(0.0, abs=1e-9)
