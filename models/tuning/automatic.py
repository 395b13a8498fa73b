"""What ``tuning = "auto"`` tries: factors on the radius, and lifts of the features.

Radii of one lift share their cuts, so a further one costs scores alone; a further lift costs cuts of its own.
"""

from __future__ import annotations

from typing import Final

from models.tuning.choice import Rule

AUTO_RADIUS: Final = (1.0, 3.0, 10.0)
"""Factors on the radius, with every lift."""
AUTO_SEGMENTS: Final = (6, 12)
"""Segments of the splines that are tried beside the features themselves."""

AUTO_RULE: Final[Rule] = "paired"
"""By which it chooses among the finalists."""


def tries_products(n_features: int) -> bool:
    """Whether products of all pairs and squares are tried: where they are no more numbers than the largest splines."""
    return n_features + n_features * (n_features + 1) // 2 <= AUTO_SEGMENTS[-1] * n_features
