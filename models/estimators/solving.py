"""How all estimators solve their problem: at once, or by a method of the catalogue."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.at_hand import train_at_hand
from models.estimators.sites import number
from models.federation import FIXED, Training, train
from models.methods.catalogue import METHODS
from models.mixture import MixtureBall
from models.problem import ProblemError, SiteProblem


def solve(
    sites: dict[str, SiteProblem],
    weights: dict[str, float],
    method: str,
    gap: Any,
    max_rounds: Any,
    mixture: MixtureBall = FIXED,
) -> Training:
    """Train over sites by the arguments of an estimator; ``method`` "auto" solves with all rows at hand."""
    wanted, limit = number("gap", gap), whole_number("max_rounds", max_rounds)
    if method == "auto":
        return train_at_hand(sites, weights=weights, mixture=mixture, gap=wanted, max_rounds=limit)
    if method not in METHODS:
        raise ProblemError(f"method must be 'auto' or one of {', '.join(sorted(METHODS))}, got {method!r}")
    return train(sites, weights=weights, mixture=mixture, method=method, gap=wanted, max_rounds=limit)


def whole_number(name: str, value: Any) -> int:
    """A parameter as a whole number at or above 1, or ``ProblemError`` with its name."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ProblemError(f"{name} must be a whole number at or above 1, got {value!r}")
    return int(value)
