"""Questions that sites still work on, and for how long a round waits for whom.

A question is asked once and its one answer is taken once. What is under way is in memory alone: which question is open
at which site stands in the method's state, so after a resume the same question is asked again, and an agent that gets
it twice gives the same answer.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from services.contracts.plans.waiting import Waiting
from services.contracts.wire.codec import encode
from services.coordinator.asking.poll import Question, task_of
from services.coordinator.asking.ports import RawAnswer, SiteTransport


@dataclass(frozen=True)
class AtWork:
    """A question under way to one site, by the clock of the event loop."""

    question: Question
    frame: bytes
    job: asyncio.Task[dict[str, RawAnswer]]
    since: float


class OpenQuestions:
    """What is under way, by site id: at most one question each."""

    def __init__(self) -> None:
        self._open: dict[str, AtWork] = {}
        self._took: dict[str, float] = {}  # seconds that each site took last; a hint, lost with the process

    def __contains__(self, site: str) -> bool:
        return site in self._open

    def __len__(self) -> int:
        return len(self._open)

    def items(self) -> list[tuple[str, AtWork]]:
        """Sites with their questions."""
        return list(self._open.items())

    def ask(self, site: str, question: Question, transport: SiteTransport, deadline_seconds: float) -> None:
        """Ask an idle site; the answer is taken by :meth:`taken`. :class:`RuntimeError` where it works on one."""
        if site in self._open:
            raise RuntimeError(f"site {site} works on a question, another is not asked")
        frame = encode(task_of(question, site))
        job = asyncio.ensure_future(transport.ask({site: frame}, deadline_seconds))
        since = asyncio.get_running_loop().time()
        job.add_done_callback(lambda done: self._took.update({site: done.get_loop().time() - since}))
        self._open[site] = AtWork(question, frame, job, since)

    def taken(self) -> dict[str, tuple[AtWork, RawAnswer]]:
        """Answers, or failures, that have come since the last time, by site; their sites are idle then."""
        done = {site: each for site, each in self._open.items() if each.job.done()}
        for site in done:
            del self._open[site]
        return {site: (each, each.job.result()[site]) for site, each in done.items()}

    async def drop(self, sites: Collection[str]) -> None:
        """Wait for these sites no longer; what they answer is heard by nobody."""
        jobs = [self._open.pop(site).job for site in sites if site in self._open]
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)

    async def enough(
        self, rule: Waiting, asked: Collection[str], weights: Mapping[str, float], behind: Collection[str]
    ) -> None:
        """Wait until a round has enough: by the rule for who was ``asked`` in it, and for all too far ``behind``.

        A site that took longer the last time than the rule allows is not waited for by it. At least one answer, or
        failure, has come then, where any question is open.
        """
        loop = asyncio.get_running_loop()
        began, enough_at = loop.time(), math.inf
        paced = [site for site in asked if site not in rule.sites]
        total = sum(weights[site] for site in paced)
        while True:
            now, working = loop.time(), {site: each for site, each in self._open.items() if not each.job.done()}
            done = sum(weights[site] for site in paced if site not in working)
            if enough_at == math.inf and (not paced or done >= rule.enough * total):
                enough_at = now - began
            over = max(rule.seconds, rule.times * enough_at)
            if working and len(working) == len(self._open):
                until = math.inf
            else:
                until = max((
                    math.inf if site in behind else each.since + rule.sites[site] if site in rule.sites
                    else began + over if site in asked and self._took.get(site, 0.0) <= over else -math.inf
                    for site, each in working.items()
                ), default=-math.inf)
            if until <= now:
                return
            left = None if until == math.inf else until - now
            await asyncio.wait(
                [each.job for each in working.values()], timeout=left, return_when=asyncio.FIRST_COMPLETED
            )
