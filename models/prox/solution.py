"""What a proximal step of a site gives."""

from __future__ import annotations

from dataclasses import dataclass

from models.basics import FloatArray


@dataclass(frozen=True)
class ProxSolution:
    r"""Solution of ``min_w r(w) + penalty/2 ||w - centre||^2`` with what proves it.

    ``offset + <slope, u> <= r(u)`` for every ``u`` (a minorant built from a dual feasible point, so it holds however
    far the solver got); ``gap`` is primal minus dual objective; ``solver`` names who solved it.

    ``norm_slope`` is the part of ``slope`` that stands for the norm, of transport norm at most ``norm_weight``, so the
    sharper minorant ``offset + <slope - norm_slope, u> + norm_weight ||u||_* <= r(u)`` holds too. None: not known.
    ``passes`` counts how often the solver read all rows. ``rows`` (N,), row-level: the coefficients of the rows in
    ``slope - norm_slope``; None: not known.
    """

    point: FloatArray
    value: float
    offset: float
    slope: FloatArray
    gap: float
    primal_residual: float
    dual_residual: float
    iterations: int
    solver: str
    norm_weight: float = 0.0
    norm_slope: FloatArray | None = None
    passes: int = 0
    rows: FloatArray | None = None
