"""One exchange of a tuning: what it asks of every plant, and what their answers, or a cohort's sums, say by part."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from models.basics import Arrays, FloatArray
from models.cohorts.fixed_point import Words, from_words, word_count
from services.contracts.history.run import SiteAnswer
from services.contracts.problems.coupling import CouplingTask
from services.contracts.problems.tuning_task import TuningTask

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class TuningQuestion:
    """One exchange as a task has it: what it asks, its arrays, and the shapes of an answer by part, names plain."""

    number: int
    task: TuningTask | CouplingTask
    arrays: Arrays
    parts: tuple[Shapes, ...]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the whole answer, each name with the number of its part."""
        return {f"{name}_{j}": shape for j, part in enumerate(self.parts) for name, shape in part.items()}

    def apart(self, arrays: Arrays) -> list[dict[str, FloatArray]]:
        """Arrays of an answer by part, under their plain names."""
        return [{name: arrays[f"{name}_{j}"] for name in part} for j, part in enumerate(self.parts)]

    def from_words(self, words: Words) -> list[dict[str, FloatArray]]:
        """The same of the sum of the words of a cohort."""
        ends = np.cumsum([word_count(part) for part in self.parts])[:-1]
        told = zip(np.split(words, ends), self.parts, strict=True)
        return [from_words(each, part) if part else {} for each, part in told]  # {}: told with an earlier part


@dataclass(frozen=True)
class TuningAnswers:
    """Answers by site or cohort, each a list by part; and the account of every site."""

    parts: Mapping[str, Sequence[Arrays]]
    accounts: tuple[SiteAnswer, ...]


Ask = Callable[[TuningQuestion], Awaitable[TuningAnswers]]
