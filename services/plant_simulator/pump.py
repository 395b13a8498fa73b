"""The triplex plunger pump: geometry, fluid and drive, and the equations of flow and of motion.

Three plungers at 120 degrees of one crankshaft push water through spring-loaded check valves into an outlet manifold
that drains through a load orifice. All quantities are in SI units, pressures are absolute, flows are volumes at
atmospheric density: a chamber's content ``M`` (m3) is its mass over that density, and is conserved exactly.

For plunger k at crank angle ``a_k = theta + 2 pi k / 3`` (0: top dead centre), crank radius r, rod length l:

- displacement       x_k = r (1 - cos a_k) + l - sqrt(l^2 - r^2 sin^2 a_k)
- chamber volume     V_k = V_dead + A_p x_k
- chamber content    dM_k/dt = Q_suction,k - Q_delivery,k - Q_leak,k
- pressure           V / M = 1 - (p - p_atm) / K + a (p_atm / p - 1)
- check valve        Q = s A_v sqrt(2 / rho) C_d Dp / sqrt(|Dp| + p_lam),   tau ds/dt = s_target(Dp) - s
- outlet manifold    C_out dp_out/dt = sum_k Q_delivery,k - Q_load
- inlet manifold     C_in dp_in/dt = Q_inlet - sum_k Q_suction,k
- shaft              J dw/dt = k_m (w_set - w) - sum_k torque_k - f (mu r_b sum_k |F_k| + b w)

The pressure law is a compressible liquid (bulk modulus K) with a small share a of entrained gas that follows Boyle's
law. With Q_in = Q_suction and Q_out = Q_delivery its derivative is, while V / M is near 1, the familiar

    dp/dt = K_eff / V (Q_in - Q_out - Q_leak - dV/dt),   1 / K_eff = 1 / K + a p_atm / p^2:

stiff under load, soft in suction, and never at a negative pressure, however starved the inlet. A valve that is slow to
shut lets water back, and a leak lets air in while its chamber is under atmospheric pressure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

N_PLUNGERS: Final = 3  # a triplex pump
_PHASES: Final[Array] = 2.0 * np.pi * np.arange(N_PLUNGERS)[:, None] / N_PLUNGERS
_SINE: Final[Array] = np.sin(_PHASES)
_COSINE: Final[Array] = np.cos(_PHASES)
BAR: Final = 1e5
"""Pascals in a bar."""
LITRE_PER_MINUTE: Final = 1e-3 / 60.0
"""Cubic metres a second in a litre a minute."""
RPM: Final = 2.0 * np.pi / 60.0
"""Radians a second in a revolution a minute."""


@dataclass(frozen=True)
class PumpParameters:
    """A triplex pump, SI units, rated 950 rpm under load and 40 L/min of water against 26 bar above atmosphere."""

    crank_radius: float = 0.015
    rod_length: float = 0.060
    plunger_diameter: float = 0.0245
    dead_volume: float = 12e-6
    set_speed: float = 1000.0 * RPM

    density: float = 998.0
    bulk_modulus: float = 1.6e9
    gas_share: float = 2e-3
    atmosphere: float = 1.013e5

    valve_area: float = 1.0e-4
    valve_cracking: float = 0.10 * BAR
    valve_full: float = 0.40 * BAR
    valve_lag: float = 4e-4
    discharge: float = 0.64
    laminar_pressure: float = 200.0

    feed_pressure: float = 2.5 * BAR
    inlet_area: float = 2.4e-4
    inlet_compliance: float = 2e-12
    load_area: float = 1.45e-5
    outlet_compliance: float = 1.5e-13

    inertia: float = 0.06
    motor_stiffness: float = 3.4
    bearing_friction: float = 0.004
    bearing_radius: float = 0.03
    viscous_friction: float = 0.005

    @property
    def plunger_area(self) -> float:
        """Cross-section of a plunger, m2."""
        return float(np.pi * self.plunger_diameter**2 / 4.0)

    @property
    def orifice_factor(self) -> float:
        """C_d sqrt(2 / rho): volume flow over area and root of pressure drop, m3/s / (m2 Pa^0.5)."""
        return float(self.discharge * np.sqrt(2.0 / self.density))

    @property
    def displacement_per_revolution(self) -> float:
        """Volume swept by all plungers in one revolution, m3."""
        return float(N_PLUNGERS * self.plunger_area * 2.0 * self.crank_radius)


def plunger_motion(parameters: PumpParameters, angle: Array) -> tuple[Array, Array]:
    """Displacement x from top dead centre (m), and dx/dangle (m/rad), of each plunger, shapes (3, n).

    x = r (1 - cos a) + l - sqrt(l^2 - r^2 sin^2 a) at a = angle + 2 pi k / 3; ``angle`` of the crank, shape (n,), rad.
    """
    sine, cosine = np.sin(angle), np.cos(angle)
    r, rod = parameters.crank_radius, parameters.rod_length
    across = _COSINE * (r * sine) + _SINE * (r * cosine)
    along = _COSINE * (r * cosine) - _SINE * (r * sine)
    rod_along = np.sqrt(rod * rod - across * across)
    return (r + rod) - along - rod_along, across + across * along / rod_along


def chamber_pressure(parameters: PumpParameters, volume: Array, content: Array) -> Array:
    """Absolute pressure (Pa) of a chamber of this volume (m3) that holds this content (m3 at atmospheric density).

    The positive root p of p^2 / K - B p - a p_atm = 0 with B = 1 + p_atm / K - a - V / M.
    """
    K, gas, atmosphere = parameters.bulk_modulus, parameters.gas_share, parameters.atmosphere
    half = 0.5 * (K + atmosphere - K * gas) - (0.5 * K) * volume / content
    pressure: Array = half + np.sqrt(half * half + K * gas * atmosphere)
    return pressure


def chamber_content(parameters: PumpParameters, volume: Array, pressure: Array) -> Array:
    """Content M (m3 at atmospheric density) of a chamber: the inverse of :func:`chamber_pressure`."""
    K, gas, atmosphere = parameters.bulk_modulus, parameters.gas_share, parameters.atmosphere
    content: Array = volume / (1.0 - (pressure - atmosphere) / K + gas * (atmosphere / pressure - 1.0))
    return content


def conductance(parameters: PumpParameters, area: Array | float, drop: Array) -> Array:
    """Secant conductance G of an orifice, so that Q = G Dp; m3/s/Pa.

    G = C_d A sqrt(2 / rho) / sqrt(|Dp| + p_lam): the square-root law, laminar under p_lam, odd in the pressure drop.
    """
    secant: Array = parameters.orifice_factor * area / np.sqrt(np.abs(drop) + parameters.laminar_pressure)
    return secant


def valve_target(parameters: PumpParameters, drop: Array) -> Array:
    """Opening in [0, 1] that a check valve tends to: 0 up to ``valve_cracking``, then linear, 1 from ``valve_full``."""
    span = parameters.valve_full - parameters.valve_cracking
    opening: Array = np.minimum(np.maximum((drop - parameters.valve_cracking) / span, 0.0), 1.0)
    return opening


def over_plungers(values: Array) -> Array:
    """Sum over the plungers' axis, the last but one; three additions cost less than a reduction."""
    total: Array = values[..., 0, :] + values[..., 1, :] + values[..., 2, :]
    return total


def motor_torque(parameters: PumpParameters, set_speed: Array, speed: Array) -> Array:
    """Torque of the drive (N m): the steep, straight part of an asynchronous motor's curve, k_m (w_set - w)."""
    torque: Array = parameters.motor_stiffness * (set_speed - speed)
    return torque


def pumping_torque(parameters: PumpParameters, slope: Array, pressure: Array) -> Array:
    """Torque (N m, shape (n,)) that the chambers take from the shaft: -sum_k (p_k - p_atm) A_p dx_k/dangle."""
    force = (pressure - parameters.atmosphere) * parameters.plunger_area
    return -over_plungers(force * slope)


def friction_torque(parameters: PumpParameters, factor: Array, pressure: Array, speed: Array) -> Array:
    """Torque of the crank bearings (N m, shape (n,)): f (mu r_b sum_k |F_k| + b w), with f = 1 for a sound bearing."""
    load = over_plungers(np.abs(pressure - parameters.atmosphere)) * parameters.plunger_area
    dry = parameters.bearing_friction * parameters.bearing_radius * load
    torque: Array = factor * (dry + parameters.viscous_friction * speed)
    return torque
