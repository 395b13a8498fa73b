"""Local steps that a works has solved already: a plant that is asked once more, after an answer that was lost or a
restart, solves the same problem again, and what comes out depends on what goes in alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from models.problem import SiteProblem


def remembering(solve: Callable[..., Any]) -> Callable[..., Any]:
    """The same solver, which solves each problem once."""
    known: dict[tuple[object, ...], Any] = {}

    def solved(problem: SiteProblem, *arguments: Any, **options: Any) -> Any:
        key = (problem.digest, *map(_told, arguments), *((name, _told(each)) for name, each in options.items()))
        if key not in known:
            known[key] = solve(problem, *arguments, **options)
        return known[key]

    return solved


def _told(value: Any) -> object:
    """What tells one argument from another: of an array its bytes."""
    return value.tobytes() if isinstance(value, np.ndarray) else value
