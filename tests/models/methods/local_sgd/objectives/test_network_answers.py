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
