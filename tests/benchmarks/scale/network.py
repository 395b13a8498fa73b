"""The modelled part: a network whose delays are log-normal, plants of unlike speed, and lines of a stated width.

An exchange ends with its slowest plant: it takes the greatest of all plants' delays, the time that the server's own
line needs for all of them, and that of one plant's line. A round has two exchanges, the question with its masked
answers, and the unmasking, which brings the preparation of the next round along.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

EXCHANGES = 2


@dataclass(frozen=True)
class Network:
    """Medians and spreads of what is drawn: log-normal, ``sigma`` being the deviation of the logarithm."""

    delay_seconds: float = 0.06
    delay_sigma: float = 0.7
    slowness_sigma: float = 0.4
    plant_bits: float = 10e6
    server_bits: float = 1e9

    def exchange(self, plants: int, bytes_a_plant: float, random: np.random.Generator) -> float:
        """Seconds of an exchange with all plants."""
        slowest = float(self.delay_seconds * np.exp(self.delay_sigma * random.normal(size=plants)).max())
        return slowest + 8 * bytes_a_plant / self.plant_bits + 8 * bytes_a_plant * plants / self.server_bits

    def solve(self, plants: int, seconds: np.ndarray[tuple[int], np.dtype[np.float64]],
              random: np.random.Generator) -> float:
        """Seconds until the slowest plant has solved: one of the measured times each, times how slow its machine is."""
        own = random.choice(seconds, size=plants) * np.exp(self.slowness_sigma * random.normal(size=plants))
        return float(own.max())

    def told(self) -> str:
        """What is drawn, in one line."""
        return (
            f"delay of an exchange log-normal, median {1e3 * self.delay_seconds:g} ms, sigma {self.delay_sigma:g}; "
            f"plants' slowness log-normal, median 1, sigma {self.slowness_sigma:g}; lines {self.plant_bits / 1e6:g} "
            f"Mbit/s at a plant, {self.server_bits / 1e9:g} Gbit/s at the server"
        )
