"""Folds partition the rows, whatever their order; copies stay together; classes are dealt evenly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import ProblemError
from models.tuning.folds import NEVER, Dealt, TooFewRowsError, check_folds, deal, deal_rows, deal_whole


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(2, 7), st.integers(0, 2**53))
def test_folds_are_of_the_rows_and_not_of_their_order(draw: int, n_folds: int, seed: int) -> None:
    random = np.random.default_rng(draw)
    features = np.round(random.uniform(size=(60, 3)), 1)
    features[30:40] = features[:10]
    classes = np.r_[random.integers(0, 3, 30), np.zeros(30, dtype=int)]
    classes[30:40] = classes[:10]
    folds = deal_rows(features, classes, n_folds, seed)
    order = random.permutation(60)
    assert np.array_equal(deal_rows(features[order], classes[order], n_folds, seed), folds[order])
    assert set(folds) <= set(range(n_folds))
    assert np.array_equal(folds[30:40], folds[:10]), "a copy of a held-out row would be learnt from"
    for number in range(3):
        own = classes == number
        distinct = np.unique(np.column_stack([features[own], folds[own]]), axis=0)
        counts = np.bincount(distinct[:, -1].astype(int), minlength=n_folds)
        assert counts.max() - counts.min() <= 1, "distinct rows of a class are dealt in turn"


def test_another_seed_deals_otherwise() -> None:
    features, classes = np.random.default_rng(0).uniform(size=(80, 2)), np.zeros(80, dtype=int)
    assert not np.array_equal(deal_rows(features, classes, 5, 1), deal_rows(features, classes, 5, 2))


def test_a_reading_of_minus_0_is_a_copy_of_one_of_0() -> None:
    features = np.repeat(np.random.default_rng(0).uniform(size=(20, 2)), 2, axis=0)
    features[:, 1] = np.tile([0.0, -0.0], 20)
    folds = deal_rows(features, np.zeros(40, dtype=int), 5, 0)
    assert np.array_equal(folds[::2], folds[1::2]) and np.array_equal(np.bincount(folds), [8] * 5)


def test_what_cannot_be_dealt_is_refused() -> None:
    features, classes = np.random.default_rng(0).uniform(size=(20, 2)), np.arange(20) % 2
    with pytest.raises(ProblemError, match="two folds at least, got 1"):
        deal_rows(features, classes, 1, 0)
    with pytest.raises(ProblemError, match="5 folds need as many distinct rows, there are 1"):
        deal_rows(np.zeros((20, 2)), np.zeros(20, dtype=int), 5, 0)
    assert sorted(deal_rows(features[:5], classes[:5], 5, 0)) == [0, 1, 2, 3, 4], "as many distinct rows are enough"
    folds = deal_rows(features, classes, 5, 0)
    check_folds(Dealt(folds), classes, 5, least_train=16, least_test=4)
    for least in ({"least_train": 17, "least_test": 4}, {"least_train": 16, "least_test": 5}):
        with pytest.raises(ProblemError, match="20 rows are too few for 5 folds"):
            check_folds(Dealt(folds), classes, 5, **least)
    lonely = np.r_[np.zeros(16, dtype=int), np.ones(4, dtype=int)]
    with pytest.raises(ProblemError, match="without one fold it would be gone"):
        check_folds(Dealt(np.arange(20) // 4), lonely, 5, 1, 1)


@pytest.mark.parametrize("copies", [1, 3])
def test_a_class_of_one_distinct_row_is_learnt_from_in_every_fold_and_scored_in_none(copies: int) -> None:
    features = np.random.default_rng(3).uniform(size=(30 + copies, 2))
    features[30:] = features[30]
    classes = np.r_[np.arange(30) % 2, np.full(copies, 2)]
    dealt = deal(features, classes, 3, 5, least_train=10, least_test=5)
    assert (dealt.folds[30:] == NEVER).all() and (dealt.folds[:30] != NEVER).all()
    for fold in range(3):
        assert dealt.learnt(fold)[30:].all() and not dealt.scored(fold)[30:].any()
        assert dealt.scored(fold).sum() == 10 and dealt.learnt(fold).sum() == 20 + copies
    assert np.array_equal(dealt.folds[:30], deal_rows(features[:30], classes[:30], 3, 5)), "as without it"


@pytest.mark.parametrize(("n_rows", "scored"), [(25, 5), (26, 5), (27, 6), (29, 7), (30, 10)])
def test_hardly_more_rows_than_must_be_learnt_from_make_smaller_folds(n_rows: int, scored: int) -> None:
    random = np.random.default_rng(n_rows)
    features, classes = random.uniform(size=(n_rows, 2)), np.arange(n_rows) % 2
    dealt = deal(features, classes, 3, 5, least_train=20, least_test=5)
    for fold in range(3):
        assert scored <= dealt.scored(fold).sum() <= scored + 1 and dealt.learnt(fold).sum() >= 20
        assert set(classes[dealt.learnt(fold)]) == set(classes[dealt.scored(fold)]) == {0, 1}
    order = random.permutation(n_rows)
    again = deal(features[order], classes[order], 3, 5, least_train=20, least_test=5)
    assert np.array_equal(again.folds, dealt.folds[order])
    with pytest.raises(TooFewRowsError, match="24 rows are too few for 3 folds: a fold needs 5 rows and the others 20"):
        deal(features[:24], classes[:24], 3, 5, least_train=20, least_test=5)


def test_one_row_more_than_must_be_learnt_from_makes_folds_of_one_row() -> None:
    dealt = deal(np.random.default_rng(0).uniform(size=(21, 2)), np.zeros(21, int), 3, 5, least_train=20, least_test=1)
    assert [int(dealt.scored(fold).sum()) for fold in range(3)] == [1, 1, 1]
    assert [int(dealt.learnt(fold).sum()) for fold in range(3)] == [20, 20, 20]


def test_rows_that_no_fold_scores_are_learnt_from_but_where_their_machine_is_held_out() -> None:
    dealt = Dealt(np.array([0, 0, NEVER, 1, NEVER, 2]), np.array([7, 7, 7, 4, 4, 9]))
    assert dealt.learnt(0).tolist() == [False, False, False, True, True, True]
    assert dealt.learnt(1).tolist() == [True, True, True, False, False, True]
    assert dealt.learnt(2).tolist() == [True, True, True, True, True, False]


def test_a_machine_of_several_folds_with_a_class_of_one_row_keeps_it_in_none() -> None:
    features, machine = np.random.default_rng(1).uniform(size=(24, 2)), np.repeat([0, 1], [16, 8])
    classes = np.r_[np.arange(15) % 2, 2, np.arange(8) % 3]
    folds = deal_whole(features, machine, classes, 3, 0)
    assert folds[15] == NEVER and set(folds[:15]) | set(folds[16:]) == {0, 1, 2}


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(0, 2**53))
def test_machines_are_dealt_whole_and_their_classes_evenly(draw: int, n_folds: int, seed: int) -> None:
    random = np.random.default_rng(draw)
    machine = np.repeat(random.permutation(4 * n_folds) * 1000, 6)
    classes = np.repeat(np.arange(4 * n_folds) % 2, 6)
    features = np.zeros((len(machine), 1))
    folds = deal_whole(features, machine, classes, n_folds, seed)
    order = random.permutation(len(machine))
    assert np.array_equal(deal_whole(features, machine[order], classes[order], n_folds, seed), folds[order])
    assert all(len(np.unique(folds[machine == each])) == 1 for each in np.unique(machine))
    for number in (0, 1):
        assert np.bincount(folds[classes == number], minlength=n_folds).tolist() == [12] * n_folds


def test_machines_of_unlike_sizes_make_folds_of_alike_many_rows() -> None:
    sizes = [40, 9, 8, 8, 7, 6, 5, 3, 2, 2]
    machine = np.repeat(np.arange(10), sizes)
    folds = deal_whole(np.zeros((90, 1)), machine, np.zeros(90, dtype=int), 3, 0)
    assert sorted(np.bincount(folds)) == [24, 26, 40], "the largest has a fold of its own"
    folds = deal_whole(np.zeros((18, 1)), np.repeat([0, 1, 2], [10, 4, 4]), np.repeat([0, 1], [10, 8]), 2, 0)
    assert folds[10] != folds[14], "both machines of a rare class are not in one fold, though it has fewer rows"


def test_another_seed_deals_machines_otherwise() -> None:
    machine, classes, features = np.repeat(np.arange(12), 4), np.zeros(48, dtype=int), np.zeros((48, 1))
    one, other = (deal_whole(features, machine, classes, 3, seed) for seed in (1, 2))
    assert not np.array_equal(one, other)


def test_another_seed_deals_the_rows_of_few_machines_otherwise() -> None:
    """Machines of unlike sizes stand in one order whatever the seed: it is their rows that it deals."""
    machine = np.repeat([0, 1], [60, 40])
    classes, features = np.zeros(100, dtype=int), np.random.default_rng(0).uniform(size=(100, 2))
    one, again, other = (deal_whole(features, machine, classes, 4, seed) for seed in (1, 1, 2))
    assert np.array_equal(one, again) and not np.array_equal(one, other)
    assert np.array_equal(one % 2, other % 2), "each machine has the folds that it had"


def test_rows_are_dealt_one_by_one_where_whole_machines_leave_too_little() -> None:
    features, classes = np.random.default_rng(0).uniform(size=(24, 2)), np.arange(24) % 2
    by_rows = deal_rows(features, classes, 3, 0)

    def dealt(machine: list[int], least_train: int = 8, least_test: int = 2) -> np.ndarray:
        together = np.array(machine)
        return deal(features, classes, 3, 0, together, least_train=least_train, least_test=least_test).folds

    whole = dealt([row // 2 for row in range(24)])
    assert np.array_equal(whole[::2], whole[1::2]) and not np.array_equal(whole, by_rows)
    assert np.array_equal(dealt([0] * 24), by_rows), "one machine fills no two folds"
    assert np.array_equal(dealt([row % 2 for row in range(24)]), by_rows), "a class on one machine would be gone"
    assert np.array_equal(dealt([0] * 10 + [1] * 13 + [2]), by_rows), "a fold of one row is too small"
    with pytest.raises(TooFewRowsError, match="24 rows are too few for 3 folds"):
        dealt([row // 2 for row in range(24)], least_train=23)


@pytest.mark.parametrize(("machines", "n_folds"), [(2, 3), (2, 5), (3, 5), (4, 5)])
def test_fewer_machines_than_folds_are_left_out_one_by_one_and_every_fold_has_rows(machines: int, n_folds: int) -> None:
    random = np.random.default_rng(machines)
    machine = random.permutation(np.repeat(np.arange(machines) * 7, 30 + 10 * np.arange(machines)))
    features, target = random.uniform(size=(len(machine), 2)), np.zeros(len(machine), dtype=np.intp)
    dealt = deal(features, target, n_folds, 4, machine, least_train=30, least_test=6)
    for fold in range(n_folds):
        scored, learnt = dealt.scored(fold), dealt.learnt(fold)
        left_out = np.unique(machine[scored])
        assert len(left_out) == 1, "a fold scores rows of one machine"
        assert np.array_equal(learnt, machine != left_out[0]), "of which no row is learnt from"
    rows = np.bincount(dealt.folds, minlength=n_folds)
    assert rows.sum() == len(machine) and rows.min() >= 6 and rows.max() <= 30 + 10 * (machines - 1)
    often = [len(np.unique(dealt.folds[machine == each])) for each in np.unique(machine)]
    assert max(often) - min(often) <= 1 and often == sorted(often), "the largest machines have one fold more"
    order = random.permutation(len(machine))
    again = deal(features[order], target, n_folds, 4, machine[order], least_train=30, least_test=6)
    assert np.array_equal(again.folds, dealt.folds[order])
    classes = np.arange(len(machine)) % 2
    by_rows = deal(features, classes, n_folds, 4, machine, least_train=30, least_test=6)
    assert by_rows.together is None, "of classes half of the rows tell too little"
    assert deal(features, classes, machines, 4, machine, least_train=30, least_test=6).together is machine


def test_a_machine_with_too_few_rows_for_its_folds_is_not_left_out() -> None:
    features, machine = np.random.default_rng(1).uniform(size=(24, 2)), np.arange(24) % 2
    target = np.zeros(24, dtype=np.intp)
    whole = deal(features, target, 3, 0, machine, least_train=12, least_test=6)
    assert whole.together is not None
    for least in ({"least_train": 13, "least_test": 6}, {"least_train": 12, "least_test": 7}):
        by_rows = deal(features, target, 3, 0, machine, **least)
        assert by_rows.together is None and np.array_equal(by_rows.folds, deal_rows(features, target, 3, 0))
        assert np.array_equal(by_rows.learnt(1), by_rows.folds != 1)
