"""The curve of a tuning that a version keeps: what was tried, chosen and paid, and how it reads."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from models.losses.catalogue import LossName, get_loss
from models.tuning.candidates import Candidate
from models.tuning.choice import Rule
from services.contracts.base import Contract
from services.contracts.problems.lift import LiftSpec, ProductLiftSpec, SplineLiftSpec


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


def cost_words(loss: LossName) -> str:
    """What ``label_flip_cost`` is the cost of: a target is moved, not flipped."""
    return "cost of a flip" if get_loss(loss).task == "classification" else "cost of moving a target"


def candidate_words(each: TunedCandidate) -> str:
    """A candidate in a few words: factor on the radius, cost by :func:`cost_words`, lift, ball over the sites."""
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
