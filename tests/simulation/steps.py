"""The coordinator's steps of a seed, watched, for what stands in no record.

That is whom a step with late answers did not wait for, and with which state a run began that goes on from another one.
What is kept of that must be of rows that are still the same (:mod:`tests.simulation.truth`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from services.coordinator.round_loop import run_parts
from services.coordinator.run_state.training_state import Training

_RUN_PARTS: Any = run_parts
Step = tuple[str, int, frozenset[str], frozenset[str]]
"""Run, round, who answered, who was still at work."""


class Steps:
    """Sites that each step let enter the upper bound by their cuts; states with which runs began, and whose cuts these
    hold."""

    def __init__(self) -> None:
        self.away: dict[Step, frozenset[str]] = {}
        self.begun: dict[str, Any] = {}
        self.reused: dict[str, tuple[str, ...]] = {}

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Look at every step while inside."""
        stepped, module = Training.stepped, _RUN_PARTS
        warmed = module.warmed

        def stepping(
            at: Training, answers: Mapping[str, Any], due: Collection[str] = (), away: Collection[str] = ()
        ) -> Training:
            self.away[at.run.run_id, at.number, frozenset(answers), frozenset(due)] = frozenset(away)
            return stepped(at, answers, due, away)

        def warming(*arguments: Any) -> Training:
            at: Training = warmed(*arguments)
            self.begun[at.run.run_id], self.reused[at.run.run_id] = at.state, at.reused
            return at

        Training.stepped, module.warmed = stepping, warming  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            Training.stepped, module.warmed = stepped, warmed  # type: ignore[method-assign]
