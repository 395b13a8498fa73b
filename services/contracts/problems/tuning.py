"""Tuning of a plan's terms: what a plan asks for, what a task asks of a plant, and the curve that a version keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

MOST_CANDIDATES: Final = 60
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
) -> TuningGrid:
    """The grid of a plan whose own terms are given; ``ProblemError`` for a grid of one, or too large a one.

    ``rows_by_class`` (C,): for "auto", where the sites told them and one class is rare.
    """
    if isinstance(tuning, str):
        kinds = automatic_lifts(n_features, rows_by_class) if with_lifts else ()
        own = () if lift is None and kinds and "none" not in kinds else (lift,)
        lifts = tuple(dict.fromkeys((*own, *(_automatic_lift(each, n_features) for each in kinds if each != "none"))))
        radii = automatic_radii(loss, rare=rows_by_class is not None)
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


class TuningPart(Contract):
    """One question of a task: a candidate's terms, on the rows without a fold, or scored on that fold.

    ``radius`` is a factor on the radius of the task's problem, ``lift`` a number among the lifts of the task.
    ``penalty``: of the plant's own step from zero, whose end is told in place of a cut.
    """

    radius: Factor
    label_flip_cost: float = Field(gt=0)
    lift: int = Field(ge=0)
    fold: int = Field(ge=0)
    penalty: float | None = Field(default=None, ge=1e-6, le=1e6, exclude_if=lambda penalty: penalty is None)

    @property
    def terms(self) -> tuple[float, float, int]:
        """Radius, flip cost and lift: what two parts of one candidate have in common."""
        return self.radius, self.label_flip_cost, self.lift


class TuningTask(Contract):
    """Questions of one exchange. Arrays by part j: ``point_j`` (K, D) to be cut, or ``weights_j`` (K, P + 1) scored.

    A part with a penalty has none: its step begins at zero.

    ``pooled``: the counts of all parts with the same terms are told as one, as the answer to the first of them.
    """

    folds: int = Field(ge=2, le=20)
    seed: int = Field(ge=0, le=2**53)
    lifts: tuple[LiftSpec | None, ...] = Field(min_length=1)
    parts: tuple[TuningPart, ...] = Field(min_length=1, max_length=1000)
    scored: bool
    pooled: bool = False

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if any(part.fold >= self.folds or part.lift >= len(self.lifts) for part in self.parts):
            raise ValueError("a part names a fold or a lift that the task does not have")
        if self.scored and any(part.penalty is not None for part in self.parts):
            raise ValueError("a step is taken on the rows without a fold, nothing of it is scored")
        if self.pooled and not self.scored:
            raise ValueError("scores are pooled over folds, cuts are not")
        if self.pooled and not self._holds_out_each_fold_once():
            # Rows that were counted twice would pass for twice as many, and the rest of a whole tells the missing fold.
            raise ValueError("pooled counts of a candidate are over all folds, each once")
        return self

    def _holds_out_each_fold_once(self) -> bool:
        folds: dict[tuple[float, float, int], list[int]] = {}
        for part in self.parts:
            folds.setdefault(part.terms, []).append(part.fold)
        return all(sorted(each) == list(range(self.folds)) for each in folds.values())

    def together(self, place: int) -> tuple[int, ...]:
        """Places of the parts whose counts are told as the answer to the part at a place; none: with an earlier one."""
        if not self.pooled:
            return (place,)
        terms = [part.terms for part in self.parts]
        same = tuple(j for j, each in enumerate(terms) if each == terms[place])
        return same if same[0] == place else ()


class TunedCandidate(Contract):
    """Its mean score over ``folds`` folds: macro F-1, or minus the mean error; None: none was counted."""

    radius: float
    label_flip_cost: float
    lift: LiftSpec | None = None
    mixture_radius: float = 0.0
    score: float | None = None
    standard_error: float | None = None
    folds: int = 0
    gap: float | None = Field(
        default=None, description="widest relative gap of its folds when they were scored last; None: not known"
    )


class TuningCurve(Contract):
    """What a tuning tried, chose and cost.

    ``numbers`` are those that one plant sent and was sent (float64), ``bytes_sent`` and ``bytes_received`` whole frames
    of all plants; ``reference_rounds`` and ``reference_numbers`` are the one training by which ``budget`` is counted.
    ``base``: digest of the terms that it started from. ``reused_from``: run whose choice this run took; empty: its own.
    """

    candidates: tuple[TunedCandidate, ...]
    chosen: int = Field(ge=0)
    why: str
    rule: Rule
    folds: int
    seed: int
    rounds: int
    numbers: float
    bytes_sent: int = 0
    bytes_received: int = 0
    budget: float
    reference_rounds: int
    reference_numbers: float
    base: str
    reused_from: str = ""

    @property
    def terms(self) -> TunedCandidate:
        """The chosen candidate."""
        return self.candidates[self.chosen]


def score_words(loss: LossName) -> str:
    """What the scores of a curve are, higher being better."""
    if get_loss(loss).task == "classification":
        return "macro F-1"
    kind = "pinball loss" if loss == "pinball" else "absolute error"
    return f"minus the mean {kind}, in shares of the target's range"


def candidate_words(each: TunedCandidate) -> str:
    """A candidate in a few words: factor on the radius, cost of a flip, lift, ball over the sites."""
    ball = f", ball {each.mixture_radius:g}" if each.mixture_radius else ""
    return f"x{each.radius:g}, {each.label_flip_cost:g}, {_lift_words(each.lift)}{ball}"


def _lift_words(lift: LiftSpec | None) -> str:
    """Kind of a lift, with the segments of splines, alone or beside products."""
    match lift:
        case None:
            return "no lift"
        case SplineLiftSpec():
            return f"spline {lift.segments}"
        case ProductLiftSpec() if lift.segments > 1:
            return f"products {lift.segments}"
    return lift.kind


def tuned_candidates(
    lifts: Sequence[LiftSpec | None], rows: Sequence[tuple[Candidate, float | None, float | None, int, float | None]]
) -> tuple[TunedCandidate, ...]:
    """Entries of a curve: candidate, score, standard error, folds and gap of each."""
    return tuple(
        TunedCandidate(
            radius=each.radius, label_flip_cost=each.label_flip_cost, lift=lifts[each.lift],
            mixture_radius=each.mixture_radius, score=score, standard_error=error, folds=folds, gap=gap,
        )
        for each, score, error, folds, gap in rows
    )
