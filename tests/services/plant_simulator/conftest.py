"""Runs that several tests read; each costs seconds, so each is made once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from services.plant_simulator.integrate import PumpBatch, Trajectory, simulate
from services.plant_simulator.pump import N_PLUNGERS, RPM, PumpParameters
from services.plant_simulator.writer import simulate_plants

Pumps = Callable[..., PumpBatch]


@pytest.fixture(scope="session")
def parameters() -> PumpParameters:
    return PumpParameters()


@pytest.fixture(scope="session")
def pumps(parameters: PumpParameters) -> Pumps:
    """Make a batch of perfect pumps; each keyword is one number or one for each pump."""

    def make(n: int = 1, *, leak=0.0, blocking=0.0, friction=1.0, load=1.0, speed=1000.0, angle=0.3) -> PumpBatch:
        def each(value) -> np.ndarray:
            return np.broadcast_to(np.asarray(value, dtype=float), n).copy()

        leaks = np.zeros((N_PLUNGERS, n))
        leaks[0] = parameters.valve_area * each(leak)
        return PumpBatch(
            set_speed=each(speed) * RPM,
            start_angle=each(angle),
            load_opening=each(load),
            leak_area=leaks,
            valve_area_factor=np.ones((2, N_PLUNGERS, n)),
            inlet_blocking=each(blocking),
            bearing_friction=each(friction),
        )

    return make


FAULTS: Mapping[str, list[float]] = {
    "leak": [0.0, 1e-3, 4e-3, 7e-3, 1e-2, 2e-2],
    "blocking": [0.0, 0.5, 0.75, 0.79, 0.80, 0.81, 0.83],
    "friction": [1.0, 3.0, 6.0, 12.0],
}


@pytest.fixture(scope="session")
def graded(parameters: PumpParameters, pumps: Pumps) -> dict[str, Trajectory]:
    """Noiseless runs of perfect pumps with each fault alone at rising severity, the first one healthy."""
    cases = [(name, {name: value}) for name, values in FAULTS.items() for value in values]
    healthy = {"leak": 0.0, "blocking": 0.0, "friction": 1.0}
    columns = {name: [{**healthy, **case}[name] for _, case in cases] for name in FAULTS}
    run = simulate(parameters, pumps(len(cases), **columns), 1200, 1000.0)
    names = np.array([name for name, _ in cases])
    return {
        name: Trajectory(run.flow[names == name], run.pressure[names == name], run.speed[names == name])
        for name in FAULTS
    }


@pytest.fixture(scope="session")
def nominal(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The four plants of the nominal scenario, seed 0, at full size."""
    return simulate_plants(tmp_path_factory.mktemp("plants") / "nominal", seed=0)
