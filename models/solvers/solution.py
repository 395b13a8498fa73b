"""What a solver of this room returns, whichever it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from models.basics import FloatArray


class SolverStatus(Enum):
    """How a solver ended."""

    SOLVED = "residuals and gap are at the tolerance"
    ROUNDING = "rounding stopped progress before the tolerance; the best iterate is returned"
    STEP_LIMIT = "the limit of steps was reached; the best iterate is returned"


@dataclass(frozen=True)
class Solution:
    """Primal point (n,) and multipliers (m,) of the constraints, with what is left of the optimality conditions.

    ``primal_residual`` and ``dual_residual`` are the largest violations of feasibility and of stationarity, ``gap`` is
    the complementarity that is left, all in the program's units.
    """

    point: FloatArray
    multipliers: FloatArray
    status: SolverStatus
    primal_residual: float
    dual_residual: float
    gap: float
    iterations: int
