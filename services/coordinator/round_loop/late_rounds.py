"""Rounds in which nobody sets the pace: late answers count in the round in which they come.

Which question each site works on stands in the method's state and is committed with the round. Every answer is held to
the question that it is to: site, run, round, digest of the task, signature, shapes, numbers. It enters once: with it
the question is closed, and the plant's next one is another.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from models.cuts.contradiction import Contradiction
from services.contracts.history.run import Exchange, RoundRecord, SiteAnswer
from services.contracts.wire.messages import SiteUpdate
from services.coordinator.asking.asked_apart import asked_apart
from services.coordinator.asking.open_questions import OpenQuestions
from services.coordinator.asking.poll import Poll, Question, account
from services.coordinator.round_loop.run_parts import Kept, RunParts, shortage, sites_needed
from services.coordinator.round_loop.summed_rounds import RETRY_SECONDS
from services.coordinator.run_state.copies import alike, left_out
from services.coordinator.run_state.evaluation import Evaluation
from services.coordinator.run_state.run_errors import TooFewSitesError
from services.coordinator.run_state.training_state import Training
from services.process.tracing import span

LOG = logging.getLogger("ballast.coordinator")
Without = Callable[[Training, Sequence[SiteAnswer]], Training]
Prove = Callable[[Training, Poll, Mapping[str, Contradiction], int], dict[str, bytes]]


@dataclass
class _Come:
    """What has come in a round so far, by site: accounts, updates, and the frames of these."""

    answers: dict[str, SiteAnswer] = field(default_factory=dict)
    updates: dict[str, SiteUpdate] = field(default_factory=dict)
    exchanges: dict[str, Exchange] = field(default_factory=dict)

    def poll(self) -> Poll:
        """As of a round that waits for all."""
        return Poll(self.updates, tuple(self.answers.values()), 0.0, self.exchanges)

    def forget(self, sites: Collection[str]) -> None:
        """Leave out sites that the run goes on without."""
        for of_site in (self.answers, self.updates, self.exchanges):
            for site in sites:
                of_site.pop(site, None)


class LateRounds:
    """Asks the idle sites, and takes what comes of them and of those that were at work."""

    def __init__(self, parts: RunParts, without: Without, prove: Prove) -> None:
        """``without`` lets a run go on without sites, ``prove`` makes the evidence against them."""
        self._parts, self._without, self._prove = parts, without, prove
        self._open = OpenQuestions()

    async def end(self) -> None:
        """Wait for nobody any longer."""
        await self._open.drop([site for site, _ in self._open.items()])

    async def round(self, at: Training, judged: Evaluation | None = None) -> tuple[Training, RoundRecord, Kept]:
        """One round: over when it has enough answers and none that cannot be true."""
        loop = asyncio.get_running_loop()
        started, began, waited = loop.time(), datetime.now(UTC), 0.0
        excluded: list[SiteAnswer] = []
        evidence: dict[str, bytes] = {}
        come = _Come()
        if judged is not None:
            excluded, evidence = list(judged.convicted), dict(judged.evidence)
            at = await self._going_on_without(at, excluded, come)
        while True:
            asked_at = loop.time()
            silent = await self._gathered(at, come)
            waited += loop.time() - asked_at
            outcome = come.poll()
            answers = {site: update.arrays for site, update in come.updates.items()}
            at = at.held_to(answers)
            contradictions = at.contradictions(answers)
            found = at.convicted(outcome, contradictions)
            if not found:
                found, proofs = await self._copied(at, outcome)
                evidence |= proofs
            if not found:
                break
            for site, each in contradictions.items():
                question = come.answers[site].question or at.number
                evidence |= self._prove(at, outcome, {site: each}, question)
            excluded += found
            at = await self._going_on_without(at, found, come)
        due = {site: each for site, each in self._open.items() if site in names_of(at)}
        with span("server step", run_id=at.run.run_id, round=at.number):
            at = at.stepped(answers, due, silent)
        now = loop.time()
        works = tuple(
            SiteAnswer(
                site_id=site, status="open", code="open", seconds=now - each.since,
                question=each.question.round if each.question.round < at.number else 0,
                reason=f"it works on the question of round {each.question.round}",
            )
            for site, each in due.items()
        )
        accounts = (*excluded, *come.answers.values(), *works)
        return at, at.record(began, loop.time() - started, waited, accounts), Kept(come.exchanges, evidence)

    async def _going_on_without(self, at: Training, sites: Sequence[SiteAnswer], come: _Come) -> Training:
        names = [each.site_id for each in sites]
        await self._open.drop(names)
        come.forget(names)
        return self._without(at, sites)

    async def _gathered(self, at: Training, come: _Come) -> set[str]:
        """Ask, wait and admit until something has come; the sites that enter the upper bound by their cuts.

        ``TooFewSitesError`` where fewer sites than the plan needs answer or are at work for the plan's patience.
        """
        run, loop = at.run, asyncio.get_running_loop()
        rule, keys = run.plan.waiting, self._parts.keys_of(at.run)
        if rule is None:
            raise RuntimeError("the plan does not say how long to wait")
        told = at.server.told_rounds(at.state, at.problem)
        far = {site for site in told if at.number - told[site] >= rule.furthest_behind}
        weights = {site.site_id: site.weight for site in run.members}
        deadline = loop.time() + run.plan.absence_patience_seconds
        asked = set[str]()
        while True:
            asked |= self._ask(at, keys, come)  # who has another try is one of all that the round asked
            await self._open.enough(rule, asked, weights, far)
            self._admit(at, come)
            failed = {site for site, each in come.answers.items() if site not in come.updates}
            silent = failed | (weights.keys() - keys)  # who works on as its key is taken away is both
            there, over = len(names_of(at) - silent), loop.time() >= deadline
            if any(each.status == "excluded" for each in come.answers.values()):
                return set()
            if there >= sites_needed(run.plan) and (come.updates or over or far & failed):
                before = at.server.away(at.state, at.problem)
                given_up = silent if over and not come.updates else silent & far
                return given_up | (before - come.updates.keys())
            if over:
                question = self._parts.question(run, "round", at.number, {}, at.shapes)
                raise TooFewSitesError(shortage(run, question, come.poll()))
            self._parts.check_cancelled(run)
            await asyncio.sleep(RETRY_SECONDS)

    def _ask(self, at: Training, keys: Mapping[str, str], come: _Come) -> set[str]:
        """Ask who is idle and has not answered in this round; the sites that were asked the round's own question.

        A site with an open question that nobody waits for, after a resume or a failure, is asked that one again.
        """
        server, run = at.server, at.run
        messages, open_rounds = server.messages(at.state, at.problem), server.open_rounds(at.state, at.problem)
        wanted = open_rounds.keys() | server.asks_next(at.state, at.problem)
        questions: dict[int, Question] = {}
        asked = set()
        for site in keys:
            if site not in wanted or site in self._open or site in come.updates:
                continue
            number = open_rounds.get(site, at.number)
            if number not in questions:
                questions[number] = self._parts.question(run, "round", number, messages, at.shapes)
            come.answers.pop(site, None)  # it failed in this round, and has another try
            self._open.ask(site, questions[number], self._parts.transport, run.plan.round_deadline_seconds)
            asked |= {site} if number == at.number else set()
        return asked

    def _admit(self, at: Training, come: _Come) -> None:
        for site, (each, raw) in self._open.taken().items():
            answer, update = account(each.question, site, self._parts.keys.get(site, ""), each.frame, raw)
            late = each.question.round < at.number
            if answer.status == "rejected":
                LOG.warning("run %s: an answer of %s is rejected: %s", at.run.run_id, site, answer.reason)
            come.answers[site] = answer.model_copy(update={"question": each.question.round}) if late else answer
            if update is not None and raw.frame is not None:
                come.updates[site], come.exchanges[site] = update, (each.frame, raw.frame)

    async def _copied(self, at: Training, outcome: Poll) -> tuple[list[SiteAnswer], dict[str, bytes]]:
        """Who of two sites that tell the same is left out, with evidence; nobody while one of them is at work."""
        pair = alike(at)
        if pair is None or any(site in self._open or site not in outcome.updates for site in pair):
            return [], {}
        messages = at.server.messages(at.state, at.problem)
        question = self._parts.question(at.run, "round", at.number, messages, at.shapes)
        proofs = await asked_apart(
            question, pair, self._parts.keys_of(at.run), self._parts.transport, at.run.plan.round_deadline_seconds
        )
        return ([], {}) if proofs is None else (left_out(outcome, at.run.run_id, pair, proofs), proofs)


def names_of(at: Training) -> set[str]:
    """Sites that the run still has."""
    return {site.site_id for site in at.run.members}
