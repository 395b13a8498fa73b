"""Faults: names, parameters, and what each does to the signals."""

import numpy as np
import pytest

from models.features.condition_indicators import INDICATOR_NAMES, condition_indicators
from services.contracts.errors import InvalidInputError
from services.plant_simulator.faults import (
    FAULTS,
    HIGHEST_SEVERITY,
    FaultParameters,
    combinations,
    fault_parameters,
    ordered,
)
from services.plant_simulator.pump import LITRE_PER_MINUTE


def indicators(run):
    """Indicators by name, of the noiseless flow."""
    return dict(zip(INDICATOR_NAMES, condition_indicators(run.flow / LITRE_PER_MINUTE, 1000.0).T, strict=True))


def falls(values):
    return (np.diff(values) < 0.0).all()


def rises(values):
    return (np.diff(values) > 0.0).all()


def test_a_leak_lowers_mean_flow_and_pressure_and_raises_ripple_step_by_step(graded):
    run, found = graded["leak"], indicators(graded["leak"])
    assert falls(found["flow_mean"])
    assert falls(run.pressure.mean(axis=1))
    assert rises(found["flow_peak_to_peak"])
    assert rises(found["power_10_20_hz"])
    assert rises(found["flow_skewness"])
    assert rises(found["flow_crest_factor"])
    assert rises(run.speed.mean(axis=1))


def test_a_leak_shows_once_a_revolution_as_the_leaking_plunger_passes(graded):
    """Amplitude at the crank frequency grows as the leak's area: power by 20 dB a decade."""
    level = indicators(graded["leak"])["power_10_20_hz"]
    assert level[4] - level[1] == pytest.approx(20.0, abs=1.0)
    assert level[1] - level[0] > 20.0


def test_a_blocked_inlet_lowers_flow_step_by_step(graded):
    found = indicators(graded["blocking"])
    assert falls(found["flow_mean"])
    assert found["flow_mean"][0] - found["flow_mean"][1] < 0.1
    assert found["flow_mean"][0] - found["flow_mean"][4] > 1.5
    assert rises(found["power_over_100_hz"][2:])
    assert rises(found["flow_peak_to_peak"][3:])


def test_a_worn_bearing_slows_the_shaft_and_moves_the_spectrum(graded):
    run, found = graded["friction"], indicators(graded["friction"])
    assert falls(run.speed.mean(axis=1))
    assert falls(found["peak_frequency"])
    assert falls(found["flow_mean"])
    np.testing.assert_allclose(found["peak_frequency"], 3 * run.speed.mean(axis=1) / (2 * np.pi), atol=0.1)
    assert np.ptp(found["flow_skewness"]) < 0.05


def test_combinations_name_every_set_of_faults_once():
    assert combinations(["leak"]) == ("healthy", "leak")
    every = combinations(("worn_bearing", "leak", "blocked_inlet"))
    assert every == (
        "healthy", "leak", "blocked_inlet", "worn_bearing", "leak+blocked_inlet", "leak+worn_bearing",
        "blocked_inlet+worn_bearing", "leak+blocked_inlet+worn_bearing",
    )
    assert ordered(["worn_bearing", "leak", "leak"]) == ("leak", "worn_bearing")


def test_the_parameters_of_a_combination_are_those_of_its_parts():
    assert fault_parameters("healthy", 0.5) == FaultParameters()
    single = {fault: fault_parameters(fault, 4e-3) for fault in FAULTS}
    both = fault_parameters("leak+worn_bearing", 4e-3)
    assert both.leak_area_factor == single["leak"].leak_area_factor == 4e-3
    assert both.bearing_friction == single["worn_bearing"].bearing_friction > 1.0
    assert both.inlet_blocking == 0.0
    assert 0.0 < single["blocked_inlet"].inlet_blocking < fault_parameters("blocked_inlet", 1e-2).inlet_blocking < 1.0


def test_the_highest_severity_is_how_far_a_fault_goes():
    worst = fault_parameters("leak+blocked_inlet+worn_bearing", HIGHEST_SEVERITY)
    assert worst.leak_area_factor == HIGHEST_SEVERITY
    assert worst.inlet_blocking == pytest.approx(0.842)
    assert worst.bearing_friction == pytest.approx(19.0)


@pytest.mark.parametrize("severity", [0.0, -1e-3, 1.01 * HIGHEST_SEVERITY, float("nan")])
def test_a_severity_out_of_range_is_refused(severity):
    with pytest.raises(InvalidInputError, match="severity of leak must be over 0 and at most"):
        fault_parameters("leak", severity)


@pytest.mark.parametrize(
    ("faults", "says"), [(["leek"], "unknown fault 'leek': choose from leak"), ([], "at least one")]
)
def test_faults_that_are_none_are_refused(faults, says):
    with pytest.raises(InvalidInputError, match=says):
        combinations(faults)
