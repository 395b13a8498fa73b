"""What ``tuning = "auto"`` tries: factors on the radius, and lifts of the features.

Radii of one lift share their cuts, so a further one costs scores alone; a further lift costs cuts of its own, and what
it costs is missing from the others' training. Few lifts trained well are told apart better than many trained coarsely.
"""

from __future__ import annotations

from typing import Final

from models.tuning.choice import Rule

AUTO_RADIUS: Final = (0.3, 1.0, 3.0, 10.0)
"""Factors on the radius, with every lift."""
AUTO_SEGMENTS: Final = (6,)
"""Segments of the splines that are tried beside the features themselves."""
AUTO_FOLDS: Final = 3
"""Folds, in all of which every candidate is scored."""
AUTO_RULE: Final[Rule] = "best"
"""By which it chooses."""
_MOST_PRODUCTS: Final = 12
"""Products are no more numbers than so many for each feature."""


def tries_products(n_features: int) -> bool:
    """Whether products of all pairs and squares are tried: to 21 features, twice as many numbers as splines."""
    return n_features + n_features * (n_features + 1) // 2 <= _MOST_PRODUCTS * n_features
