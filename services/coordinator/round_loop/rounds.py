"""One round of a run, on single answers or on sums: asked until it has enough answers and none that cannot be true."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from models.cuts.contradiction import AT_THE_END, Contradiction
from services.contracts.history.run import ExcludedSite, RoundRecord, SiteAnswer
from services.contracts.plans.plan_problem import check_problem
from services.coordinator.asking.asked_apart import asked_apart
from services.coordinator.asking.poll import Poll
from services.coordinator.round_loop.late_rounds import LateRounds
from services.coordinator.round_loop.run_parts import Kept, RunParts, sites_needed
from services.coordinator.round_loop.summed_rounds import RoundOnSums
from services.coordinator.run_state.copies import alike, left_out
from services.coordinator.run_state.evaluation import Evaluation
from services.coordinator.run_state.run_errors import TooFewSitesError
from services.coordinator.run_state.terms import exclusions_note
from services.coordinator.run_state.training_state import Training
from services.process.tracing import span
from services.verification.contradiction import write_evidence

LOG = logging.getLogger("ballast.coordinator")


class Rounds:
    """Asks the questions of a run's method, and steps it."""

    def __init__(self, parts: RunParts) -> None:
        self._parts = parts
        self._late = LateRounds(parts, self.without, self.evidence)

    async def round(self, at: Training, judged: Evaluation | None = None) -> tuple[Training, RoundRecord, Kept]:
        """One round; nothing is committed yet."""
        if at.run.plan.reveal == "sums":
            return await self._round_on_sums(at)
        return await (self._round_on_answers if at.run.plan.waiting is None else self._late.round)(at, judged)

    async def end(self) -> None:
        """Let go of what is still asked of sites."""
        await self._late.end()

    async def _round_on_sums(self, at: Training) -> tuple[Training, RoundRecord, Kept]:
        """One round on sums, asked of fewer plants where some are away for longer than the plan's patience."""
        started, began = time.perf_counter(), datetime.now(UTC)
        excluded: list[SiteAnswer] = []
        while True:
            messages = at.server.messages(at.state, at.problem)
            question = self._parts.question(at.run, "round", at.number, messages, at.shapes)
            gone = self._parts.gone(at.run)
            found = RoundOnSums({}, away=gone) if gone else await self._parts.summed(at.run).round(at, question)
            if not found.away:
                break
            excluded += found.away
            at = self.without(at, found.away)
        with span("server step", run_id=at.run.run_id, round=at.number):
            at = at.held_to(found.answers).stepped(found.answers)
        accounts = (*excluded, *found.accounts)
        return at, at.record(began, time.perf_counter() - started, found.slowest_seconds, accounts), Kept({}, {})

    async def _round_on_answers(
        self, at: Training, judged: Evaluation | None = None
    ) -> tuple[Training, RoundRecord, Kept]:
        """One round: asked until it has enough answers and none that cannot be true."""
        started, began = time.perf_counter(), datetime.now(UTC)
        excluded: list[SiteAnswer] = []
        evidence: dict[str, bytes] = {}
        if judged is not None:
            excluded, evidence = list(judged.convicted), dict(judged.evidence)
            at = self.without(at, excluded)
        while True:
            messages = at.server.messages(at.state, at.problem)
            question = self._parts.question(at.run, "round", at.number, messages, at.shapes)
            outcome = await self._parts.until_enough(at.run, question, self._parts.keys_of(at.run))
            answers = {site: update.arrays for site, update in outcome.updates.items()}
            at = at.held_to(answers)
            contradictions = at.contradictions(answers)
            found = at.convicted(outcome, contradictions)
            if not found and (pair := alike(at)) is not None:
                proofs = await asked_apart(
                    question, pair, self._parts.keys_of(at.run), self._parts.transport,
                    at.run.plan.round_deadline_seconds,
                )
                if proofs is not None:
                    found, evidence = left_out(outcome, at.run.run_id, pair, proofs), evidence | proofs
            if not found:
                break
            evidence |= self.evidence(at, outcome, contradictions, at.number)
            excluded += found
            at = self.without(at, found)
        with span("server step", run_id=at.run.run_id, round=at.number):
            at = at.stepped(answers)
        accounts = (*excluded, *outcome.answers)
        record = at.record(began, time.perf_counter() - started, outcome.slowest_seconds, accounts)
        return at, record, Kept(outcome.exchanges, evidence)

    def evidence(
        self, at: Training, outcome: Poll, found: Mapping[str, Contradiction], new: int = AT_THE_END
    ) -> dict[str, bytes]:
        """Evidence file against each site of a contradiction; none where an answer is of before frames were kept.

        Nor of a site whose key was taken away meanwhile. ``new``: number of the exchange that the outcome is of.
        """
        files: dict[str, bytes] = {}
        for site, each in found.items():
            frames = [
                outcome.exchanges.get(site) if number == new
                else self._parts.store.get_exchange(at.run.run_id, number, site)
                for number in dict.fromkeys((each.risk_round, each.cut_round))
            ]
            kept = [frame for frame in frames if frame is not None]
            if (key := self._parts.keys.get(site)) and len(kept) == len(frames):
                files[site] = write_evidence(at.run.run_id, site, key, kept)
        return files

    def without(self, at: Training, convicted: Sequence[SiteAnswer]) -> Training:
        """Training that goes on without these sites; :class:`TooFewSitesError` where too few are left."""
        for answer in convicted:
            said = "run %s goes on without site %s: %s"
            LOG.warning(said, at.run.run_id, answer.site_id, answer.reason, extra={"site_id": answer.site_id})
        left_out = [ExcludedSite.of_record(answer, round=at.number) for answer in convicted]
        run = at.run.model_copy(update={"excluded": (*at.run.excluded, *left_out)})
        if len(run.members) < sites_needed(run.plan):
            needs = f"{len(run.members)} of the {sites_needed(run.plan)} sites that the plan needs are left"
            raise TooFewSitesError(f"{needs}: {exclusions_note(run)}")
        check_problem(run.plan, self._parts.asset_type, len(run.members))
        fewer = self._parts.training(run)
        if run.plan.reveal == "sums":
            return replace(fewer, number=at.number, state=at.state_of_cohorts(fewer))
        places = {site.site_id: place for place, site in enumerate(at.run.members)}
        kept = [places[site.site_id] for site in run.members]
        return replace(fewer, number=at.number, state=at.server.of_sites(at.state, fewer.problem, kept))
