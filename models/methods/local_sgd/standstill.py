"""When a run of local steps stands still: all sites that were asked to step ended where they began, again and again.

It happens where the guards of the sites let no step leave (:mod:`models.methods.guard`), and where the loss is 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from models.basics import Arrays

MOST_STILL: Final = 10
"""So many exchanges without a step, one after the other, end a run: a guard may let one leave after some that it did
not, for each round draws anew what it asks and what may stand in for it."""
STANDS_STILL: Final = (
    f"no site has moved for {MOST_STILL} rounds: their guards let no step leave, or the loss is 0; plants that have "
    "told much about the same rows let little more leave"
)
_STEP = 1e-11
"""Of the largest weight, or of 1: what sums of cohorts are rounded by is less, and a shorter step leads nowhere."""


def still_exchanges(before: int, messages: Mapping[str, Arrays], answers: Mapping[str, Arrays]) -> int:
    """Exchanges without a step up to this one, ``before`` of them before it.

    One in which no site was asked to step, or none that was has answered, counts neither way.
    """
    stepped = [(messages[site]["point"], answers[site]["local_point"]) for site in answers if _steps(messages[site])]
    if not stepped:
        return before
    moved = any(
        float(np.abs(ended - point).max(initial=0.0)) > _STEP * max(1.0, float(np.abs(point).max(initial=0.0)))
        for point, ended in stepped
    )
    return 0 if moved else before + 1


def _steps(message: Arrays) -> bool:
    return bool(np.any(message["step_size"] != 0.0))
