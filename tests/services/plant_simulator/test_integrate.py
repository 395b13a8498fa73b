"""The integrator: conservation, convergence, and the signals of a triplex pump."""

import numpy as np
import pytest

from models.features.condition_indicators import condition_indicators
from services.plant_simulator import pump
from services.plant_simulator.integrate import advance, simulate, start
from services.plant_simulator.pump import BAR, LITRE_PER_MINUTE, RPM

H = 1.25e-4


def harmonics(run, orders):
    """Amplitude (L/min) of the flow of the first pump at multiples of its crank frequency."""
    flow = run.flow[0] / LITRE_PER_MINUTE
    window = np.hanning(len(flow))
    spectrum = 2 * np.abs(np.fft.rfft((flow - flow.mean()) * window)) / window.sum()
    frequencies = np.fft.rfftfreq(len(flow), 1e-3)
    crank = run.speed[0].mean() / (2 * np.pi)
    return np.array([spectrum[np.abs(frequencies - k * crank) < 2.0].max() for k in orders])


@pytest.fixture(scope="module")
def sound(graded):
    """Signals of the perfect, healthy pump."""
    run = graded["leak"]
    return type(run)(run.flow[:1], run.pressure[:1], run.speed[:1])


def test_mass_is_conserved_to_rounding(parameters, pumps):
    batch = pumps(3, angle=[0.0, 1.0, 2.0], blocking=[0.0, 0.8, 0.0], speed=[1000.0, 1000.0, 700.0])
    state = start(parameters, batch)

    def held():
        inlet, outlet = state.manifold[:, 0]
        stores = parameters.inlet_compliance * inlet + parameters.outlet_compliance * outlet
        return state.content.sum(axis=0) + stores

    area = parameters.inlet_area * (1.0 - batch.inlet_blocking)
    before, flowed, through = held(), np.zeros(1), np.zeros(1)
    for _ in range(2000):
        inlet = state.manifold[0, 0]
        conductance = pump.conductance(parameters, area, parameters.feed_pressure - inlet)
        advance(parameters, batch, state, H)
        supplied = conductance * (parameters.feed_pressure - state.manifold[0, 0])
        flowed = flowed + H * (supplied - state.load_flow)
        through = through + H * state.load_flow
    assert (through > 1.5 * before).all()
    np.testing.assert_allclose(held() - before, flowed, atol=1e-12 * through.max())


def test_a_leak_takes_out_what_it_should(parameters, pumps):
    """What comes in and neither goes out nor stays is the leak: one orifice under the chamber's pressure."""
    batch = pumps(1, leak=1e-2)
    state = start(parameters, batch)
    supplied = drained = leaked = np.zeros(1)
    for step in range(6000):
        inlet = state.manifold[0, 0]
        conductance = pump.conductance(parameters, parameters.inlet_area, parameters.feed_pressure - inlet)
        drop = state.pressure[0] - parameters.atmosphere
        advance(parameters, batch, state, H)
        if step >= 3000:
            supplied = supplied + conductance * (parameters.feed_pressure - state.manifold[0, 0])
            drained = drained + state.load_flow
            leaked = leaked + pump.conductance(parameters, batch.leak_area[0], drop) * drop
    assert float((supplied - drained)[0]) == pytest.approx(float(leaked[0]), rel=0.05)
    assert 0.02 < float((leaked / drained)[0]) < 0.06


def test_the_record_lies_past_the_start_up_transient(sound):
    first, second = np.split(sound.flow[0], 2)
    assert first.mean() == pytest.approx(second.mean(), rel=2e-3)
    assert sound.speed[0][:100].mean() == pytest.approx(sound.speed[0][-100:].mean(), rel=1e-3)


def test_rated_operation(parameters, sound):
    flow, speed = sound.flow.mean(), sound.speed.mean()
    swept = parameters.displacement_per_revolution * speed / (2 * np.pi)
    assert speed / RPM == pytest.approx(950.0, abs=5.0)
    assert flow / LITRE_PER_MINUTE == pytest.approx(40.0, abs=0.5)
    assert (sound.pressure.mean() - parameters.atmosphere) / BAR == pytest.approx(26.0, abs=0.5)
    assert 0.97 < flow / swept < 1.0


def test_the_load_orifice_ties_flow_to_pressure(parameters, sound):
    wanted = parameters.orifice_factor * parameters.load_area * np.sqrt(sound.pressure - parameters.atmosphere)
    np.testing.assert_allclose(sound.flow, wanted, rtol=0.015)
    assert sound.flow.mean() == pytest.approx(wanted.mean(), rel=1e-3)


def test_the_energy_of_the_motor_goes_into_the_water_and_the_bearings(parameters, pumps):
    batch = pumps(1)
    state = start(parameters, batch)
    motor = friction = hydraulic = 0.0
    for step in range(5000):
        torque = pump.motor_torque(parameters, batch.set_speed, state.speed)
        rubbed = pump.friction_torque(parameters, batch.bearing_friction, state.pressure, state.speed)
        advance(parameters, batch, state, H)
        if step >= 3000:
            motor += float((torque * state.speed)[0])
            friction += float((rubbed * state.speed)[0])
            hydraulic += float((state.load_flow * (state.manifold[1, 0] - parameters.feed_pressure))[0])
    assert hydraulic < motor - friction
    assert 0.9 < hydraulic / (motor - friction)


def test_a_perfect_pump_ripples_at_three_times_the_crank_frequency_and_its_multiples(sound):
    crank = sound.speed[0].mean() / (2 * np.pi)
    (found,) = condition_indicators(sound.flow / LITRE_PER_MINUTE, 1000.0)
    assert found[0] == pytest.approx(3 * crank, abs=0.1)
    amplitude = harmonics(sound, [1, 2, 3, 4, 5, 6, 9])
    assert amplitude[2] > 3.0
    assert amplitude[[0, 1, 3, 4]].max() < 0.01 * amplitude[2]
    ripple = np.ptp(sound.flow[0]) / sound.flow[0].mean()
    assert 0.15 < ripple < 0.35


def test_halving_the_step_changes_little(parameters, pumps):
    batch = pumps(3, leak=[0.0, 1e-2, 0.0], blocking=[0.0, 0.0, 0.8])
    coarse, fine = (simulate(parameters, batch, 200, 1000.0, h) for h in (H, H / 2))
    np.testing.assert_allclose(coarse.flow.mean(axis=1), fine.flow.mean(axis=1), rtol=4e-3)
    np.testing.assert_allclose(coarse.pressure.mean(axis=1), fine.pressure.mean(axis=1), rtol=8e-3)
    np.testing.assert_allclose(coarse.flow.std(axis=1), fine.flow.std(axis=1), rtol=0.06)
    np.testing.assert_allclose(coarse.speed.mean(axis=1), fine.speed.mean(axis=1), rtol=1e-3)


def test_a_step_that_does_not_divide_the_sampling_interval_is_shortened_until_it_does(parameters, pumps):
    wanted, shortened = (simulate(parameters, pumps(1), 5, 1000.0, h) for h in (2.5e-4, 3e-4))
    np.testing.assert_array_equal(shortened.flow, wanted.flow)


def test_each_valve_has_an_area_of_its_own(parameters, pumps):
    for valve in (0, 1):
        batch = pumps(1)
        batch.valve_area_factor[1 - valve] = 0.0
        batch.valve_area_factor[valve, :, 0] = [0.0, 0.5, 1.0]
        state = start(parameters, batch)
        state.lift[:] = 1.0
        before = state.content
        advance(parameters, batch, state, H)
        moved = np.abs(state.content - before)[:, 0]
        assert moved[0] == 0.0 and (moved[1:] > 0.0).all()


def test_a_pump_does_not_feel_its_neighbours(parameters, pumps):
    many = {"leak": [0.0, 5e-3, 0.0], "blocking": [0.0, 0.0, 0.81], "angle": [0.0, 1.0, 2.0]}
    together = simulate(parameters, pumps(3, **many), 50, 1000.0)
    alone = simulate(parameters, pumps(1, leak=5e-3, angle=1.0), 50, 1000.0)
    np.testing.assert_allclose(together.flow[1], alone.flow[0], rtol=1e-9)


def test_pressures_stay_positive_when_the_inlet_is_all_but_shut(parameters, pumps):
    batch = pumps(1, blocking=0.999)
    state = start(parameters, batch)
    lowest = np.inf
    for _ in range(4000):
        advance(parameters, batch, state, H)
        lowest = min(lowest, float(state.pressure.min()), float(state.manifold.min()))
    assert lowest > 0.0
    assert np.isfinite(state.pressure).all()
    assert float(state.load_flow[0]) / LITRE_PER_MINUTE < 5.0
