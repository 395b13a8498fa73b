"""Tuning of a plan's terms: what a plan asks for, and the grid that this is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from models.basics import FloatArray
from models.losses.catalogue import LossName, get_loss
from models.tuning.automatic import (
    AUTO_FOLDS,
    AUTO_RULE,
    AUTO_SEGMENTS,
    AutomaticLift,
    automatic_lifts,
    automatic_radii,
)
from models.tuning.budget import MOST_TRAININGS, check_trainings
from models.tuning.candidates import Candidate, grid
from models.tuning.choice import Rule
from models.tuning.folds import check_n_folds
from services.contracts.base import TABLE, WORD, Contract
from services.contracts.problems.lift import LiftSpec, ProductLiftSpec, SplineLiftSpec, lifted_size

MOST_CANDIDATES: Final = 60  # a plant trains each of them in each fold
AUTO: Final = "auto"

Factor = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _word_or_table(word: str, said: str) -> Discriminator:
    """Tells a table from the one word that may stand in its place; anything else is told both."""

    def place(given: object) -> str | None:
        if isinstance(given, str):
            return WORD if given == word else None
        return TABLE if isinstance(given, Mapping | Contract) else None

    return Discriminator(place, custom_error_type="word_or_table", custom_error_message=said)


LiftOrNone = Annotated[
    Annotated[LiftSpec, Tag(TABLE)] | Annotated[Literal["none"], Tag(WORD)],
    _word_or_table(
        "none", 'a lift to be tried is "none", or a table with its kind, as in { kind = "spline", segments = 6 }'
    ),
]
"""TOML has no null: no lift is written "none"."""


class TuningSpec(Contract):
    """A grid, how it is judged, and what that may cost.

    ``radius``: factors on the radius that the plan's rule gives each site. ``label_flip_cost``, ``lifts`` ("none" among
    them where wanted) and ``mixture_radius``: values; empty: the plan's own. ``budget``: what the tuning may cost, in
    trainings, so that tuning and training together are ``budget + 1``. ``every``: tune at every so many-th run; the
    runs between take the terms that were chosen last.
    """

    radius: tuple[Factor, ...] = (1.0,)
    label_flip_cost: tuple[Factor, ...] = ()
    lifts: tuple[LiftOrNone, ...] = ()
    mixture_radius: tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...] = ()
    folds: int = 5
    seed: int = Field(default=0, ge=0, le=2**53)
    rule: Rule = "one-standard-error"
    budget: float = 2.0
    every: int = Field(default=1, ge=1, le=1000)

    @model_validator(mode="after")
    def _has_meaning(self) -> Self:
        check_n_folds(self.folds)
        check_trainings(self.budget)
        if self.folds > 20:
            raise ValueError(f"folds must be at most 20, got {self.folds}")
        return self


TuningChoice = Annotated[
    Annotated[TuningSpec, Tag(TABLE)] | Annotated[Literal["auto"], Tag(WORD)],
    _word_or_table("auto", 'a tuning is "auto", or a table of what is tried, as in { radius = [1.0, 10.0] }'),
] | None
"""What a plan says of tuning: a table, "auto" (``models.tuning.automatic``), or nothing."""


@dataclass(frozen=True)
class TuningGrid:
    """Candidates, and the lifts that their numbers mean, the plan's own first where it is among them."""

    candidates: tuple[Candidate, ...]
    lifts: tuple[LiftSpec | None, ...]

    def sizes(self, n_features: int) -> tuple[int, ...]:
        """Features that the method sees, by lift."""
        return tuple(lifted_size(lift, n_features) for lift in self.lifts)


def settled(tuning: TuningChoice) -> TuningSpec | None:
    """The table that "auto" stands for, but for its grid."""
    return TuningSpec(folds=AUTO_FOLDS, budget=MOST_TRAININGS, rule=AUTO_RULE) if isinstance(tuning, str) else tuning


def tuning_grid(
    tuning: TuningChoice, lift: LiftSpec | None, cost: float, mixture_radius: float, n_features: int, *,
    loss: LossName = "hinge", with_lifts: bool = True, rows_by_class: FloatArray | None = None,
    by_squares: bool = False,
) -> TuningGrid:
    """The grid of a plan whose own terms are given; ``ProblemError`` for a grid of one, or too large a one.

    ``rows_by_class`` (C,): for "auto", where the sites told them and one class is rare. ``by_squares``: its
    race of several classes goes by squares (``models.tuning.class_squares``).
    """
    if isinstance(tuning, str):
        target = get_loss(loss).task == "regression"
        kinds = automatic_lifts(n_features, rows_by_class, target=target) if with_lifts else ()
        own = () if lift is None and kinds and "none" not in kinds else (lift,)
        lifts = tuple(dict.fromkeys((*own, *(_automatic_lift(each, n_features) for each in kinds if each != "none"))))
        radii = automatic_radii(loss, rare=rows_by_class is not None, by_squares=by_squares)
        return TuningGrid(grid(radii, (cost,), len(lifts), (mixture_radius,)), lifts)
    spec = tuning or TuningSpec()
    lifts = tuple(None if each == "none" else each for each in dict.fromkeys(spec.lifts)) or (lift,)
    candidates = grid(
        spec.radius, spec.label_flip_cost or (cost,), len(lifts), spec.mixture_radius or (mixture_radius,)
    )
    return TuningGrid(candidates, lifts)


def _automatic_lift(kind: AutomaticLift, n_features: int) -> LiftSpec:
    if kind == "spline":
        return SplineLiftSpec(kind="spline", segments=AUTO_SEGMENTS)
    chosen = tuple(range(n_features))
    if kind == "products":
        return ProductLiftSpec(kind="products", features=chosen, squares=True)
    return ProductLiftSpec(kind="products", features=chosen, segments=AUTO_SEGMENTS)
