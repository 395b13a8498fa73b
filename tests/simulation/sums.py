"""Sums that came off their masks, held to what the plants had put under them; only a simulation can know both."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from services.coordinator.round_loop import cohort_sums
from services.site_agent.door.masked_runs import MaskedRuns
from tests.simulation.world import World


class Sums:
    """Watches the masks going on and coming off."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._under: dict[str, Any] = {}
        self._last: tuple[Any, tuple[str, ...]] = (None, ())
        self.checked = 0

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Look at every mask while inside."""
        module: Any = cohort_sums
        mask, unmasked_sum, made = MaskedRuns.mask, module.unmasked_sum, module.CohortSum

        def masking(runs: MaskedRuns, delivery: Any, words: Any, question: Any = None) -> Any:
            masked = mask(runs, delivery, words, question)
            self._under[hashlib.sha256(masked.words).hexdigest()] = words
            return masked

        def unmasking(cohort: Any, asked: Any, prepared: Any, masked: Mapping[str, Any], revealed: Any) -> Any:
            words = unmasked_sum(cohort, asked, prepared, masked, revealed)
            self._check(words, [masked[site] for site in asked.answered])
            self._last = (words, tuple(asked.answered))
            return words

        def making(words: Any, complete: bool, answered: tuple[str, ...]) -> Any:
            if words is not self._last[0] or tuple(answered) != self._last[1]:
                self._world.breach(f"sums: a sum is said to be of {answered}, it is of {self._last[1]}")
            return made(words, complete, answered)

        MaskedRuns.mask = masking  # type: ignore[assignment]
        module.unmasked_sum, module.CohortSum = unmasking, making
        try:
            yield
        finally:
            MaskedRuns.mask = mask
            module.unmasked_sum, module.CohortSum = unmasked_sum, made

    def _check(self, words: Any, masked: list[Any]) -> None:
        under = [self._under.get(hashlib.sha256(each.words).hexdigest()) for each in masked]
        known = [each for each in under if each is not None]
        if len(known) < len(under):
            self._world.breach("sums: masks came off words that no plant had put under them")
        elif not np.array_equal(words, np.sum(known, axis=0, dtype=np.uint64)):
            self._world.breach("sums: a sum is not that of the plants that it names")
        self.checked += 1
