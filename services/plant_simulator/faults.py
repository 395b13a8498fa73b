"""Faults of the pump: class names, and what a severity means for each.

A severity is a number between 0 (healthy) and :data:`HIGHEST_SEVERITY`. For a leak it is the leak's area over the
valve's area, the factor by which the pump study grades its plants (1e-3 to 1e-2); the other faults grade along the same
scale, so that one number says how far gone a plant's pumps are, also where faults occur together.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from services.contracts.errors import InvalidInputError

HEALTHY: Final = "healthy"
FAULTS: Final = ("leak", "blocked_inlet", "worn_bearing")
"""Single faults, in the order in which combinations name them."""
HIGHEST_SEVERITY: Final = 0.02  # twice the study's highest

BLOCKING_AT_ONSET: Final = 0.788  # share of the inlet: just before the flow breaks in
BLOCKING_PER_SEVERITY: Final = 2.7  # .842 blocked at the highest severity; flow breaks in from .79 on
FRICTION_AT_ONSET: Final = 5.0  # times a sound bearing's: the first that the speed shows
FRICTION_PER_SEVERITY: Final = 700.0  # 19 times a sound bearing's at the highest severity


@dataclass(frozen=True)
class FaultParameters:
    """What a fault changes in the pump.

    Attributes
    ----------
    leak_area_factor : seal leak area of one cylinder over the valve area.
    inlet_blocking : share of the inlet area that is blocked. The inlet is generous: under about .7 nothing is felt at
        the outlet, over about .79 the chambers no longer fill and the outlet flow breaks in at every stroke.
    bearing_friction : bearing friction relative to a sound bearing.
    """

    leak_area_factor: float = 0.0
    inlet_blocking: float = 0.0
    bearing_friction: float = 1.0


def combinations(faults: Sequence[str]) -> tuple[str, ...]:
    """Class names of every combination of these faults, healthy first: ``leak``, ``leak+blocked_inlet``, ..."""
    chosen = ordered(faults)
    return (
        HEALTHY,
        *("+".join(some) for size in range(1, len(chosen) + 1) for some in itertools.combinations(chosen, size)),
    )


def ordered(faults: Sequence[str]) -> tuple[str, ...]:
    """The faults, each once, in the order of :data:`FAULTS`; raise :class:`InvalidInputError` for one that is none."""
    unknown = sorted(set(faults) - set(FAULTS))
    if unknown:
        raise InvalidInputError(f"unknown fault {unknown[0]!r}: choose from {', '.join(FAULTS)}")
    if not faults:
        raise InvalidInputError(f"name at least one fault of {', '.join(FAULTS)}")
    return tuple(fault for fault in FAULTS if fault in faults)


def fault_parameters(label: str, severity: float) -> FaultParameters:
    """What class ``label`` (a fault, several joined by ``+``, or ``healthy``) at this severity changes in the pump.

    ``InvalidInputError`` for a label or a severity that is none.
    """
    if label == HEALTHY:
        return FaultParameters()
    if not 0.0 < severity <= HIGHEST_SEVERITY:
        raise InvalidInputError(f"severity of {label} must be over 0 and at most {HIGHEST_SEVERITY}, got {severity}")
    parts = ordered(label.split("+"))
    return FaultParameters(
        leak_area_factor=severity if "leak" in parts else 0.0,
        inlet_blocking=BLOCKING_AT_ONSET + BLOCKING_PER_SEVERITY * severity if "blocked_inlet" in parts else 0.0,
        bearing_friction=FRICTION_AT_ONSET + FRICTION_PER_SEVERITY * severity if "worn_bearing" in parts else 1.0,
    )
