"""Local mixup: what a mixed step is, that it stays in the vault, and the paper's Example 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.basics import FloatArray
from models.losses.catalogue import get_loss
from models.methods.catalogue import check_parameters, get_method
from models.methods.local_sgd.mixup import MixupObjective
from models.methods.local_sgd.objectives.linear import LinearObjective
from models.methods.local_sgd.objectives.softmax import SoftmaxObjective
from models.methods.local_sgd.rule import message
from models.problem import RobustSpec, SiteProblem

WEIGHTS = np.array([0.4, -0.7, 0.2])


def rows(seed: int = 0, n: int = 9) -> tuple[FloatArray, FloatArray]:
    random = np.random.default_rng(seed)
    return random.normal(size=(n, 2)), random.choice([-1.0, 1.0], n)


def mixed(ratio: float = 0.0, loss: str = "logistic", alpha: float = 1.0, beta: float = 1.0) -> MixupObjective:
    return MixupObjective(LinearObjective(get_loss(loss)), rows(), alpha, beta, ratio)


def test_the_mean_over_many_draws_is_the_loss_over_all_pairs() -> None:
    """Gradient and loss at ratio 0.3, against all pairs one by one."""
    objective, (features, labels), ratio = mixed(0.3), rows(), 0.3
    inner, loss, gradient = objective.model, 0.0, np.zeros(3)
    for j in range(9):
        for k in range(9):
            row = (ratio * features[j] + (1 - ratio) * features[k])[None]
            for share, label in ((ratio, labels[j]), (1 - ratio, labels[k])):
                value, slope = inner.loss_and_gradient(WEIGHTS, row, np.array([label]))
                loss, gradient = loss + share * value / 81, gradient + share * slope / 81
    random = np.random.default_rng(1)
    draws = [objective.loss_and_gradient(WEIGHTS, features, labels, random) for _ in range(4000)]
    assert np.mean([value for value, _ in draws]) == pytest.approx(loss, abs=3e-3)
    np.testing.assert_allclose(np.mean([slope for _, slope in draws], axis=0), gradient, atol=4e-3)
    assert np.mean([objective.mixed_loss(WEIGHTS, random) for _ in range(4000)]) == pytest.approx(loss, abs=3e-3)


def test_ratio_1_is_no_mixing_and_no_draw_is_exact() -> None:
    features, labels = rows()
    plain = LinearObjective(get_loss("logistic")).loss_and_gradient(WEIGHTS, features, labels)
    for found in (
        mixed(1.0).loss_and_gradient(WEIGHTS, features, labels, np.random.default_rng(0)),
        mixed(0.5).loss_and_gradient(WEIGHTS, features, labels),
    ):
        assert found[0] == pytest.approx(plain[0], rel=1e-15)
        np.testing.assert_allclose(found[1], plain[1], rtol=1e-13)


def test_ratios_come_from_the_beta_distribution() -> None:
    objective, random = mixed(alpha=2.0, beta=5.0), np.random.default_rng(0)
    ratios = [objective._partners(9, random)[0] for _ in range(5000)]
    assert np.mean(ratios) == pytest.approx(2 / 7, abs=0.01)
    assert np.var(ratios) == pytest.approx(10 / (49 * 8), abs=0.003)


class OwnLabels(LinearObjective):
    """A model whose mean mixed loss is that of the rows' own labels."""

    def mixed_loss_and_gradient(self, weights: FloatArray, rows: Any, *drawn: Any) -> tuple[float, FloatArray]:
        return float(rows[1].mean()), weights


@pytest.mark.parametrize("count", [3, 9, 20])
def test_every_row_counts_alike_in_the_mixed_loss_whatever_parts_the_ratios_are_drawn_for(count: int) -> None:
    partners = (np.zeros((count, 2)), np.arange(count) ** 2.0)
    objective = MixupObjective(OwnLabels(get_loss("logistic")), partners, 1.0, 1.0)
    for seed in range(3):
        found = objective.mixed_loss(WEIGHTS, np.random.default_rng(seed))
        assert found == pytest.approx(float(partners[1].mean()))


def test_targets_of_a_regression_are_mixed_themselves() -> None:
    objective = mixed(0.5, "huber")
    features, targets = np.zeros((1, 2)), np.array([3.0])
    objective = MixupObjective(objective.model, (np.zeros((1, 2)), np.array([1.0])), 1.0, 1.0, 0.5)
    loss, _ = objective.loss_and_gradient(np.zeros(3), features, targets, np.random.default_rng(0))
    expected = get_loss("huber").value(np.array([-2.0]))[0]
    assert loss == pytest.approx(expected)


def test_of_a_softmax_it_is_the_cross_entropy_against_the_mixed_label() -> None:
    random = np.random.default_rng(3)
    features, classes = random.normal(size=(6, 2)), random.integers(0, 3, 6).astype(float)
    inner = SoftmaxObjective(3)
    weights = random.normal(size=inner.size(2))
    objective = MixupObjective(inner, (features[:1], classes[:1]), 1.0, 1.0, 0.25)
    loss, gradient = objective.loss_and_gradient(weights, features, classes, np.random.default_rng(0))
    points = 0.25 * features + 0.75 * features[0]
    each = [[inner.loss(weights, points[i][None], np.array([float(c)])) for c in range(3)] for i in range(6)]
    mixture = 0.25 * np.eye(3)[classes.astype(int)] + 0.75 * np.eye(3)[int(classes[0])]
    assert loss == pytest.approx(float(np.sum(mixture * np.array(each), axis=1).mean()), rel=1e-12)
    moved = [
        objective.loss_and_gradient(weights + step, features, classes, np.random.default_rng(0))[0]
        - objective.loss_and_gradient(weights - step, features, classes, np.random.default_rng(0))[0]
        for step in 1e-6 * np.eye(weights.shape[0])
    ]
    np.testing.assert_allclose(gradient, np.array(moved) / 2e-6, atol=1e-8)


def test_what_leaves_the_vault_is_model_sized_whatever_the_rows() -> None:
    """Ten rows or a thousand: the same names and shapes, the one scalar of mixup among them, and no row in any."""
    method = get_method("drflm")
    numbers = check_parameters(method, {"mixup_alpha": 0.5, "mixup_beta": 0.5})
    for n in (10, 1000):
        features, labels = rows(5, n)
        site = SiteProblem(features, labels, RobustSpec(0.0, 1.0, loss=get_loss("logistic")))
        answer = method.site.answer(site, message(WEIGHTS, step_size=0.1, draw=4, snapshot_step=3), numbers)
        assert {name: array.shape for name, array in answer.items()} == {
            "risk": (), "cut_height": (), "norm_weight": (), "mixed_risk": (), "slope": (3,), "local_point": (3,),
            "snapshot": (3,),
        }
        exact = LinearObjective(get_loss("logistic")).loss_and_gradient(WEIGHTS, features, labels)
        assert float(answer["risk"]) == pytest.approx(exact[0])
        np.testing.assert_allclose(answer["slope"], exact[1])


# Example 1. A linear classifier that looks at the first feature is a threshold b: +1 above, -1 below. The feature is
# even on [-2, -1] and on [1, 2], the label its sign; at the second client the labels in I = [-1 - p2, -1] are turned
# with probability p1. All is exact on a fine grid of the interval.

CELLS = 200
LEFT = -2 + (np.arange(CELLS) + 0.5) / CELLS
POINTS = np.concatenate([LEFT, 3 + LEFT])
THRESHOLDS = np.linspace(-2, 2, 801)


@pytest.mark.parametrize(("step_size", "batch", "least", "all_rows"), [
    (0.0, 0.2, 1.0, True), (0.1, 1.0, 1.0, True), (0.1, 0.2, 1.0, False), (0.1, 0.2, 60.0, True),
])
def test_the_mixed_loss_is_of_all_rows_or_of_as_many_as_a_step_takes(
    step_size: float, batch: float, least: float, all_rows: bool
) -> None:
    """At a ratio of 1, where it is the loss of the rows themselves; of no fewer than a site lets itself be asked."""
    features, labels = rows(3, 60)
    site, method = SiteProblem(features, labels, RobustSpec(0.0, 1.0, loss=get_loss("logistic"))), get_method("drflm")
    parameters = {**method.parameters, "mixup_ratio": 1.0, "batch": batch, "least_rows": least}
    answer = method.site.answer(site, message(WEIGHTS, step_size=step_size, draw=5), parameters)
    assert (float(answer["mixed_risk"]) == pytest.approx(float(answer["risk"]))) == all_rows


def positive_share(p1: float, p2: float) -> FloatArray:
    """Probability that the label is +1 at each point; p1 0 is the clean client."""
    return np.where(POINTS > 0, 1.0, np.where(POINTS > -1 - p2, p1, 0.0))


def zero_one(points: FloatArray, positive: FloatArray, mass: FloatArray) -> FloatArray:
    """Mean 0-1 loss at each threshold, of points with a probability of +1."""
    order = np.argsort(points)
    points, positive, mass = points[order], positive[order], mass[order] / mass.sum()
    below = np.concatenate([[0.0], np.cumsum(mass * positive)])
    above = np.concatenate([[0.0], np.cumsum(mass * (1 - positive))])
    at = np.searchsorted(points, THRESHOLDS)
    return below[at] + above[-1] - above[at]


def mixed_zero_one(positive: FloatArray) -> FloatArray:
    """The same over all pairs at the ratio 1/2: half the loss against either label."""
    points = 0.5 * (POINTS[:, None] + POINTS)
    share = 0.5 * (positive[:, None] + positive)
    return zero_one(points.ravel(), share.ravel(), np.ones(points.size))


def best_thresholds(loss: FloatArray) -> FloatArray:
    return THRESHOLDS[loss <= loss.min() + 1e-9]


@pytest.mark.parametrize(("p1", "p2"), [(0.6, 0.9), (0.7, 0.6), (0.9, 0.3)])
def test_example_1_dro_is_misled_by_noise_and_mixup_mends_it(p1: float, p2: float) -> None:
    """DRFA's boundary lies inside I, half-way (the paper says at its far end); FedAvg's and DRFLM's cost nothing."""
    clean, noisy, mass = positive_share(0.0, p2), positive_share(p1, p2), np.ones_like(POINTS)
    first, second = zero_one(POINTS, clean, mass), zero_one(POINTS, noisy, mass)
    population = first
    average = best_thresholds(0.5 * (first + second))
    assert population[np.isin(THRESHOLDS, average)].max() == pytest.approx(0.0, abs=1e-12)
    worst = best_thresholds(np.maximum(first, second))
    np.testing.assert_allclose(worst, -1 - p2 / 2, atol=0.011)
    assert population[np.isin(THRESHOLDS, worst)].min() == pytest.approx(p2 / 4, abs=0.006)
    mixup = best_thresholds(np.maximum(mixed_zero_one(clean), mixed_zero_one(noisy)))
    assert population[np.isin(THRESHOLDS, mixup)].max() == pytest.approx(0.0, abs=1e-12)
    assert mixup.min() >= -1.0 and mixup.max() <= 1.0
