r"""Candidates of a tuning: radius, flip cost, lift and ball over the sites; and which of two is the simpler one.

The order of simplicity, by which the one-standard-error rule chooses: fewer lifted features; then a larger ball at the
sites; then cheaper label flips; then a larger ball over the sites. All but the first mean more robust.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from models.basics import ProblemError


@dataclass(frozen=True)
class Candidate:
    """Terms that a training may have.

    ``radius``: factor on the radius that a site has by the rule of the plan. ``lift``: number of the lift among those
    of the grid. ``mixture_radius``: of the ball over the sites.
    """

    radius: float
    label_flip_cost: float
    lift: int = 0
    mixture_radius: float = 0.0

    def __post_init__(self) -> None:
        """Refuse terms that no problem has."""
        if not (math.isfinite(self.radius) and self.radius > 0):
            raise ProblemError(f"a candidate's radius is a finite factor above 0, got {self.radius}")
        if math.isnan(self.label_flip_cost) or self.label_flip_cost <= 0:
            raise ProblemError(f"a candidate's label_flip_cost must be above 0, got {self.label_flip_cost}")
        if not (math.isfinite(self.mixture_radius) and self.mixture_radius >= 0):
            raise ProblemError(f"a candidate's mixture radius must be at or above 0, got {self.mixture_radius}")

    @property
    def flips(self) -> float:
        """Share of the rows that the ball lets flip, in units of the rule's radius: ``radius / label_flip_cost``."""
        return self.radius / self.label_flip_cost


def grid(
    radius: Sequence[float], label_flip_cost: Sequence[float], n_lifts: int = 1,
    mixture_radius: Sequence[float] = (0.0,),
) -> tuple[Candidate, ...]:
    """All combinations, each once.

    Raises
    ------
    ProblemError
        There is only one, or none, or terms that no problem has.
    """
    found = tuple(dict.fromkeys(
        Candidate(float(factor), float(cost), lift, float(theta))
        for lift, factor, cost, theta in product(range(n_lifts), radius, label_flip_cost, mixture_radius)
    ))
    if len(found) < 2:
        raise ProblemError(
            f"a grid needs two candidates at least to choose from, got {len(found)}: give a second radius, "
            "label_flip_cost, lift or mixture radius, or leave out the tuning"
        )
    return found


def simplicity(candidate: Candidate, sizes: Sequence[int]) -> tuple[float, ...]:
    """Sorts the simplest candidate first; ``sizes`` are the numbers of features by lift."""
    return (sizes[candidate.lift], -candidate.radius, candidate.label_flip_cost, -candidate.mixture_radius)


def flips_order(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Candidates whose cuts serve most others first: those whose balls let the fewest rows flip."""
    return sorted(candidates, key=lambda each: (each.flips, each.radius))
