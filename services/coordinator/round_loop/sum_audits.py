"""Sums that contradict one another, or that an auditor is to see: what the plants of a cohort open of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping

from models.basics import Arrays
from models.cohorts.fixed_point import word_count
from services.auditing.request import AuditRequest
from services.contracts.history.run import Run
from services.coordinator.asking.openings import is_false
from services.coordinator.asking.poll import Question
from services.coordinator.round_loop.cohort_sums import CohortSums
from services.coordinator.round_loop.mask_exchange import opened_bytes
from services.coordinator.run_state.run_errors import ContradictingAnswersError
from services.coordinator.run_state.training_state import Training

KeepCase = Callable[[str, str, bytes], None]
"""Keeps what an auditor is to get: of which run, of which cohort."""

LOG = logging.getLogger("ballast.coordinator")
LARGEST_OPENING = 1_000_000
"""Bytes; a plant that kept its policy as it was written lets out 1 MiB in a message."""


class SumAudits:
    """The sums of one run as evidence. ``pause`` waits between two questions, and raises where nobody wants the run."""

    def __init__(
        self, run: Run, sums: CohortSums, pause: Callable[[], Awaitable[None]], keep_case: KeepCase
    ) -> None:
        self._run, self._sums, self._pause, self._keep_case = run, sums, pause, keep_case

    async def check(self, at: Training, question: Question, answers: Mapping[str, Arrays]) -> None:
        """Raise :class:`ContradictingAnswersError` where the sums of a cohort contradict one another.

        With an auditor its plants open them first.
        """
        said = []
        for cohort, found in at.held_to(answers).contradictions(answers).items():
            plants = ", ".join(self._sums.cohorts[cohort])
            lie = f"some plant of {plants} lied, or its data changed: their sums say {found}"
            if self._run.plan.auditor is None:
                raise ContradictingAnswersError(lie)
            request = self._sums.records.request(
                cohort, self._run.plan.auditor, (found.risk_round, found.cut_round)
            )
            if request is None:
                said.append(f"{cohort} contradicts itself, nothing to open: masks were agreed on anew since; {lie}")
            elif is_false(request):
                count, of = await self._opened(question, cohort, request), len(self._sums.cohorts[cohort])
                said.append(
                    f"{cohort} contradicts itself: {count} of {of} plants opened both rounds to the auditor, "
                    f"`ballast evidence save {self._run.run_id} {cohort} FILE` writes what to hand over; {lie}"
                )
        if said:
            raise ContradictingAnswersError("; ".join(said))

    async def open_every_round(self, at: Training, question: Question) -> None:
        """Have the plants open to the auditor all rounds that the bounds rest on; ``question`` is like theirs.

        Keeps a case for each cohort of which that can be done; of another none is kept, and the version's audit stays
        due: a round was lost or its masks were agreed on anew since, or what is opened is too large for a message.
        """
        words = word_count(question.shapes)
        for cohort, members in self._sums.cohorts.items():
            numbers = at.rounds_of(cohort)
            request = self._sums.records.every_round(cohort, self._run.plan.auditor or "", numbers)
            if request is None:
                LOG.warning("%s opens nothing to the auditor: not all of its rounds are kept", cohort)
            elif opened_bytes(len(numbers), words, len(members)) > LARGEST_OPENING:
                LOG.warning("%s opens nothing to the auditor: %d rounds do not fit a message", cohort, len(numbers))
            else:
                count = await self._opened(question, cohort, request)
                LOG.info("%d of %d plants of %s opened every round to the auditor", count, len(members), cohort)

    async def _opened(self, question: Question, cohort: str, request: AuditRequest) -> int:
        """Keep the case with what the plants open within the plan's patience; how many did."""
        deadline = time.monotonic() + self._run.plan.absence_patience_seconds
        wanted = {site for each in request.rounds for site in each.answered}
        sealed = await self._sums.opened(question, cohort, request)
        while wanted - sealed.keys() and time.monotonic() < deadline:
            await self._pause()
            sealed |= await self._sums.opened(question, cohort, request)
        case = self._sums.records.case(cohort, request, sealed)
        self._keep_case(self._run.run_id, cohort, case.model_dump_json().encode())
        return len(sealed)
