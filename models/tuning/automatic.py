"""What ``tuning = "auto"`` tries: factors on the radius, and lifts of the features; and the loss in the hinge's place.

Radii of one lift share their cuts, so a further one costs scores alone; a further lift costs cuts of its own, and what
it costs is missing from the others' training. Few lifts trained well are told apart better than many trained coarsely.
"""

from __future__ import annotations

from typing import Final, Literal

from models.basics import FloatArray
from models.losses.catalogue import LossName
from models.tuning.choice import Rule

_RADIUS: Final = (0.3, 1.0, 3.0, 10.0)
_LOGISTIC_RADIUS: Final = (0.1, 0.3, 1.0, 3.0)
"""Log odds of sure answers are some times as large as the margins of a hinge, and the radius is the price of size."""
_COUPLED_RADIUS: Final = (1.0, 3.0)
"""What a radius takes off planes of several classes their coupling gives back: scores hardly tell radii apart."""
_RARE_COUPLED_RADIUS: Final = (0.3, 1.0)
_RARE_RADIUS: Final = (0.1, 0.3, 1.0)
"""A larger radius is learnt in fewer cuts, so a race would take it for the better one (decision 88)."""
AUTO_SEGMENTS: Final = 6
"""Segments of the splines."""
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
"""Rows of the rare class for each number of products beside splines, with which they are taken without a race."""
MOST_BESIDE: Final = 8
"""Features up to which products stand beside splines where there is a target (decision 95)."""
_MOST_PRODUCTS: Final = 12
"""Products are no more numbers than so many for each feature."""

AutomaticLift = Literal["none", "spline", "products", "products beside splines"]
"""The features themselves, splines, products of pairs and squares beside the features, products beside splines."""


def is_rare(rows_by_class: FloatArray) -> bool:
    """Whether the rarest class of rows (C,) counted by class is rare; so it is where no row was counted."""
    return bool(rows_by_class.min() <= 0.0 or rows_by_class.min() < RARE_SHARE * rows_by_class.sum())


def automatic_lifts(
    n_features: int, rows_by_class: FloatArray | None = None, *, target: bool = False, products: bool = True
) -> tuple[AutomaticLift, ...]:
    """Lifts of ``n_features`` that are tried. ``rows_by_class`` (C,): where one of the classes is rare, else None.

    Products are tried where there may be any (``products``), and to 21 features: twice as many numbers as splines.
    Of a ``target`` of few features they stand beside splines: what bends with one sensor and goes with the product of
    two others is in neither alone, and errors, which have no end, tell folds that lack a term from those that have it.
    Of more than :data:`MOST_BESIDE` such a lift would cost twice what products alone do, and gains nothing; of one
    feature there is no pair, and a spline bends as its square does.

    A race sees planes on the way to an optimum, and there rare faults are mostly called healthy whatever the lift is.
    So of a rare class fewer lifts are trained further; and where it has a row for each number of the largest one
    (events per variable; Peduzzi et al. 1996), that one is taken, which is not worse than a smaller one then.
    """
    alone: tuple[AutomaticLift, ...] = ("none", "spline")
    products = products and n_features + n_features * (n_features + 1) // 2 <= _MOST_PRODUCTS * n_features
    beside = products and n_features > 1
    if rows_by_class is None and target and n_features <= MOST_BESIDE:
        return (*alone, "products beside splines") if beside else alone
    if rows_by_class is None:
        return (*alone, "products") if products else alone
    size = n_features * AUTO_SEGMENTS + n_features * (n_features - 1) // 2
    enough = float(rows_by_class.min()) >= ROWS_PER_WEIGHT * size
    return ("products beside splines",) if beside and enough else alone


def automatic_radii(loss: str, *, rare: bool = False, by_squares: bool = False) -> tuple[float, ...]:
    """Factors on the radius, with every lift; ``rare``: a class is; ``by_squares``: of several classes, raced so."""
    if by_squares:
        return _RARE_COUPLED_RADIUS if rare else _COUPLED_RADIUS
    return _RARE_RADIUS if rare else _LOGISTIC_RADIUS if loss == "logistic" else _RADIUS
