"""Folds of an estimator keep the machines of a site whole: of a tuning, and of sets, intervals and probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold

from models.basics import FloatArray, ProblemError
from models.estimators import DRSVC, FederatedDRClassifier, FederatedDRRegressor, FederatedDRSVC
from models.estimators.calibration import deal_folds
from models.estimators.folds import deal_targets
from models.estimators.table import Table

RNG = np.random.default_rng(12)
MACHINE = np.repeat(np.arange(12), 10)
"""Machines of ten rows, of which six are at either site."""
SITE = np.repeat(["north", "south"], 60)
X = RNG.normal(size=(12, 3))[MACHINE] + 0.05 * RNG.normal(size=(120, 3))
"""Readings that tell the machine, and of it little else."""
OWN = RNG.permutation(np.arange(12) % 2)[MACHINE]
"""Each machine is good or bad, which its readings say nothing of."""
SHIFT = RNG.normal(size=12)[MACHINE]
EVERY = (DRSVC, FederatedDRSVC, FederatedDRClassifier, FederatedDRRegressor)


def fitted(kind: Any, outcomes: Any, machines: Any = None, **parameters: Any) -> Any:
    groups = {} if kind is DRSVC else {"groups": SITE}
    return kind(gap=1e-2, **parameters).fit(X, outcomes, machines=machines, **groups)


def table(outcomes: FloatArray, machine: Any) -> Table:
    site = (SITE == "south").astype(np.intp)
    return Table(X, np.asarray(outcomes, dtype=np.float64), site, np.ones(120), np.ones(120), machine)


@pytest.mark.parametrize("deal", [deal_folds, deal_targets])
def test_held_out_rows_are_whole_machines(deal: Any) -> None:
    outcomes = np.tile([0.0, 1.0], 60)
    folds = deal(table(outcomes, MACHINE), 3)
    assert all(len(np.unique(folds[each == MACHINE])) == 1 for each in range(12))
    assert np.bincount(folds[SITE == "north"]).tolist() == np.bincount(folds[SITE == "south"]).tolist() == [20] * 3
    by_rows = deal(table(outcomes, None), 3)
    assert any(len(np.unique(by_rows[each == MACHINE])) > 1 for each in range(12))


@pytest.mark.parametrize("deal", [deal_folds, deal_targets])
def test_a_site_of_fewer_machines_than_folds_holds_them_whole_in_fewer_folds(deal: Any) -> None:
    """With its rows dealt one by one, each would be scored by a model that has seen its machine."""
    few = np.where(SITE == "north", MACHINE // 2, MACHINE)  # three machines of twenty rows, and six of ten
    folds = deal(table(np.tile([0.0, 1.0], 60), few), 5)
    assert all(len(np.unique(folds[few == each])) == 1 for each in np.unique(few))
    assert len(np.unique(folds[SITE == "north"])) == 3 and len(np.unique(folds[SITE == "south"])) == 5


def test_a_row_that_two_machines_have_is_two_rows_and_one_of_a_machine_is_one() -> None:
    twice = table(np.zeros(120), MACHINE)
    twice.features[[0, 1, 15]] = 0.5
    assert len(twice.merged().features) == 119
    first, which = twice.same_rows()
    assert which[0] == which[1] != which[15] and set(twice.machine[first]) == set(range(12))  # type: ignore[index]


def test_a_machine_is_one_at_each_site() -> None:
    named_alike = np.concatenate([MACHINE[:60], MACHINE[:60]])
    folds = deal_folds(table(np.tile([0.0, 1.0], 60), named_alike), 3)
    assert np.bincount(folds).tolist() == [40] * 3


@pytest.mark.parametrize("kind", EVERY)
def test_a_tuning_scores_machines_that_its_candidates_have_not_seen(kind: Any) -> None:
    outcomes = SHIFT if kind is FederatedDRRegressor else OWN
    tuning = {"segments": [0, 6], "folds": 3, "rule": "best", "radius": [1.0, 3.0]}
    seen, unseen = (
        max(each["score"] for each in fitted(kind, outcomes, machines, tuning=tuning, calibration_folds=0).tuning_curve_
            if each["score"] is not None)
        for machines in (None, MACHINE)
    )
    assert unseen < seen - 0.2, "a curve that knows the machines again promises what no new machine keeps"


def test_intervals_and_sets_are_as_wide_as_new_machines_need() -> None:
    widths = [
        np.ptp(fitted(FederatedDRRegressor, SHIFT, machines, lift="spline").predict_interval(X), axis=1).mean()
        for machines in (None, MACHINE)
    ]
    assert widths[1] > 1.5 * widths[0]
    sizes = [
        fitted(FederatedDRClassifier, OWN, machines, lift="spline").predict_set(X).sum(axis=1).mean()
        for machines in (None, MACHINE)
    ]
    assert sizes[1] > sizes[0] + 0.2


@pytest.mark.parametrize("kind", EVERY)
def test_any_names_do_and_rows_that_count_nothing_take_their_machines_along(kind: Any) -> None:
    outcomes, names = (SHIFT if kind is FederatedDRRegressor else OWN), [f"pump {each}" for each in MACHINE]
    tuning = {"segments": [0, 2], "folds": 2}
    by_name, by_number = (fitted(kind, outcomes, each, tuning=tuning) for each in (names, np.array(names)))
    np.testing.assert_array_equal(by_name.coef_, by_number.coef_)
    counts = np.where(MACHINE % 6 == 5, 0.0, 1.0)
    groups = {} if kind is DRSVC else {"groups": SITE}
    weighted = kind(gap=1e-2).fit(X, outcomes, sample_weight=counts, machines=names, **groups)
    kept = counts > 0
    groups = {} if kind is DRSVC else {"groups": SITE[kept]}
    without = kind(gap=1e-2).fit(X[kept], outcomes[kept], machines=MACHINE[kept], **groups)
    np.testing.assert_allclose(weighted.coef_, without.coef_, rtol=1e-9)


@pytest.mark.parametrize(
    ("machines", "line"),
    [
        (MACHINE[:5], "machines must name the machine of each of the 120 rows, got 5"),
        (np.zeros((120, 2)), r"machines must be a vector with the name of each row's machine, got the shape \(120, 2"),
        (["a", None] * 60, "machines must name the machine of every row, some are missing"),
        (["a", 1] * 60, "machines must be names of one kind that can be sorted, got int, str"),
    ],
)
@pytest.mark.parametrize("kind", EVERY)
def test_refuses_machines_that_name_none(kind: Any, machines: Any, line: str) -> None:
    with pytest.raises(ProblemError, match=line) as refused:
        fitted(kind, SHIFT if kind is FederatedDRRegressor else OWN, machines)
    assert "\n" not in str(refused.value)


def test_model_selection_passes_machines_on_where_they_are_asked_for() -> None:
    outcomes = np.tile(["good", "bad"], 60)
    with sklearn.config_context(enable_metadata_routing=True):
        model = FederatedDRSVC(radius=1e-3, gap=1e-2).set_fit_request(groups=True, machines=True)
        search = GridSearchCV(model, {"lift_size": [2, 3]}, cv=GroupKFold(2).set_split_request(groups="machines"))
        found = search.fit(X, outcomes, groups=SITE, machines=MACHINE).best_estimator_
    same = fitted(FederatedDRSVC, outcomes, MACHINE, radius=1e-3)
    assert found.probability_scale_ == same.probability_scale_
    assert same.probability_scale_ != fitted(FederatedDRSVC, outcomes, radius=1e-3).probability_scale_
