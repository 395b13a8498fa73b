"""How many measurements were answered by which version, whatever way they came: counts alone."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping

Key = tuple[str, str, int | None]
"""Model, version, and size of the set of classes; None where an answer has none."""


class Tally:
    """Counts of this process; threads may share it."""

    def __init__(self) -> None:
        self._answers: Counter[Key] = Counter()
        self._abstained: Counter[tuple[str, str]] = Counter()
        self._changing = threading.Lock()

    def add(self, model: str, version: str, sizes: Iterable[int | None], abstained: int = 0) -> None:
        """Count answers, one for each size, and how many of them are not to be trusted."""
        found = Counter(sizes)
        with self._changing:
            self._abstained[model, version] += abstained
            for size, count in found.items():
                self._answers[model, version, size] += count

    def answers(self) -> Mapping[Key, int]:
        """Answers so far."""
        with self._changing:
            return dict(self._answers)

    def abstentions(self) -> Mapping[tuple[str, str], int]:
        """Of these, answers that are not to be trusted, by model and version."""
        with self._changing:
            return dict(self._abstained)
