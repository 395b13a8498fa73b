"""What is tried of each method's own, and what a fit is."""

from __future__ import annotations

from dataclasses import dataclass, replace

from models.basics import FloatArray

THRESHOLD = 1.35
"""Of the Huber loss."""


@dataclass(frozen=True)
class Setting:
    """What is tuned: rho, theta and kappa. Where the radius is 0, kappa has no say."""

    radius: float = 0.0
    theta: float = 0.0
    label_flip_cost: float = 1.0


@dataclass(frozen=True)
class Grid:
    """Values of rho, kappa and theta that are tried."""

    radii: tuple[float, ...]
    flip_costs: tuple[float, ...]
    thetas: tuple[float, ...]


PAPER_GRID = Grid(
    radii=(1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 1e-2, 2e-2, 5e-2, 5e-1, 1.0),
    flip_costs=tuple(round(0.1 * k, 1) for k in range(1, 11)),
    thetas=(1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0),
)
QUICK_GRID = Grid(radii=(1e-3, 1e-2, 2e-2, 5e-2, 5e-1), flip_costs=(0.1, 0.3, 0.5, 1.0), thetas=(1e-2, 1e-1, 1.0))
PAPER_HUBER = replace(PAPER_GRID, flip_costs=PAPER_GRID.flip_costs[::-1])
QUICK_HUBER = Grid(radii=(1e-3, 5e-2, 5e-1), flip_costs=(1.0, 0.1), thetas=(1e-2, 1.0))
"""The dearest first, so that a fit answers the next settings, too (``huber_fits``)."""


@dataclass(frozen=True)
class Fitted:
    """Weights (P + 1,), the intercept last, their worst-case risk over the whole set, and the certified gap."""

    weights: FloatArray
    risk: float
    gap: float
