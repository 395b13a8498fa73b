"""Radii: from the sample count, from a confidence, from the data; the confidence of the mixture."""

from __future__ import annotations

import math
from itertools import combinations, permutations

import numpy as np
import pytest

import models.worst_case.radius
from models.basics import ProblemError, TransportNorm
from models.worst_case.radius import LightTail, confidence_radius, estimated_radius, mixture_confidence, samples_radius


def test_radius_from_samples() -> None:
    assert samples_radius(10, 25) == pytest.approx(0.004)
    for beta, count in ((0, 10), (-1, 10), (math.nan, 10), (10, 0)):
        with pytest.raises(ProblemError):
            samples_radius(beta, count)


def test_proposition_2_by_hand() -> None:
    tail = LightTail(exponent=2.0, c1=2.0, c2=0.5, c3=0.1)
    needed = math.log(2.0 / 0.05) / 0.5
    assert confidence_radius(0.95, 20, 3, tail) == pytest.approx((needed / 20) ** 0.5)
    assert confidence_radius(0.95, 200, 3, tail) == pytest.approx((needed / 200) ** (1 / 3))
    assert 20 < needed / 0.1 < 200
    assert confidence_radius(0.99, 200, 3, tail) > confidence_radius(0.9, 200, 3, tail)
    for c1 in (0.5, 0.3):
        assert confidence_radius(0.5, 200, 3, LightTail(2.0, c1, 1.0, 1.0)) == 0.0
    for wrong in ({"exponent": 1.0}, {"c1": 0.0}, {"c2": -1.0}, {"c3": math.inf}):
        with pytest.raises(ProblemError):
            LightTail(**({"exponent": 2.0, "c1": 1.0, "c2": 1.0, "c3": 1.0} | wrong))
    for confidence in (0.0, 1.0, math.nan):
        with pytest.raises(ProblemError, match="confidence"):
            confidence_radius(confidence, 20, 3, tail)


def test_the_ball_of_one_feature_holds_the_truth_as_often_as_it_says() -> None:
    """Uniform on [0, 1]: the distance is at most the largest gap of the distribution functions, 2 exp(-2 N r^2)."""
    random, count, confidence = np.random.default_rng(5), 400, 0.9
    radius = confidence_radius(confidence, count, 1, LightTail(exponent=2.0, c1=2.0, c2=2.0, c3=1.0))
    grid = np.linspace(0.0, 1.0, 4001)
    inside = 0
    for _ in range(100):
        sample = np.sort(random.uniform(size=count))
        gap = np.abs(np.searchsorted(sample, grid, side="right") / count - grid)
        inside += float(np.trapezoid(gap, grid)) <= radius
    assert inside >= 100 * confidence


def test_confidence_of_the_mixture() -> None:
    assert mixture_confidence([0.9, 0.95, 1.0]) == pytest.approx(0.855)
    assert mixture_confidence([]) == 1.0
    with pytest.raises(ProblemError):
        mixture_confidence([1.2])


def test_estimate_by_resampling() -> None:
    """More rows, smaller radius; the same seed, the same number; distances scale with the features."""
    random = np.random.default_rng(0)
    features, labels = random.uniform(0, 1, (200, 2)), random.choice([-1.0, 1.0], 200)

    def radius(count: int, scale: float = 1.0, seed: int = 1, flip_cost: float = 0.5) -> float:
        estimate = estimated_radius(
            scale * features[:count], labels[:count], label_flip_cost=flip_cost, transport_norm="l2", confidence=0.9,
            seed=seed, n_resamples=20,
        )
        assert estimate.label == "estimate by resampling"
        return estimate.radius

    assert radius(200) < radius(50) < radius(12)
    assert radius(60) == radius(60) != radius(60, seed=2)
    assert radius(60, scale=2.0, flip_cost=1.0) == pytest.approx(2 * radius(60))
    same = estimated_radius(
        np.ones((10, 2)), np.ones(10), label_flip_cost=math.inf, transport_norm="l1", confidence=0.9, seed=0
    )
    assert same.radius == 0.0


def test_distance_of_a_split_is_exact() -> None:
    """Two rows a half, by hand: the cheaper of the two pairings, a label flip included."""
    features, labels = np.array([[0.0], [1.0], [0.1], [1.2]]), np.array([1.0, 1.0, 1.0, -1.0])
    from models.worst_case.radius import _split_distance

    found = _split_distance(features, labels, np.arange(4), 0.3, "l1", "classification")
    assert found == pytest.approx(0.5 * min(0.1 + 0.2 + 0.3, 1.2 + 0.3 + 0.9))


def _distance_by_hand(
    features: np.ndarray, labels: np.ndarray, half: tuple[int, ...], order: int | float, flip_cost: float
) -> float:
    """Wasserstein distance of half of four rows from the other, over both pairings; no flip: the longest move."""
    other = [row for row in range(4) if row not in half]
    moves = {(i, j): float(np.linalg.norm(features[i] - features[j], ord=order)) for i in half for j in other}
    flip = flip_cost if math.isfinite(flip_cost) else max(moves.values())
    return min(
        float(np.mean([moves[i, j] + flip * (labels[i] != labels[j]) for i, j in zip(half, pairing, strict=True)]))
        for pairing in permutations(other)
    )


@pytest.mark.parametrize(("norm", "order"), [("l1", 1), ("l2", 2), ("linf", math.inf)])
@pytest.mark.parametrize(("n_features", "flip_cost"), [(1, 0.3), (2, 0.3), (5, 0.3), (5, math.inf)])
def test_estimate_is_the_quantile_of_the_distances_shrunk_from_a_half_to_all_rows(
    norm: TransportNorm, order: float, n_features: int, flip_cost: float
) -> None:
    """Four rows have three splits into halves: a quantile near 0 or 1 of many resamples is the least or the largest."""
    features = np.random.default_rng(n_features).uniform(size=(4, n_features))
    labels = np.array([1.0, 1.0, 1.0, -1.0])
    splits = [_distance_by_hand(features, labels, half, order, flip_cost) for half in combinations(range(4), 2)]
    for confidence, expected in ((1e-9, min(splits)), (1 - 1e-9, max(splits))):
        found = estimated_radius(
            features, labels, label_flip_cost=flip_cost, transport_norm=norm, confidence=confidence, seed=3,
        )
        assert found.radius == pytest.approx(expected * 0.5 ** (1 / max(n_features, 2)), rel=1e-6)


@pytest.mark.parametrize(("rows", "half"), [(4, 2), (5, 2), (9, 4), (10, 5), (12, 5), (40, 5)])
def test_the_estimate_shrinks_from_as_many_rows_as_a_split_has_to_all(
    rows: int, half: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An odd row is in no half, nor is any beyond the most. All rows are 2 apart, so every split is."""
    monkeypatch.setattr(models.worst_case.radius, "MAX_RESAMPLED_ROWS", 5)
    found = estimated_radius(
        np.eye(rows), np.ones(rows), label_flip_cost=1.0, transport_norm="l1", confidence=0.5, seed=0, n_resamples=3
    )
    assert found.radius == pytest.approx(2.0 * (half / rows) ** (1.0 / rows), rel=1e-12)


def test_estimate_refuses() -> None:
    for change in ({"confidence": 1.0}, {"label_flip_cost": 0.0}, {"n_resamples": 0}):
        with pytest.raises(ProblemError):
            estimated_radius(
                np.zeros((9, 2)), np.ones(9),
                **({"label_flip_cost": 1.0, "transport_norm": "l2", "confidence": 0.9, "seed": 0} | change),
            )
    with pytest.raises(ProblemError, match="at least four rows"):
        estimated_radius(np.zeros((3, 2)), np.ones(3), label_flip_cost=1, transport_norm="l2", confidence=0.9, seed=0)


def test_what_a_target_moves_costs_as_much_as_it_moves() -> None:
    """Of rows that differ in their targets alone; twice the targets at half the cost are the same problem."""
    draw = np.random.default_rng(4)
    rows, targets = np.zeros((40, 2)), draw.normal(size=40)

    def radius(given: np.ndarray, cost: float) -> float:
        return estimated_radius(
            rows, given, label_flip_cost=cost, transport_norm="l2", confidence=0.9, seed=1, task="regression"
        ).radius

    assert radius(2.0 * targets, 0.5) == pytest.approx(radius(targets, 1.0))
    assert radius(2.0 * targets, 1.0) == pytest.approx(2.0 * radius(targets, 1.0))
