"""Measurements: determinism, streams, operating points, sensors."""

import numpy as np
import pytest

from services.contracts.errors import InvalidInputError
from services.plant_simulator import measure as measuring
from services.plant_simulator.integrate import Trajectory
from services.plant_simulator.measure import N_SAMPLES, PlantRequest, measure, simulate_measurement, time_base
from services.plant_simulator.pump import BAR, LITRE_PER_MINUTE, RPM, PumpParameters
from services.plant_simulator.sensors import Sensors


@pytest.fixture(scope="module")
def two_plants():
    """Twenty healthy measurements at each of two plants, and four leaks at the second."""
    healthy = ("healthy",) * 20
    return measure([PlantRequest(healthy, 1e-3, 0), PlantRequest((*healthy, *(("leak",) * 4)), 1e-2, 1)], seed=5)


@pytest.fixture
def drawn(monkeypatch):
    """Batches that were to be run, in their order; in place of its pump's signals each has its load opening."""
    batches = []

    def run(parameters, batch, n_samples, rate):
        batches.append(batch)
        flow = np.repeat(batch.load_opening[:, None] * LITRE_PER_MINUTE, n_samples, axis=1)
        return Trajectory(flow, flow * BAR, flow)

    monkeypatch.setattr(measuring, "simulate", run)
    return batches


def test_what_is_told_of_the_pumps_is_what_they_were_run_with(drawn):
    leaks = ("leak",) * 300
    (told,) = measure([PlantRequest((*leaks, *(("healthy",) * 300)), 5e-3, 0)], seed=2)
    (batch,) = drawn
    area = PumpParameters().valve_area
    np.testing.assert_allclose(batch.set_speed, told.operating_speed * RPM)
    np.testing.assert_array_equal(batch.load_opening, told.operating_load)
    np.testing.assert_allclose(told.leak_area[:300], 5e-3 * area * 1e6)
    assert not told.leak_area[300:].any()
    largest = batch.leak_area[:, :300].argmax(axis=0)
    assert np.bincount(largest, minlength=3).min() > 60, "a leak may be in any cylinder"
    assert batch.leak_area[:, :300].max(axis=0).min() >= 5e-3 * area
    wear = batch.leak_area[:, 300:] / area
    assert wear.max() < 4 * 5e-4 and 0.0 < wear.min(), "each cylinder is worn"
    assert np.abs(np.corrcoef(wear) - np.eye(3)).max() < 0.2, "and none as another"


def test_pumps_that_are_run_in_parts_come_back_in_their_order(drawn, monkeypatch):
    monkeypatch.setattr(measuring, "CHUNK", 3)
    exact = Sensors(0.0, 0.0, 0.0, 0.0)
    told = measure([PlantRequest(("healthy",) * n, 1e-3, site) for site, n in enumerate((4, 3))], seed=2, sensors=exact)
    assert [len(batch) for batch in drawn] == [3, 3, 1]
    for plant in told:
        np.testing.assert_allclose(plant.flow[:, 0], plant.operating_load, rtol=1e-6)


def test_a_fresh_measurement_is_of_none_of_the_plants(drawn):
    plants = measure([PlantRequest(("healthy",), 1e-3, site) for site in range(8)], seed=3)
    fresh = simulate_measurement("healthy", 1e-3, seed=3)
    assert not np.isclose([plant.operating_speed[0] for plant in plants], fresh["operating_speed"]).any()


def test_no_plant_measures_what_another_does(drawn):
    """Neither its operating points nor the wear of its pumps, whatever their means are."""
    told = measure([PlantRequest(("healthy",) * 6, 1e-3, site) for site in (0, 1)], seed=3)
    steps = [np.diff(each.operating_load) for each in told]
    assert np.abs(steps[0] - steps[1]).min() > 1e-9
    (batch,) = drawn
    wear = batch.leak_area.reshape(3, 2, 6)
    assert np.abs(wear[:, 0] - wear[:, 1]).min() > 0.0


def test_the_same_seed_gives_the_same_measurements(two_plants):
    healthy = ("healthy",) * 20
    requests = [PlantRequest(healthy, 1e-3, 0), PlantRequest((*healthy, *(("leak",) * 4)), 1e-2, 1)]
    again = measure(requests, seed=5)
    for first, second in zip(two_plants, again, strict=True):
        np.testing.assert_array_equal(first.flow, second.flow)
        np.testing.assert_array_equal(first.pressure, second.pressure)
        np.testing.assert_array_equal(first.operating_speed, second.operating_speed)


def test_plants_and_parts_have_streams_of_their_own_whoever_else_is_there(two_plants):
    assert not np.isclose(two_plants[0].operating_speed, two_plants[1].operating_speed[:20]).any()
    first, second = measure([PlantRequest(("healthy",) * 20, 1e-3, 0, part) for part in (0, 1)], seed=5)
    np.testing.assert_array_equal(first.operating_load, two_plants[0].operating_load)
    np.testing.assert_allclose(first.flow, two_plants[0].flow, rtol=1e-5)
    assert not np.isclose(first.operating_speed, second.operating_speed).any()


def test_operating_points_vary_a_little_between_measurements_and_plants(two_plants):
    for plant in two_plants:
        assert 1.0 < plant.operating_speed.std() < 3.0
        assert np.abs(plant.operating_speed - 1000.0).max() < 15.0
        assert 0.004 < plant.operating_load.std() < 0.02
    means = [plant.operating_load.mean() for plant in two_plants]
    assert abs(means[0] - means[1]) > 1e-3


def test_signals_are_a_settled_triplex_pump_in_plant_units(two_plants):
    for plant in two_plants:
        assert plant.flow.shape == plant.pressure.shape == (len(plant), N_SAMPLES)
        assert plant.flow.dtype == plant.pressure.dtype == np.float32
        assert 36.0 < plant.flow.mean() < 42.0
        assert 22.0 < plant.pressure.mean() < 29.0
    leak, healthy = two_plants[1].flow[20:].mean(), two_plants[1].flow[:20].mean()
    assert 0.5 < healthy - leak < 2.0
    np.testing.assert_array_equal(two_plants[1].severity, [0.0] * 20 + [1e-2] * 4)


def test_sensors_add_a_gain_error_and_white_noise():
    random = np.random.default_rng(0)
    true = np.full((400, 500), 40.0 * LITRE_PER_MINUTE)
    read = Sensors(flow_gain=0.01, flow_noise=0.5).read_flow(true, random)
    assert read.mean() == pytest.approx(40.0, abs=0.1)
    assert read.mean(axis=1).std() == pytest.approx(0.4, rel=0.1)
    noise = read - read.mean(axis=1, keepdims=True)
    assert noise.std() == pytest.approx(0.5, rel=0.02)
    assert abs((noise[:, 1:] * noise[:, :-1]).mean()) < 0.01
    exact = Sensors(pressure_gain=0.0, pressure_noise=0.0)
    for atmosphere, above in ((1.0, 10.0), (0.7, 10.3)):
        pressure = exact.read_pressure(np.full((1, 3), 11 * BAR), atmosphere * BAR, random)
        np.testing.assert_allclose(pressure, above)


def test_a_fresh_measurement_is_one_record():
    one = simulate_measurement("leak", 7e-3, seed=3)
    assert one["label"] == "leak"
    assert one["severity"] == one["leak_area_factor"] == 7e-3
    assert one["flow"].shape == one["pressure"].shape == one["time"].shape == (N_SAMPLES,)
    np.testing.assert_array_equal(one["time"], time_base())
    np.testing.assert_allclose(np.diff(one["time"]), 1e-3)
    assert one["time"][0] == 0.0
    assert 36.0 < one["flow"].mean() < 41.0


@pytest.mark.parametrize(
    ("fault", "severity", "seed", "says"),
    [
        ("leek", 1e-3, 0, "unknown fault 'leek'"),
        ("leak", 0.5, 0, "severity of leak must be over 0"),
        ("leak", 1e-3, -1, "seed must be 0 or more"),
    ],
)
def test_a_fresh_measurement_that_makes_no_sense_is_refused(fault, severity, seed, says):
    with pytest.raises(InvalidInputError, match=says):
        simulate_measurement(fault, severity, seed)
