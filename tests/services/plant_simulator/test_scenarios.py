"""The five scenarios: who holds what."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.contracts.errors import InvalidInputError
from services.plant_simulator.scenarios import SCENARIOS, apportion, plan_plants, severities, skewed_shares


def shares(scenario):
    return plan_plants(scenario, 4, 400, 1000, 2)


def test_there_are_the_five_of_the_study():
    assert list(SCENARIOS) == ["nominal", "client-imbalance", "class-imbalance", "both", "noisy-labels"]


@pytest.mark.parametrize(
    ("scenario", "train", "flips"),
    [
        ("nominal", [(50, 50)] * 4, [0] * 4),
        ("client-imbalance", [(140, 140), (30, 30), (20, 20), (10, 10)], [0] * 4),
        ("class-imbalance", [(90, 10)] * 4, [0] * 4),
        ("both", [(252, 28), (54, 6), (36, 4), (18, 2)], [0] * 4),
        ("noisy-labels", [(50, 50)] * 4, [15] * 4),
    ],
)
def test_rows_classes_and_flips_of_four_plants(scenario, train, flips):
    plants = shares(scenario)
    assert [plant.train for plant in plants] == train
    assert [plant.flips for plant in plants] == flips
    assert [plant.test for plant in plants] == [(125, 125)] * 4
    np.testing.assert_allclose([plant.severity for plant in plants], [1e-3, 4e-3, 7e-3, 1e-2])


@given(st.integers(1, 200), st.integers(0, 10_000))
def test_shares_of_any_number_of_plants_use_every_row(sites, total):
    skewed = skewed_shares(sites)
    assert skewed.sum() == pytest.approx(1.0)
    assert (np.diff(skewed) <= 1e-12).all()
    for share in (skewed, np.full(sites, 1.0 / sites)):
        counts = apportion(total, share)
        assert sum(counts) == total
        assert np.abs(np.array(counts) - total * share).max() < 1.0


def test_severities_of_other_numbers_of_plants_span_the_same_range():
    np.testing.assert_allclose(severities(1), [5.5e-3])
    np.testing.assert_allclose(severities(7)[[0, 6]], [1e-3, 1e-2])
    np.testing.assert_allclose(skewed_shares(4), [0.70, 0.15, 0.10, 0.05])
    np.testing.assert_allclose(skewed_shares(2), [0.85, 0.15])


def test_many_classes_share_evenly_or_leave_a_tenth_to_all_faults():
    (first, *_) = plan_plants("nominal", 4, 400, 1000, 8)
    assert first.train == (13, 13, 13, 13, 12, 12, 12, 12)
    (skewed, *_) = plan_plants("class-imbalance", 4, 400, 1000, 8)
    assert skewed.train[0] == 90
    assert sum(skewed.train) == 100


@pytest.mark.parametrize(
    ("scenario", "sites", "train", "test", "says"),
    [
        ("nominale", 4, 400, 1000, "unknown scenario 'nominale': choose from nominal, client-imbalance"),
        ("nominal", 0, 400, 1000, "sites must be between 1 and"),
        ("nominal", 4, 4, 1000, "plant-1 would hold 1 training measurements, too few"),
        ("nominal", 4, 400, 0, "plant-1 would hold 0 test measurements, too few"),
        ("both", 4, 40, 1000, "too few for a healthy and a faulty one"),
        ("nominal", 4, -1, 1000, "must be 0 or more"),
        ("nominal", 4, 400, 10**6, "at most 50000 measurements in all"),
    ],
)
def test_numbers_that_do_not_go_round_are_refused(scenario, sites, train, test, says):
    with pytest.raises(InvalidInputError, match=says):
        plan_plants(scenario, sites, train, test, 2)


def test_the_limits_themselves_are_allowed():
    assert len(plan_plants("nominal", 200, 25_000, 25_000, 2)) == 200
    for sites, train in ((201, 25_000), (200, 25_001)):
        with pytest.raises(InvalidInputError):
            plan_plants("nominal", sites, train, 25_000, 2)
