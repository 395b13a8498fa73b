"""Sets of rows that stand for those that light a unit: equal or far apart, each the nearest to the unit's own."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from models.methods.local_sgd.objectives.lit_sets import lit_rows, shared_sets
from models.methods.local_sgd.objectives.network import NetworkObjective


def apart(sets: np.ndarray) -> np.ndarray:
    """Rows in which any two columns differ, (H, H)."""
    return np.asarray((sets[:, :, None] ^ sets[:, None, :]).sum(axis=0))


@given(rows=st.integers(1, 60), units=st.integers(1, 40), least=st.integers(2, 25), seed=st.integers(0, 2**32 - 1))
def test_any_two_sets_are_equal_or_far_apart_and_none_is_replaced_without_need(
    rows: int, units: int, least: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    lit = random.uniform(size=(rows, 1)) < random.uniform(size=(1, units))  # of thresholds: one within the other
    lit[:, : units // 2] ^= random.uniform(size=(rows, units // 2)) < 0.05
    told = shared_sets(lit, least)
    if rows < least:
        assert not told.any(), "no rows are far from all of them"
        return
    whole = np.column_stack([np.zeros(rows, bool), np.ones(rows, bool), told])
    between = apart(whole)
    assert ((between == 0) | (between >= least)).all()
    away = (told ^ lit).sum(axis=0)
    assert (away < least).all(), "it stands for rows that are nearly its own"
    nearest = (lit[:, :, None] ^ whole[:, None, :]).sum(axis=0).min(axis=1)
    np.testing.assert_array_equal(away, nearest)


def test_sets_do_not_depend_on_the_order_of_the_rows() -> None:
    random = np.random.default_rng(0)
    lit, order = random.uniform(size=(50, 30)) < 0.5, random.permutation(50)
    np.testing.assert_array_equal(shared_sets(lit, 20)[order], shared_sets(lit[order], 20))


def test_at_its_threshold_a_unit_is_dark_as_it_is_where_no_set_stands_for_its_rows() -> None:
    """A unit that has died, all of it at 0, is lit by nobody and learns nothing from anybody."""
    random = np.random.default_rng(2)
    features, inner, bias = random.integers(0, 3, (40, 2)) / 2.0, random.integers(-1, 2, (9, 2)) * 1.0, np.zeros(9)
    assert (features @ inner.T == 0.0).any()
    np.testing.assert_array_equal(lit_rows(features, inner, bias), features @ inner.T > 0)
    assert not lit_rows(features, np.zeros((1, 2)), np.zeros(1)).any()


def test_what_lights_a_unit_goes_by_readings_in_steps_of_a_five_hundredth() -> None:
    features = np.random.default_rng(1).uniform(size=(200, 1))
    thresholds = np.concatenate([features[:, 0] + off for off in (-4e-4, -1e-9, 1e-9, 4e-4)])
    lit = lit_rows(features, np.ones((thresholds.size, 1)), -thresholds)
    same = np.round(thresholds * 500 + 0.5)  # thresholds between the same two steps
    for step in np.unique(same):
        of_step = lit[:, same == step]
        assert (of_step == of_step[:, :1]).all()


def test_no_pair_of_units_of_a_gradient_is_a_row() -> None:
    """Thresholds along one reading: neighbouring units were one row apart, and their difference was that row."""
    random = np.random.default_rng(2)
    features, labels = random.uniform(size=(120, 3)), (np.arange(120) % 2).astype(float)
    hidden = 400
    network = NetworkObjective(2, hidden, 0.0, least_rows=20)
    inner, places = np.zeros((hidden, 3)), np.linspace(0.0, 1.0, hidden // 2)
    inner[: hidden // 2, 0], inner[hidden // 2 :, 0] = 1.0, -1.0
    bias = np.concatenate([-places, places])
    weights = np.concatenate([inner.ravel(), bias, np.full(hidden, 1e-3), np.full(hidden, -1e-3), np.zeros(2)])

    def found(objective: NetworkObjective) -> int:
        gradient = objective.layers(objective.loss_and_gradient(weights, features, labels)[1], 3)
        sums = np.column_stack([gradient[0], gradient[1]])
        steps = (sums[:, None] - sums)[np.triu_indices(hidden, 1)]
        steps = steps[np.abs(steps[:, 3]) > 1e-9]
        rows = steps[:, :3] / steps[:, 3:]
        away = np.abs(features[:, None] - rows[None]).max(axis=2).min(axis=1)
        return int((away < 1e-6).sum())

    assert found(NetworkObjective(2, hidden, 0.0)) > 60, "without least_rows most rows come out"
    assert found(network) == 0


def test_the_slopes_of_the_second_layer_bend_nowhere_within_a_set() -> None:
    """Where a unit's outer slope bends as its threshold passes a row, second differences would be of that row."""
    random = np.random.default_rng(3)
    features, labels = random.uniform(size=(60, 1)), (np.arange(60) % 2).astype(float)
    places = np.linspace(0.02, 0.25, 24)

    def bends(least: int) -> float:
        """Largest second difference of the outer slope over thresholds below most rows."""
        network = NetworkObjective(2, 1, 0.0, least_rows=least)
        told = []
        for place in places:
            weights = np.array([1.0, -place, 0.0, 0.0, 0.0, 0.0])
            told.append(float(network.layers(network.loss_and_gradient(weights, features, labels)[1], 1)[2][0, 0]))
        return float(np.abs(np.diff(told, n=2)).max())

    assert (features[:, 0] < places[-1]).sum() in range(2, 20), "rows lie between, and all of them stand for the unit's"
    assert bends(20) < 1e-12 < 1e-5 < bends(1)


def test_a_network_whose_units_share_sets_still_learns() -> None:
    random = np.random.default_rng(4)
    features = random.uniform(size=(150, 2))
    labels = ((features[:, 0] - 0.5) * (features[:, 1] - 0.5) > 0).astype(float)  # no plane tells them apart
    ends = {}
    for least in (1, 20):
        network = NetworkObjective(2, 32, 0.0, least_rows=least)
        weights = network.start(2, 0)
        for _ in range(1500):
            weights = weights - 1.0 * network.loss_and_gradient(weights, features, labels)[1]
        ends[least] = network.loss(weights, features, labels)
    assert ends[20] < 0.3 and ends[20] < ends[1] + 0.05, ends
