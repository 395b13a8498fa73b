"""Sets and conformal intervals of the estimators: new rows of every group are covered, and fits stay what they were."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from models.basics import FloatArray, ProblemError
from models.estimators import DRSVC, FederatedDRClassifier, FederatedDRRegressor, FederatedDRSVC
from models.estimators.folds import deal_targets
from models.estimators.table import Table


def drawn(seed: int, n: int, groups: int = 4) -> tuple[FloatArray, FloatArray, Any]:
    """Features, a noisy score, and groups whose noise is unlike: the last group's is three times the first's."""
    draw = np.random.default_rng([31, seed])
    features, group = draw.uniform(size=(n, 3)), np.arange(n) % groups
    noise = 0.1 * (1.0 + 2.0 * group / (groups - 1)) * draw.standard_normal(n)
    return features, features @ [1.0, -1.0, 0.5] + noise, group


@pytest.mark.parametrize("coverage", [0.7, 0.9])
def test_new_rows_of_every_group_lie_in_their_intervals(coverage: float) -> None:
    features, targets, group = drawn(1, 240)
    model = FederatedDRRegressor(radius=1e-4, gap=1e-2).fit(features, targets, groups=group)
    new, truth, whose = drawn(2, 4000)
    found = model.predict_interval(new, coverage)
    assert found.shape == (4000, 2)
    held = (found[:, 0] <= truth) & (truth <= found[:, 1])
    # 60 rows a group: the coverage of one draw of them spreads by 0.04 about what is promised.
    assert min(held[whose == each].mean() for each in range(4)) >= coverage - 0.06
    assert held.mean() < 1.0, "an interval that holds everything says nothing"
    markov = model.predict_interval(new, coverage, method="markov")
    assert markov.shape == (4000, 2) and np.mean(markov[:, 1] - markov[:, 0]) > np.mean(found[:, 1] - found[:, 0])


@pytest.mark.parametrize("weight", [0.5, 0.55])
def test_rows_that_count_in_part_make_intervals_that_hold_as_much(weight: float) -> None:
    """Nine rows and a half in each group: no whole number of rows is the rank of 0.9."""
    features, targets, group = drawn(8, 38, 2)
    model = FederatedDRRegressor(radius=1e-3).fit(features, targets, groups=group, sample_weight=np.full(38, weight))
    low, high = model.predict_interval(features, 0.9).T
    assert ((low <= targets) & (targets <= high)).mean() >= 0.9


def test_new_rows_of_every_group_are_in_their_sets_by_default() -> None:
    features, score, group = drawn(3, 400)
    names = np.array(["low", "middle", "high"])
    model = FederatedDRClassifier().fit(features, names[np.digitize(score, [0.0, 0.5])], groups=group)
    new, truth, whose = drawn(4, 4000)
    sets, own = model.predict_set(new), names[np.digitize(truth, [0.0, 0.5])]
    assert sets.dtype == bool and sets.shape == (4000, 3)
    held = sets[np.arange(4000), np.searchsorted(model.classes_, own)]
    assert min(held[whose == each].mean() for each in range(4)) >= 0.85
    assert sets[np.arange(4000), np.searchsorted(model.classes_, model.predict(new))].all(), "the prediction is in it"
    assert sets.sum(axis=1).mean() < 2.6
    assert (model.predict_set(new, 0.6) <= sets).all(), "a smaller coverage never adds a class"


@pytest.mark.parametrize("estimator", [DRSVC, FederatedDRSVC, FederatedDRClassifier])
def test_two_classes_have_sets_by_every_estimator(estimator: Any) -> None:
    features, score, group = drawn(5, 200)
    given = {} if estimator is DRSVC else {"groups": group}
    sets = estimator().fit(features, score > 0.2, **given).predict_set(features, coverage=0.8)
    assert sets.shape == (200, 2) and sets.any(axis=1).all()


def test_folds_change_no_fit() -> None:
    features, targets, group = drawn(6, 80)
    fits = [
        FederatedDRRegressor(radius=1e-3, calibration_folds=folds).fit(features, targets, groups=group)
        for folds in (0, 3)
    ]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    with pytest.raises(ProblemError, match="needs calibration_folds, and the estimator was fitted with 0"):
        fits[0].predict_interval(features)
    assert fits[0].predict_interval(features, method="markov").shape == (80, 2)
    with pytest.raises(ProblemError, match='must be "conformal" or "markov"'):
        fits[1].predict_interval(features, method="guess")  # type: ignore[arg-type]


def test_too_few_rows_of_a_group_are_refused_with_how_many_are_needed() -> None:
    features, targets, group = drawn(7, 60)
    group[:] = np.where(np.arange(60) < 8, 0, 1)
    model = FederatedDRRegressor(gap=1e-2).fit(features, targets, groups=group)
    with pytest.raises(ProblemError, match=r"coverage 0.9 needs 9 rows of each group .* group 0 has 8"):
        model.predict_interval(features, 0.9)
    assert np.isfinite(model.predict_interval(features, 0.8)).all()
    for method in ("conformal", "markov"):
        for wrong in (0.0, 1.0, 2.0, float("nan")):
            with pytest.raises(ProblemError, match=f"coverage must lie between 0 and 1, both excluded, got {wrong:g}"):
                model.predict_interval(features, wrong, method=method)  # type: ignore[arg-type]
        for text in ("most", "0.8"):
            with pytest.raises(ProblemError, match=f"coverage must be a number, got '{text}'"):
                model.predict_interval(features, text, method=method)  # type: ignore[arg-type]


def test_the_low_end_of_an_interval_is_never_above_the_high_one() -> None:
    draw = np.random.default_rng(2)
    features = draw.uniform(size=(90, 3))
    targets = features[:, 0] + 0.3 * draw.normal(size=90)
    model = FederatedDRRegressor(gap=1e-2).fit(features, targets, groups=np.zeros(90))
    for coverage in (0.01, 0.05, 0.5):
        low, high = model.predict_interval(features, coverage).T
        assert (low <= high).all(), "folds that differ by more than the interval is wide"


def test_targets_are_dealt_so_that_every_fold_has_its_part_of_every_group() -> None:
    draw = np.random.default_rng(9)
    site = np.repeat([0, 1, 2], [30, 16, 1])
    table = Table(draw.uniform(size=(47, 2)), draw.uniform(size=47), site, np.ones(47), np.ones(47))
    folds = deal_targets(table, 3)
    for group, size in ((0, 30), (1, 16)):
        counts = np.bincount(folds[site == group], minlength=3)
        assert counts.sum() == size and counts.min() >= size // 3
    assert folds[site == 2].tolist() == [-1], "a site's only row stays, or the site would be gone"
    doubled = Table(*(np.concatenate([each, each]) for each in (
        table.features, table.outcomes, table.site, table.counts, table.weights,
    )))
    np.testing.assert_array_equal(*np.split(deal_targets(doubled, 3), 2))


def test_estimates_and_intervals_do_not_leave_the_range_that_a_box_has_of_the_target() -> None:
    """A share of something cannot be below 0 or above 1."""
    features, score, group = drawn(5, 120, groups=2)
    targets, new = np.clip(score, 0.0, 1.0), drawn(6, 200)[0]
    shared: dict[str, Any] = {"loss": "epsilon_insensitive", "radius": 1e-3, "gap": 1e-2, "max_rounds": 30}
    wide, cut = (
        FederatedDRRegressor(support=(0.0, 1.0, *ends), **shared).fit(features, targets, groups=group)
        for ends in ((-9.0, 9.0), (0.0, 1.0))
    )
    methods: tuple[Literal["conformal", "markov"], ...] = ("conformal", "markov")
    intervals = [[model.predict_interval(new, 0.8, method=method) for model in (cut, wide)] for method in methods]
    for found, free in ([model.predict(new) for model in (cut, wide)], *intervals):
        assert found.min() >= 0.0 and found.max() <= 1.0 and (free.min() < 0.0 or free.max() > 1.0)
