"""What the sensors make of the true outlet signals: a calibration error for each measurement, and white noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from services.plant_simulator.pump import BAR, LITRE_PER_MINUTE, Array


@dataclass(frozen=True)
class Sensors:
    """A flow meter and a pressure transmitter.

    Attributes
    ----------
    flow_gain : standard deviation of the flow meter's relative calibration error, one draw for each measurement.
    flow_noise : standard deviation of the white noise on each flow sample, L/min.
    pressure_gain, pressure_noise : the same for pressure; noise in bar.
    """

    flow_gain: float = 0.002
    flow_noise: float = 0.3
    pressure_gain: float = 0.002
    pressure_noise: float = 0.10

    def read_flow(self, flow: Array, random: np.random.Generator) -> Array:
        """Flow meter's output in L/min for a true flow in m3/s, shape (n, T)."""
        return _read(flow / LITRE_PER_MINUTE, self.flow_gain, self.flow_noise, random)

    def read_pressure(self, pressure: Array, atmosphere: float, random: np.random.Generator) -> Array:
        """Transmitter's output in bar above atmosphere for a true absolute pressure in Pa, shape (n, T)."""
        return _read((pressure - atmosphere) / BAR, self.pressure_gain, self.pressure_noise, random)


def _read(true: Array, gain: float, noise: float, random: np.random.Generator) -> Array:
    """(1 + e) true + white noise, with e drawn once for each measurement."""
    factor = 1.0 + gain * random.standard_normal((true.shape[0], 1))
    read: Array = factor * true + noise * random.standard_normal(true.shape)
    return read
