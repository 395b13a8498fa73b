"""The radius of a network's diagnosis holds against moves; its shares add up to the score."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.geometry.norms import vector_norm
from models.methods.local_sgd.objectives.network import NetworkObjective
from models.methods.local_sgd.objectives.network_answers import network_radius, network_shares, steepness

NORMS = st.sampled_from(["l1", "l2", "linf"])


def drawn(seed: int, n_classes: int = 3, hidden: int = 7, n_features: int = 3) -> tuple[NetworkObjective, np.ndarray]:
    network = NetworkObjective(n_classes, hidden, 0.0)
    random = np.random.default_rng(seed)
    return network, random.normal(size=network.size(n_features))


@given(st.integers(0, 10**6), NORMS)
def test_no_move_within_the_radius_changes_the_class(seed: int, norm: str) -> None:
    network, weights = drawn(seed)
    random = np.random.default_rng(seed + 1)
    rows = random.uniform(size=(4, 3))
    radii, classes = network_radius(network, weights, rows, norm), network.scores(weights, rows).argmax(axis=1)
    for row, radius, number in zip(rows, radii, classes, strict=True):
        # along each pair's steepest descent at many points, and at random
        inner, bias, outer, _ = network.layers(weights, 3)
        lit = (row @ inner.T + bias > 0).astype(float)
        descents = [((outer[k] - outer[number]) * lit) @ inner for k in range(3) if k != number]
        moves = np.vstack([random.normal(size=(60, 3)), *descents, *(np.sign(each) for each in descents)])
        moves = moves[vector_norm(moves, norm) > 0]
        moved = row + 0.999 * radius * moves / vector_norm(moves, norm)[:, None]
        assert (network.scores(weights, moved).argmax(axis=1) == number).all()


@given(st.integers(0, 10**6), NORMS)
def test_the_bound_is_that_of_every_gradient_and_reached_by_one_unit(seed: int, norm: str) -> None:
    random = np.random.default_rng(seed)
    inner, outer = random.normal(size=(5, 3)), random.normal(size=5)
    masks = np.array(np.meshgrid(*[[0, 1]] * 5)).reshape(5, -1).T
    dual = {"l1": "linf", "l2": "l2", "linf": "l1"}[norm]
    largest = vector_norm((masks * outer) @ inner, dual).max()
    found = float(steepness(inner, outer, norm))
    assert largest <= found * (1 + 1e-12)
    one = float(steepness(inner[:1], outer[:1], norm))
    assert one == pytest.approx(vector_norm(outer[:1] @ inner[:1], dual))


def test_shares_add_up_to_what_the_score_is_above_the_middle() -> None:
    network, weights = drawn(4)
    rows = np.random.default_rng(5).uniform(size=(6, 3))
    classes = np.array([0, 1, 2, 0, 1, 2])
    shares = network_shares(network, weights, rows, classes)
    middle = network.scores(weights, np.full((1, 3), 0.5))[0]
    above = network.scores(weights, rows)[np.arange(6), classes] - middle[classes]
    np.testing.assert_allclose(shares.sum(axis=1), above, atol=0.05 * np.abs(above).max())


@given(st.integers(0, 10**6))
def test_in_l2_the_tighter_of_two_bounds_counts(seed: int) -> None:
    """By the entries of the gradient, or by the sizes of both layers; either may be the less."""
    random = np.random.default_rng(seed)
    inner, outer = random.normal(size=(5, 3)), random.normal(size=5)
    signed = outer[:, None] * inner
    entries = np.maximum(np.maximum(signed, 0.0).sum(axis=0), np.maximum(-signed, 0.0).sum(axis=0))
    sizes = np.linalg.norm(outer) * np.linalg.svd(inner, compute_uv=False)[0]
    assert float(steepness(inner, outer, "l2")) == pytest.approx(min(np.linalg.norm(entries), sizes))


def test_scores_that_never_change_have_a_radius_without_end() -> None:
    network, weights = drawn(1)
    inner, bias, outer, _ = network.layers(weights, 3)
    flat = np.concatenate([inner.ravel(), bias, 0.0 * outer.ravel(), [1.0, 0.0, 2.0]])
    assert np.isinf(network_radius(network, flat, np.full((2, 3), 0.3), "l2")).all()


def test_shares_are_by_midpoints() -> None:
    """A unit that is lit from a quarter of a step on: the middle of that step is, its ends are not."""
    network = NetworkObjective(2, 1, 0.0)
    for lit in (5.25, 40.25):
        away = 0.4
        inner, bias = np.array([[2.0]]), np.array([-2.0 * (0.5 + away * lit / 64)])
        parts = [inner.ravel(), bias, np.array([1.0, 0.0]), np.zeros(2)]
        found = network_shares(network, np.concatenate(parts), np.array([[0.5 + away]]), np.array([0]))[0, 0]
        exact = 2.0 * away * (1.0 - lit / 64)
        assert abs(found - exact) <= 0.5 * 2.0 * away / 64
