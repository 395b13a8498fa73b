"""Measurements of a plant's pumps: draws operating points and build tolerances, runs the pumps, reads the sensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from services.contracts.errors import InvalidInputError
from services.plant_simulator.faults import HEALTHY, fault_parameters
from services.plant_simulator.integrate import PumpBatch, simulate
from services.plant_simulator.pump import N_PLUNGERS, RPM, Array, PumpParameters
from services.plant_simulator.sensors import Sensors

SAMPLING_RATE: Final = 1000.0
"""Samples a second, Hz."""
SQUARE_MILLIMETRES: Final = 1e6
"""In a square metre."""
N_SAMPLES: Final = 1200
"""Samples of a measurement: 1.2 s, nineteen revolutions."""
CHUNK: Final = 1400
"""Pumps that advance together: enough to hide the interpreter, few enough for the working arrays to stay in cache."""
Value = Array | NDArray[np.float32] | float | str
"""A field of one record."""
_FRESH: Final = 2**20
"""Stream of :func:`simulate_measurement`, far from any plant's."""


@dataclass(frozen=True)
class Variation:
    """How measurements differ although nothing is wrong.

    Attributes
    ----------
    speed, site_speed : relative standard deviation of the set speed between measurements, and of its mean between
        plants.
    load, site_load : the same for the opening of the load orifice.
    valve_area : relative standard deviation of each valve's area: build tolerance.
    seal_wear : scale of the leak that every cylinder of a healthy pump has, over the valve area (half-normal): ordinary
        wear. It is what a faint leak hides behind.
    """

    speed: float = 0.0015
    site_speed: float = 0.0015
    load: float = 0.008
    site_load: float = 0.008
    valve_area: float = 0.02
    seal_wear: float = 4e-4


@dataclass(frozen=True)
class Measurements:
    """n measurements: signals of shape (n, T), all else (n,); units as in the folder format (L/min, bar, rpm, mm^2)."""

    flow: NDArray[np.float32]
    pressure: NDArray[np.float32]
    operating_speed: Array
    operating_load: Array
    label: NDArray[np.str_]
    severity: Array
    leak_area: Array
    leak_area_factor: Array
    inlet_blocking: Array
    bearing_friction: Array

    def __len__(self) -> int:
        return int(self.flow.shape[0])


@dataclass(frozen=True)
class PlantRequest:
    """What to measure at one plant: class names in order, the plant's severity, and the plant's and part's numbers."""

    labels: tuple[str, ...]
    severity: float
    site: int
    part: int = 0


@dataclass(frozen=True)
class _Order:
    """A batch of one plant, ready to run, and the random stream that will make its sensor noise."""

    batch: PumpBatch
    truth: dict[str, Array]
    labels: tuple[str, ...]
    random: np.random.Generator

    @classmethod
    def draw(cls, request: PlantRequest, seed: int, parameters: PumpParameters, variation: Variation) -> Self:
        """Draw what differs between the plants (from the plant's stream) and between measurements (from the part's)."""
        labels, severity, n = request.labels, request.severity, len(request.labels)
        plant = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(request.site,)))
        random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(request.site, request.part)))
        offset = plant.standard_normal(2) * (variation.site_speed, variation.site_load)
        faults = [fault_parameters(label, severity) for label in labels]
        speed = parameters.set_speed * (1.0 + offset[0] + variation.speed * random.standard_normal(n))
        load = 1.0 + offset[1] + variation.load * random.standard_normal(n)
        leak = np.array([fault.leak_area_factor for fault in faults])
        leaks = variation.seal_wear * np.abs(random.standard_normal((N_PLUNGERS, n)))
        leaks[random.integers(N_PLUNGERS, size=n), np.arange(n)] += leak
        batch = PumpBatch(
            set_speed=speed,
            start_angle=random.uniform(0.0, 2.0 * np.pi, n),
            load_opening=load,
            leak_area=leaks * parameters.valve_area,
            valve_area_factor=np.exp(variation.valve_area * random.standard_normal((2, N_PLUNGERS, n))),
            inlet_blocking=np.array([fault.inlet_blocking for fault in faults]),
            bearing_friction=np.array([fault.bearing_friction for fault in faults]),
        )
        truth = {
            "operating_speed": speed / RPM,
            "operating_load": load,
            "severity": np.array([0.0 if label == HEALTHY else severity for label in labels]),
            "leak_area": leak * parameters.valve_area * SQUARE_MILLIMETRES,
            "leak_area_factor": leak,
            "inlet_blocking": batch.inlet_blocking,
            "bearing_friction": batch.bearing_friction,
        }
        return cls(batch, truth, labels, random)


def measure(
    requests: Sequence[PlantRequest],
    seed: int,
    parameters: PumpParameters | None = None,
    variation: Variation | None = None,
    sensors: Sensors | None = None,
) -> list[Measurements]:
    """Measurements for each request, all pumps advancing together.

    Every (site, part) has its own random stream from ``seed``: what one plant measures does not depend on the others.
    ``InvalidInputError`` for a label or a severity that is none, or a negative seed.
    """
    check_seed(seed)
    parameters, sensors = parameters or PumpParameters(), sensors or Sensors()
    orders = [_Order.draw(request, seed, parameters, variation or Variation()) for request in requests]
    together = PumpBatch(
        **{
            field.name: np.concatenate([getattr(order.batch, field.name) for order in orders], axis=-1)
            for field in fields(PumpBatch)
        }
    )
    flow, pressure = np.empty((2, len(together), N_SAMPLES))
    for start in range(0, len(together), CHUNK):
        rows = slice(start, start + CHUNK)
        run = simulate(parameters, together.part(rows), N_SAMPLES, SAMPLING_RATE)
        flow[rows], pressure[rows] = run.flow, run.pressure
    read, start = [], 0
    for order in orders:
        rows = slice(start, start + len(order.labels))
        read.append(
            Measurements(
                flow=sensors.read_flow(flow[rows], order.random).astype(np.float32),
                pressure=sensors.read_pressure(pressure[rows], parameters.atmosphere, order.random).astype(np.float32),
                label=np.array(order.labels, dtype=np.str_),
                **order.truth,
            )
        )
        start = rows.stop
    return read


def check_seed(seed: int) -> None:
    """Refuse a seed below 0 with ``InvalidInputError``."""
    if seed < 0:
        raise InvalidInputError(f"seed must be 0 or more, got {seed}")


def simulate_measurement(fault: str, severity: float, seed: int) -> dict[str, Value]:
    """One fresh measurement, of no plant in particular, with a random stream of its own from ``seed``.

    ``fault`` is a class name (``healthy``, ``leak``, ``leak+blocked_inlet``, ...), ``severity`` as in
    :mod:`services.plant_simulator.faults`, ignored when healthy. The answer has the fields of one record of a plant
    folder: ``time`` (s), ``flow`` (L/min) and ``pressure`` (bar) of shape (T,), the operating point, ``label`` and
    ``severity``.
    """
    (one,) = measure([PlantRequest((fault,), severity, site=_FRESH)], seed)
    record: dict[str, Value] = {"time": time_base()}
    for field in fields(one):
        value = getattr(one, field.name)[0]
        record[field.name] = value if isinstance(value, np.ndarray) else value.item()
    return record


def time_base() -> Array:
    """Time of each sample since the start of the record, s, shape (T,)."""
    return np.arange(N_SAMPLES) / SAMPLING_RATE
