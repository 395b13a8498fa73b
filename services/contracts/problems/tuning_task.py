"""What a task of a tuning asks of a plant: cuts on the rows without a fold, scores on the fold."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from services.contracts.base import Contract
from services.contracts.problems.lift import LiftSpec
from services.contracts.problems.tuning import Factor


class TuningPart(Contract):
    """One question of a task: a candidate's terms, on the rows without a fold, or scored on that fold.

    ``radius`` is a factor on the radius of the task's problem, ``lift`` a number among the lifts of the task.
    ``penalty``: of the plant's own step from zero, whose end is told in place of a cut. ``squares``: the cut is of the
    mean square without a ball, in place of the candidate's risk.
    """

    radius: Factor
    label_flip_cost: float = Field(gt=0)
    lift: int = Field(ge=0)
    fold: int = Field(ge=0)
    penalty: float | None = Field(default=None, ge=1e-6, le=1e6, exclude_if=lambda penalty: penalty is None)
    squares: bool = Field(default=False, exclude_if=lambda squares: not squares)

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
        if any(part.squares and (self.scored or part.penalty is not None) for part in self.parts):
            raise ValueError("squares are cut on the rows without a fold: they are neither scored nor stepped on")
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

    @property
    def asks_squares(self) -> bool:
        """Whether some part is of squares."""
        return any(part.squares for part in self.parts)

    def together(self, place: int) -> tuple[int, ...]:
        """Places of the parts whose counts are told as the answer to the part at a place; none: with an earlier one."""
        if not self.pooled:
            return (place,)
        terms = [part.terms for part in self.parts]
        same = tuple(j for j, each in enumerate(terms) if each == terms[place])
        return same if same[0] == place else ()
