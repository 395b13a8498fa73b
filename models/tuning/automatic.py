"""What ``tuning = "auto"`` tries: factors on the radius, and lifts of the features; and the loss in the hinge's place.

Radii of one lift share their cuts, so a further one costs scores alone; a further lift costs cuts of its own, and what
it costs is missing from the others' training. Few lifts trained well are told apart better than many trained coarsely.
"""

from __future__ import annotations

from typing import Final

from models.basics import FloatArray
from models.losses.catalogue import LossName
from models.tuning.choice import Rule

_RADIUS: Final = (0.3, 1.0, 3.0, 10.0)
_LOGISTIC_RADIUS: Final = (0.1, 0.3, 1.0, 3.0)
"""Log odds of sure answers are some times as large as the margins of a hinge, and the radius is the price of size."""
AUTO_SEGMENTS: Final = (6,)
"""Segments of the splines that are tried beside the features themselves."""
AUTO_FOLDS: Final = 3
"""Folds, in all of which every candidate is scored."""
AUTO_RULE: Final[Rule] = "best"
"""By which it chooses."""
AUTO_LOSS: Final[LossName] = "logistic"
"""In place of the hinge where three classes or more are told apart, one against the rest, or where a class is rare.

A class that lies between others is in the majority nowhere. The best hinge score against the rest is then the sign of
the majority, -1 for every class alike, and the largest score says nothing; the logistic one is the log odds of the
class, whose largest is the most probable class (Lee, Lin and Wahba 2004, section 2; Zhang 2004). Where a class is rare,
"all healthy" has next to no hinge loss: the first planes of a training stay there, and with a large radius the last.
"""
RARE_SHARE: Final = 0.08
"""A class that has a smaller share of the rows is rare."""
ROWS_PER_WEIGHT: Final = 1.0
"""Rows of the rare class for each number of the lift that is taken for it without a race of lifts."""
_MOST_PRODUCTS: Final = 12
"""Products are no more numbers than so many for each feature."""


def tries_products(n_features: int) -> bool:
    """Whether products of all pairs and squares are tried: to 21 features, twice as many numbers as splines."""
    return n_features + n_features * (n_features + 1) // 2 <= _MOST_PRODUCTS * n_features


def is_rare(rows_by_class: FloatArray) -> bool:
    """Whether the rarest class of rows (C,) counted by class is rare; so it is where no row was counted."""
    return bool(rows_by_class.min() <= 0.0 or rows_by_class.min() < RARE_SHARE * rows_by_class.sum())


def bears_products_beside_splines(rows_by_class: FloatArray, n_features: int) -> bool:
    """Whether two classes, one of them rare, are told apart by products of all pairs beside splines, and nothing else.

    A race sees planes a dozen cuts on the way to an optimum. There rare faults are mostly called healthy whatever the
    lift is, so its scores say nothing of lifts. The rows of the rarer class for each weight do (events per variable;
    Peduzzi et al. 1996): with enough of them the largest lift is not worse than a smaller one. Rows (C,) by class.
    """
    size = n_features * AUTO_SEGMENTS[0] + n_features * (n_features - 1) // 2
    enough = float(rows_by_class.min()) >= ROWS_PER_WEIGHT * size
    return len(rows_by_class) == 2 and is_rare(rows_by_class) and tries_products(n_features) and enough


def automatic_radii(loss: str) -> tuple[float, ...]:
    """Factors on the radius, with every lift."""
    return _LOGISTIC_RADIUS if loss == "logistic" else _RADIUS
