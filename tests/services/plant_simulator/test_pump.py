"""The pump's equations, one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.plant_simulator import pump
from services.plant_simulator.pump import BAR, RPM, PumpParameters

ANGLES = np.linspace(0.0, 2 * np.pi, 721)


def test_a_plunger_goes_from_top_to_bottom_dead_centre(parameters):
    x, slope = pump.plunger_motion(parameters, np.array([0.0, np.pi]))
    np.testing.assert_allclose(x[0], [0.0, 2 * parameters.crank_radius], atol=1e-15)
    np.testing.assert_allclose(slope[0], 0.0, atol=1e-15)


def test_the_slope_is_the_derivative_of_the_displacement(parameters):
    h = 1e-6
    ahead, behind = (pump.plunger_motion(parameters, ANGLES + d)[0] for d in (h, -h))
    np.testing.assert_allclose(
        pump.plunger_motion(parameters, ANGLES)[1], (ahead - behind) / (2 * h), atol=1e-9 * parameters.crank_radius / h
    )


def test_the_plungers_are_120_degrees_apart(parameters):
    x, _ = pump.plunger_motion(parameters, ANGLES)
    for k in (1, 2):
        alone, _ = pump.plunger_motion(parameters, ANGLES + 2 * np.pi * k / 3)
        np.testing.assert_allclose(x[k], alone[0], atol=1e-15)


def test_three_plungers_cancel_but_for_multiples_of_three(parameters):
    total = pump.plunger_motion(parameters, ANGLES[:-1])[0].sum(axis=0)
    harmonics = np.abs(np.fft.rfft(total)) / len(total)
    assert harmonics[[1, 2, 4, 5, 7]].max() < 1e-12 * harmonics[0]
    long_rod = PumpParameters(rod_length=1e4 * parameters.crank_radius)
    total = pump.plunger_motion(long_rod, ANGLES)[0].sum(axis=0)
    np.testing.assert_allclose(total, 3 * parameters.crank_radius, rtol=2e-4)


def test_displacement_per_revolution_is_what_the_chambers_sweep(parameters):
    x, _ = pump.plunger_motion(parameters, ANGLES)
    swept = parameters.plunger_area * np.ptp(x, axis=1).sum()
    assert parameters.displacement_per_revolution == pytest.approx(swept, rel=1e-4)


@given(st.floats(1e2, 4e7), st.floats(1e-6, 1e-4))
def test_pressure_and_content_of_a_chamber_are_inverse(pressure, volume):
    parameters = PumpParameters()
    content = pump.chamber_content(parameters, np.array(volume), np.array(pressure))
    assert pump.chamber_pressure(parameters, np.array(volume), content) == pytest.approx(pressure, rel=1e-6)


@given(st.floats(1.0, 300.0))
def test_a_chamber_is_as_stiff_as_its_liquid_and_gas(pressure_bar):
    parameters = PumpParameters()
    p, volume = pressure_bar * BAR, 2e-5
    content = pump.chamber_content(parameters, np.array(volume), np.array(p))
    dm = 1e-7 * content
    slope = (
        pump.chamber_pressure(parameters, np.array(volume), content + dm)
        - pump.chamber_pressure(parameters, np.array(volume), content - dm)
    ) / (2 * dm)
    stiffness = 1.0 / (1.0 / parameters.bulk_modulus + parameters.gas_share * parameters.atmosphere / p**2)
    assert slope == pytest.approx(stiffness * volume / content**2, rel=1e-3)


def test_a_starved_chamber_keeps_a_positive_pressure(parameters):
    volume = 2e-5
    pressure = pump.chamber_pressure(parameters, np.array(volume), volume * np.linspace(0.05, 1.1, 200))
    assert (pressure > 0.0).all()
    assert (np.diff(pressure) > 0.0).all()


def test_an_orifice_follows_the_square_root_law_and_is_odd(parameters):
    area, drops = 1e-5, np.array([1.0, 4.0, 25.0]) * BAR
    flow = pump.conductance(parameters, area, drops) * drops
    wanted = parameters.discharge * area * np.sqrt(2 * drops / parameters.density)
    np.testing.assert_allclose(flow, wanted, rtol=2e-3)
    np.testing.assert_array_equal(pump.conductance(parameters, area, -drops) * -drops, -flow)
    assert np.isfinite(pump.conductance(parameters, area, np.zeros(1)))


def test_a_check_valve_opens_between_its_two_pressures(parameters):
    middle = (parameters.valve_cracking + parameters.valve_full) / 2
    drops = np.array([-30 * BAR, 0.0, parameters.valve_cracking, middle, parameters.valve_full, 30 * BAR])
    np.testing.assert_allclose(pump.valve_target(parameters, drops), [0, 0, 0, 0.5, 1, 1], atol=1e-12)


def test_pumping_torque_does_the_work_of_pressure_on_volume(parameters):
    """At constant chamber pressure, the work over a revolution is zero: what the stroke takes, the return gives."""
    angles = ANGLES[:-1]
    _, slope = pump.plunger_motion(parameters, angles)
    constant = pump.pumping_torque(parameters, slope, np.full_like(slope, 20 * BAR))
    assert abs(constant.mean()) < 1e-9
    loaded = np.where(slope < 0, 20 * BAR + parameters.atmosphere, parameters.atmosphere)
    work = pump.pumping_torque(parameters, slope, loaded).mean() * 2 * np.pi
    assert work == pytest.approx(20 * BAR * parameters.displacement_per_revolution, rel=1e-4)


def test_motor_and_bearing_torques(parameters):
    speed = np.array([0.0, 900.0, 1000.0]) * RPM
    torque = pump.motor_torque(parameters, np.full(3, 1000.0 * RPM), speed)
    assert torque[2] == 0.0
    assert (np.diff(torque) < 0.0).all()
    pressure = np.full((3, 2), 20 * BAR)
    sound, worn = pump.friction_torque(parameters, np.array([1.0, 5.0]), pressure, np.full(2, 100.0))
    assert worn == pytest.approx(5 * sound)
    assert sound > pump.friction_torque(parameters, np.ones(1), pressure[:, :1] / 2, np.full(1, 100.0))[0]


def test_the_areas_and_loads_are_those_of_the_rated_pump(parameters):
    rated = parameters.displacement_per_revolution * 950.0 / 60.0 / pump.LITRE_PER_MINUTE
    assert rated == pytest.approx(40.0, rel=0.05)
    _, slope = pump.plunger_motion(parameters, ANGLES)
    assert (pump.pumping_torque(parameters, slope, np.full_like(slope, parameters.atmosphere)) == 0.0).all()
    under, over = (np.full((3, 1), parameters.atmosphere + sign * 0.5 * BAR) for sign in (-1.0, 1.0))
    torques = [pump.friction_torque(parameters, np.ones(1), pressure, np.full(1, 100.0)) for pressure in (under, over)]
    assert torques[0] == pytest.approx(torques[1]), "a chamber that draws air in loads its bearing as well"
