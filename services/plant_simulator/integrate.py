"""Fixed-step integration of many pumps at once.

The chambers are stiff: an open valve empties one in tens of microseconds. Each step is therefore implicit in all
pressures, and linear: every orifice enters as Q = G Dp with its conductance G of the last step, and a chamber's content
as M + c (P - p*), where p* is its pressure had nothing flowed and c the exact secant of the pressure law between the
last pressure and p*. What is left is, for each pump, three equations for the chambers coupled through two manifolds,

    (c_k + h (Gs_k + Gd_k + Gl_k)) P_k = c_k p*_k + h (Gs_k P_in + Gd_k P_out + Gl_k p_atm)
    (C_out + h (sum Gd_k + G_load)) P_out = C_out p_out + h sum Gd_k P_k + h G_load p_atm
    (C_in + h (sum Gs_k + G_inlet)) P_in = C_in p_in + h sum Gs_k P_k + h G_inlet p_feed,

solved in closed form: chambers first, then two by two. The contents are then moved by these very flows, so mass is
conserved to rounding, at any step. Conductances are non-negative, so no step can overshoot. The valves' lifts (the
poppets lag) and the shaft are slow against the step and advance explicitly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from services.plant_simulator import pump
from services.plant_simulator.pump import Array, PumpParameters, over_plungers

STEP: Final = 1.25e-4
"""Length of a step, s."""
SETTLING: Final = 0.3
"""Simulated time before the record starts, s: five revolutions; shaft and manifolds settle in less than two."""


@dataclass(frozen=True)
class PumpBatch:
    """Pumps that advance together: what differs between them.

    Attributes
    ----------
    set_speed : no-load speed of the drive at the crankshaft, shape (n,), rad/s.
    start_angle : crank angle at time 0, shape (n,), rad.
    load_opening : area of the load orifice relative to the rated one, shape (n,).
    leak_area : seal leak area of each cylinder, shape (3, n), m2.
    valve_area_factor : area of the suction (0) and delivery (1) valves relative to the rated one, shape (2, 3, n).
    inlet_blocking : share of the inlet area that is blocked, shape (n,), in [0, 1).
    bearing_friction : bearing friction relative to a sound bearing, shape (n,).
    """

    set_speed: Array
    start_angle: Array
    load_opening: Array
    leak_area: Array
    valve_area_factor: Array
    inlet_blocking: Array
    bearing_friction: Array

    def __len__(self) -> int:
        return int(self.set_speed.shape[0])

    def part(self, rows: slice) -> PumpBatch:
        """Some of the pumps."""
        return PumpBatch(**{name: np.ascontiguousarray(value[..., rows]) for name, value in vars(self).items()})


@dataclass(frozen=True)
class Trajectory:
    """True signals of n pumps, averaged over each sampling interval, shapes (n, T): m3/s, Pa absolute, rad/s."""

    flow: Array
    pressure: Array
    speed: Array


@dataclass
class PumpState:
    """What a batch remembers from step to step; :func:`advance` replaces it.

    Shapes: ``angle``, ``speed``, ``load_flow`` (n,); ``volume``, ``content``, ``pressure`` (3, n); ``manifold``
    (2, 1, n), the pressures of the inlet and of the outlet manifold; ``lift`` (2, 3, n), of the suction and of the
    delivery valves.
    """

    angle: Array
    speed: Array
    volume: Array
    content: Array
    pressure: Array
    lift: Array
    manifold: Array
    load_flow: Array


_DOWNSTREAM: Final[Array] = np.array([1.0, -1.0])[:, None, None]
"""Sign that makes manifold minus chamber pressure the drop along the valve: in by suction (0), out by delivery (1)."""


def start(parameters: PumpParameters, batch: PumpBatch) -> PumpState:
    """Shaft near its speed, manifolds near their pressures, chambers full at the feed pressure, valves shut."""
    n = len(batch)
    volume = parameters.dead_volume + parameters.plunger_area * pump.plunger_motion(parameters, batch.start_angle)[0]
    pressure = np.full((pump.N_PLUNGERS, n), parameters.feed_pressure)
    flow = parameters.displacement_per_revolution * batch.set_speed / (2.0 * np.pi)
    drop = (flow / (parameters.orifice_factor * parameters.load_area * batch.load_opening)) ** 2
    return PumpState(
        angle=batch.start_angle.copy(),
        speed=0.95 * batch.set_speed,
        volume=volume,
        content=pump.chamber_content(parameters, volume, pressure),
        pressure=pressure,
        lift=np.zeros((2, pump.N_PLUNGERS, n)),
        manifold=np.stack([np.full(n, parameters.feed_pressure), parameters.atmosphere + 0.85 * drop])[:, None],
        load_flow=flow,
    )


def advance(parameters: PumpParameters, batch: PumpBatch, state: PumpState, h: float) -> None:
    """One step of h seconds for all pumps of the batch, in place."""
    atmosphere, feed = parameters.atmosphere, parameters.feed_pressure
    # The shaft, and with it the chambers' volumes.
    angle = state.angle + h * state.speed
    x, slope = pump.plunger_motion(parameters, angle)
    volume = parameters.dead_volume + parameters.plunger_area * x
    # Conductances (times h) at the last pressures; a shut chamber's pressure at the new volume, and its capacity.
    into = (state.manifold - state.pressure) * _DOWNSTREAM
    valves = pump.conductance(parameters, (h * parameters.valve_area) * (batch.valve_area_factor * state.lift), into)
    leak = pump.conductance(parameters, h * batch.leak_area, state.pressure - atmosphere)
    inlet, outlet = state.manifold[:, 0]
    inlet_area = (h * parameters.inlet_area) * (1.0 - batch.inlet_blocking)
    supply = pump.conductance(parameters, inlet_area, feed - inlet)
    load = pump.conductance(parameters, (h * parameters.load_area) * batch.load_opening, outlet - atmosphere)
    shut = pump.chamber_pressure(parameters, volume, state.content)
    gas = (parameters.gas_share * atmosphere) / (shut * state.pressure)
    capacity = state.content * state.content / state.volume * (1.0 / parameters.bulk_modulus + gas)
    # Chambers in terms of the manifolds, P = base + share_in P_in + share_out P_out; then the manifolds, two by two.
    inverse = 1.0 / (capacity + valves[0] + valves[1] + leak)
    base = (capacity * shut + leak * atmosphere) * inverse
    share = valves * inverse
    own = over_plungers(valves - valves * share)
    cross = over_plungers(valves[0] * share[1])
    drive = over_plungers(valves * base)
    a_in = parameters.inlet_compliance + supply + own[0]
    a_out = parameters.outlet_compliance + load + own[1]
    b_in = parameters.inlet_compliance * inlet + supply * feed + drive[0]
    b_out = parameters.outlet_compliance * outlet + load * atmosphere + drive[1]
    inverse_determinant = 1.0 / (a_in * a_out - cross * cross)
    manifold = np.empty_like(state.manifold)
    manifold[0, 0] = (a_out * b_in + cross * b_out) * inverse_determinant
    manifold[1, 0] = (a_in * b_out + cross * b_in) * inverse_determinant
    chamber = base + share[0] * manifold[0] + share[1] * manifold[1]
    # Move the contents by these flows; the pressure follows from the exact law, and the valves from these drops.
    drop = manifold - chamber
    state.content = state.content + valves[0] * drop[0] + valves[1] * drop[1] - leak * (chamber - atmosphere)
    state.pressure = pump.chamber_pressure(parameters, volume, state.content)
    target = pump.valve_target(parameters, drop * _DOWNSTREAM)
    state.lift = state.lift + (h / parameters.valve_lag) * (target - state.lift)
    state.load_flow = load * (manifold[1, 0] - atmosphere) / h
    state.angle, state.volume, state.manifold = angle, volume, manifold
    torque = (
        pump.motor_torque(parameters, batch.set_speed, state.speed)
        - pump.pumping_torque(parameters, slope, state.pressure)
        - pump.friction_torque(parameters, batch.bearing_friction, state.pressure, state.speed)
    )
    state.speed = state.speed + (h / parameters.inertia) * torque


def simulate(
    parameters: PumpParameters, batch: PumpBatch, n_samples: int, sampling_rate: float, h: float = STEP
) -> Trajectory:
    """Run all pumps of a batch from start-up and record them once they have settled.

    Each sample is the mean over its sampling interval, as an integrating converter gives it.

    Parameters
    ----------
    parameters, batch : the pump, and what differs between the pumps.
    n_samples, sampling_rate : length of the record, and samples a second (Hz).
    h : longest step, s; the step taken divides the sampling interval.
    """
    per_sample = math.ceil(1.0 / (sampling_rate * h) - 1e-9)
    h = 1.0 / (sampling_rate * per_sample)
    state = start(parameters, batch)
    for _ in range(round(SETTLING / h)):
        advance(parameters, batch, state, h)
    record = np.zeros((3, n_samples, len(batch)))
    for t in range(n_samples):
        for _ in range(per_sample):
            advance(parameters, batch, state, h)
            record[0, t] += state.load_flow
            record[1, t] += state.manifold[1, 0]
            record[2, t] += state.speed
    flow, pressure, speed = (np.ascontiguousarray(signal.T) / per_sample for signal in record)
    return Trajectory(flow, pressure, speed)
