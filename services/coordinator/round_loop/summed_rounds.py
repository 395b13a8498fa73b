"""Rounds and evaluation of a run on sums: what the coordinator sees are cohorts, never a plant's own answer.

A round begins when every plant has prepared its masks. One that is away holds the run up for the plan's patience; then
the run goes on without it, and its cohort's evidence is dropped, for it spoke of other plants.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from models.basics import Arrays, FloatArray
from models.cohorts.dealing import Cohorts, cohort_shares
from models.cohorts.fixed_point import Words
from models.cohorts.noise import NoisePlan
from models.cohorts.sums import cohort_answers
from models.methods.catalogue import get_method
from models.problem import ServerProblem
from services.contracts.history.run import Run, SiteAnswer
from services.contracts.wire.masking import threshold_of
from services.coordinator.asking.poll import Question
from services.coordinator.asking.ports import SiteTransport
from services.coordinator.round_loop.cohort_sums import FALSE_SHARES, CohortSums, Summed
from services.coordinator.round_loop.sum_audits import KeepCase, SumAudits
from services.coordinator.run_state.evaluation import ScoresOnSums
from services.coordinator.run_state.noisy_sums import NoisyCohorts
from services.coordinator.run_state.refusals import is_final, who_and_why, without_answers
from services.coordinator.run_state.run_errors import TooFewSitesError
from services.coordinator.run_state.terms import cohorts_of
from services.coordinator.run_state.training_state import Training
from services.masking.scores import summed_scores

MOST_MISSED = 5
"""Rounds; a plant that is restarted misses one, and makes no masks for the next."""
_NO_MORE = frozenset({"noise_limit", FALSE_SHARES})
"""Codes of plants that the run goes on without at once: what they tell no more, or dealt to others, does not change."""
RETRY_SECONDS = 0.5  # a site that comes back is asked at once, one that does not costs two questions a second


@dataclass(frozen=True)
class RoundOnSums:
    """Answers by cohort with the accounts of the plants; or ``away``: plants that the run is to go on without."""

    answers: Mapping[str, Arrays]
    accounts: tuple[SiteAnswer, ...] = ()
    slowest_seconds: float = 0.0
    away: tuple[SiteAnswer, ...] = ()


class SummedRounds:
    """Asks the plants of one run for sums. ``check_cancelled`` raises where nobody wants the run any more."""

    def __init__(
        self, run: Run, problem: ServerProblem, keys: Mapping[str, str], transport: SiteTransport,
        check_cancelled: Callable[[Run], None], keep_case: KeepCase, noise: NoisePlan | None = None,
        live: Mapping[str, str] | None = None,
    ) -> None:
        """``problem`` is that of the plants; ``keys`` are their public keys; ``noise`` is the budget, or None.

        ``live`` are the keys that hold at any time; None: those that are given.
        """
        self._run, self._check_cancelled = run, check_cancelled
        cohorts = cohorts_of(run)
        shares = cohort_shares(problem, cohorts)
        self._noisy = NoisyCohorts.of(run, noise, problem, cohorts, shares)
        self._spent: tuple[SiteAnswer, ...] = ()
        self._missed: dict[str, int] = {}
        self._sums = CohortSums(
            cohorts, keys, shares, transport, run.plan.round_deadline_seconds, run.plan.sum_threshold,
            run.plan.auditor or "", audit_every_round=run.plan.audit == "every round",
            noise={} if self._noisy is None else self._noisy.noise, live=live,
        )
        self._audits = SumAudits(run, self._sums, self._pause, keep_case)

    @property
    def cohorts(self) -> Cohorts:
        """Plants by cohort."""
        return self._sums.cohorts

    async def round(self, at: Training, question: Question) -> RoundOnSums:
        """Ask ``question`` of every plant, whose arrays are by cohort, until a cohort's sum comes out.

        ``TooFewSitesError`` where none does for as long as the plan's patience lasts, or none can, for plants refused
        for good; ``ContradictingAnswersError`` where the sums of a cohort contradict one another; with an auditor its
        plants open them first.
        """
        asked = replace(question, arrays=self._by_site(question.arrays))
        if self._noisy is not None:
            asked = replace(asked, shapes=self._noisy.shapes())
        deadline = time.monotonic() + self._run.plan.absence_patience_seconds
        while True:
            away = self._spent or await self._prepared(asked, deadline)
            if away:
                return RoundOnSums({}, away=away)
            summed = await self._sums.gather(asked, at.number + 1)
            self._spent = tuple(_left_out(each) for each in summed.answers if each.code in _NO_MORE)
            self._spent += self._never_there(summed)
            answers = self._answers(summed, question)
            if answers:
                await self._audits.check(at, asked, answers)
                return RoundOnSums(answers, summed.answers, summed.slowest_seconds)
            final = self._in_vain(summed)
            if not self._spent and (final or time.monotonic() >= deadline):
                raise TooFewSitesError(self._lost(summed, asked.round, final=final))
            await self._pause()

    async def evaluate(self, question: Question) -> ScoresOnSums:
        """Scores of the cohorts; of those that prepared, and answered, in the first try."""
        asked = replace(question, arrays=self._by_site(question.arrays))
        await self._sums.prepare(asked)
        summed = await self._sums.gather(asked, None)
        self._sums.forget()
        scores = {name: summed_scores(each.words, question.shapes) for name, each in summed.sums.items()}
        complete = frozenset(name for name, each in summed.sums.items() if each.complete)
        return ScoresOnSums(scores, complete, summed.answers)

    async def open_every_round(self, at: Training, question: Question) -> None:
        """Have the plants open to the auditor all rounds that the bounds rest on; ``question`` is like theirs."""
        await self._audits.open_every_round(at, question)

    async def tune(self, question: Question) -> tuple[dict[str, Words], tuple[SiteAnswer, ...]]:
        """Sums of the words of every cohort, each complete, with the accounts.

        ``TooFewSitesError`` where they do not come out for as long as the plan's patience lasts.
        """
        asked = replace(question, arrays=self._by_site(question.arrays))
        deadline = time.monotonic() + self._run.plan.absence_patience_seconds
        while True:
            missing = await self._sums.prepare(asked)
            if not missing:
                summed = await self._sums.gather(asked, asked.round + 1)
                if all(name in summed.sums and summed.sums[name].complete for name in self.cohorts):
                    return {name: each.words for name, each in summed.sums.items()}, summed.answers
                missing = tuple(each for each in summed.answers if each.status != "accepted")
            if time.monotonic() >= deadline or any(map(is_final, missing)):
                raise without_answers(missing)
            self._sums.forget()
            await self._pause()

    def forget(self) -> None:
        """Agree on all keys anew."""
        self._sums.forget()

    async def _prepared(self, question: Question, deadline: float) -> tuple[SiteAnswer, ...]:
        """Have all plants prepare; the accounts of those that refuse for good, or have not when the deadline comes."""
        while away := await self._sums.prepare(question):
            if final := tuple(_left_out(each) for each in away if is_final(each)):
                return final
            if time.monotonic() >= deadline:
                waited = f"{self._run.plan.absence_patience_seconds:g} s"
                why = f"it made no masks for {waited}, and a run on sums waits for no plant longer: "
                return tuple(_left_out(each, why) for each in away)
            await self._pause()
        return ()

    def _answers(self, summed: Summed, question: Question) -> dict[str, Arrays]:
        if self._noisy is None:
            return cohort_answers(get_method(self._run.plan.method), summed.sums, question.shapes)
        points = {name: arrays["point"] for name, arrays in question.arrays.items()}
        return self._noisy.answers(summed.sums, points)

    def _by_site(self, arrays: Mapping[str, Arrays]) -> dict[str, Mapping[str, FloatArray]]:
        return {site: arrays[cohort] for cohort, members in self.cohorts.items() for site in members}

    async def _pause(self) -> None:
        self._check_cancelled(self._run)
        await asyncio.sleep(RETRY_SECONDS)

    def _never_there(self, summed: Summed) -> tuple[SiteAnswer, ...]:
        """Accounts of plants that made masks for so many rounds, one after the other, and answered none of them.

        Without it a run on sums proves nothing from above: it would ask all others to its last round in vain.
        """
        for each in summed.answers:
            self._missed[each.site_id] = 0 if each.status == "accepted" else self._missed.get(each.site_id, 0) + 1
        why = f"it made masks for {MOST_MISSED} rounds, one after the other, and answered none of them: "
        return tuple(
            _left_out(each, why) for each in summed.answers
            if self._missed[each.site_id] >= MOST_MISSED and each.code not in _NO_MORE
        )

    def _in_vain(self, summed: Summed) -> bool:
        """Whether so many plants refuse for good that no cohort has as many left as a sum needs."""
        refused = {each.site_id for each in summed.answers if is_final(each)}
        share = self._run.plan.sum_threshold
        return bool(refused) and all(
            len({*members} - refused) < threshold_of(len(members), share) for members in self.cohorts.values()
        )

    def _lost(self, summed: Summed, number: int, *, final: bool) -> str:
        missing = who_and_why(summed.answers)
        waited = "and none will" if final else f"within {self._run.plan.absence_patience_seconds:g} s"
        return (
            f"no cohort had the answers that a sum needs in round {number} {waited} "
            f"({missing or '; '.join(summed.lost) or 'the masks did not come off'})"
        )


def _left_out(answer: SiteAnswer, why: str = "") -> SiteAnswer:
    """Account of a plant that the run goes on without."""
    changed = {"code": answer.code or answer.status, "reason": why + (answer.reason or answer.status)}
    return answer.model_copy(update={"status": "excluded", **changed})
