"""Estimators of several classes by definition: sums of worst risks, likely scales, balanced weights, bins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.utils.class_weight import compute_class_weight

from models.conformal.cross import Ends
from models.estimators import FederatedDRClassifier
from models.estimators.calibration import likely_scale
from models.estimators.table import class_weights
from models.site_ambiguity.ball import MixtureBall, worst_mixture
from models.worst_case import worst_case_risk


def test_the_risk_of_several_heads_is_the_sum_of_each_in_its_own_worst_mixture() -> None:
    draw = np.random.default_rng(4)
    features, groups = draw.uniform(size=(90, 2)), np.arange(90) % 3
    classes = np.digitize(features @ [1.0, -1.0] + 0.3 * draw.standard_normal(90) + 0.3 * groups, [-0.1, 0.5])
    model = FederatedDRClassifier(radius=0.02, client_radius=0.3, gap=1e-3, calibration_folds=0)
    model.fit(features, classes, groups=groups)
    worst = []
    for k, (plane, end) in enumerate(zip(model.coef_, model.intercept_, strict=True)):
        signs = np.where(classes == k, 1.0, -1.0)
        risks = [
            worst_case_risk(
                plane, features[groups == g], signs[groups == g], radius=0.02, label_flip_cost=1.0,
                transport_norm="l2", intercept=float(end), loss="hinge",
            ).value for g in range(3)
        ]
        worst.append(worst_mixture(np.array(risks), np.full(3, 1 / 3), MixtureBall("l2", 0.3)))
    assert len(worst) == 3
    assert model.worst_case_risk_ == pytest.approx(sum(each.value for each in worst), rel=1e-9)
    mixtures = np.array([each.weights for each in worst])
    assert np.ptp(mixtures, axis=0).max() > 0.05, "heads have mixtures of their own"
    np.testing.assert_allclose([model.client_weights_[g] for g in range(3)], mixtures.mean(axis=0), atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_scale_of_probabilities_is_the_likeliest_one_of_rows_by_their_counts(n_classes: int) -> None:
    """Targets of Platt: ``(n_k + 1) / (n_k + 2)`` for the row's own class, the rest in equal parts for the others."""
    draw = np.random.default_rng(n_classes)
    scores, counts = draw.normal(size=(40, n_classes)), draw.integers(1, 5, 40).astype(float)
    classes = (scores + draw.normal(size=scores.shape)).argmax(axis=1).astype(np.intp)
    own = (np.bincount(classes, counts, n_classes) + 1.0) / (np.bincount(classes, counts, n_classes) + 2.0)
    targets = np.tile(((1.0 - own[classes]) / (n_classes - 1))[:, None], n_classes)
    targets[np.arange(40), classes] = own[classes]
    best = minimize_scalar(
        lambda scale: -float(counts @ (targets * log_softmax(scale * scores, axis=1)).sum(axis=1)),
        bounds=(1e-3, 20.0), method="bounded", options={"xatol": 1e-9},
    )
    assert likely_scale(scores, classes, counts) == pytest.approx(float(best.x), rel=1e-5)


def test_balanced_classes_weigh_as_scikit_learn_has_it() -> None:
    indices = np.repeat([0, 1, 2], [5, 2, 13])
    counts, names = np.random.default_rng(1).integers(1, 4, 20), np.array(["a", "b", "c"])
    found = class_weights("balanced", names, indices, counts.astype(float))
    wanted = compute_class_weight("balanced", classes=np.arange(3), y=np.repeat(indices, counts))
    np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize(("rows", "bins"), [(79, 1), (80, 2), (160, 4), (1000, 10)])
def test_ends_are_told_by_bins_of_forty_rows_or_more_and_ten_at_most(rows: int, bins: int) -> None:
    estimates = np.linspace(0.0, 1.0, rows)
    targets = estimates + np.random.default_rng(2).normal(size=rows)
    assert Ends.of(estimates, targets, np.ones(rows)).sizes.shape == (2, bins)
