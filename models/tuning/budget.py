"""What a tuning may cost: rounds and numbers, counted before they are spent, in units of one training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from models.basics import ProblemError

MOST_TRAININGS = 3.0
"""A tuning never costs more than so many trainings, neither in rounds nor in bytes."""


@dataclass(frozen=True)
class OneTraining:
    """What one training costs: rounds, and numbers that one site sends and is sent in all of them together."""

    rounds: int
    numbers: float


def reference(trainings: Sequence[OneTraining], wanted: float, multiple: float) -> OneTraining:
    """The training by which a budget is counted: the first, the plan's own, where ``multiple`` of it pay for a race.

    Else the next that does, of a larger lift of the grid, which the race may choose; the last where none does.
    """
    return next((each for each in trainings if multiple * each.numbers >= wanted), trainings[-1])


@dataclass
class Budget:
    """``trainings`` times the cost of one training; nothing is spent that is not there.

    ``kept`` of it stays for what comes after the training: a coupling of its planes.
    """

    one: OneTraining
    trainings: float = 2.0
    rounds: int = 0
    numbers: float = 0.0
    kept: OneTraining = OneTraining(0, 0.0)

    def __post_init__(self) -> None:
        """Refuse a budget below one training, or above three."""
        check_trainings(self.trainings)

    @property
    def most_rounds(self) -> int:
        """Rounds that there are in all."""
        return int(self.trainings * self.one.rounds) - self.kept.rounds

    @property
    def rounds_left(self) -> int:
        """Rounds that are left."""
        return self.most_rounds - self.rounds

    @property
    def numbers_left(self) -> float:
        """Numbers that are left."""
        return self.trainings * self.one.numbers - self.kept.numbers - self.numbers

    def spend(self, numbers: float) -> None:
        """Count one round and its numbers a site.

        Raises
        ------
        ProblemError
            More than is left: the round must not be asked.
        """
        if self.rounds_left < 1 or numbers > self.numbers_left:
            raise ProblemError(
                f"a round of {numbers:g} numbers goes beyond the budget of the tuning: {self.rounds_left} rounds and "
                f"{self.numbers_left:g} numbers are left"
            )
        self.rounds += 1
        self.numbers += numbers


def check_trainings(trainings: float) -> None:
    """Refuse a budget below one training, or above three. :class:`ProblemError` says which may be asked for."""
    if not 1.0 <= trainings <= MOST_TRAININGS:
        raise ProblemError(
            f"a tuning costs from 1 to {MOST_TRAININGS:g} trainings, got a budget of {trainings:g}"
        )
