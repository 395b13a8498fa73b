"""Sums over cohorts, exchange by exchange: masked answers, and the taking off of the masks.

A round begins when every plant of a cohort has prepared for it; who drops out after that is survived as long as the
threshold of the cohort answers.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from models.cohorts.dealing import Cohorts
from models.cohorts.fixed_point import Words, word_count
from models.cohorts.sums import CohortSum
from services.auditing.questions import Question as SumQuestion
from services.auditing.request import AuditRequest
from services.contracts.history.run import SiteAnswer
from services.contracts.problems.noise import CohortNoise
from services.contracts.wire.masking import (
    MaskedWords,
    MaskingError,
    OpenRounds,
    SealedOpenings,
    Unmasked,
    Unmasking,
    UnmaskRequest,
)
from services.coordinator.asking.openings import SummedWords, SumRecords, sum_question, unbound
from services.coordinator.asking.poll import Question
from services.coordinator.asking.ports import SiteTransport
from services.coordinator.round_loop.mask_agreements import Agreed, AgreementTerms, MaskAgreements
from services.coordinator.round_loop.mask_exchange import BYTES_A_WORD, MaskExchange, opened_bytes, parts
from services.masking.unmasking import UnfitSharesError, deliveries, unmask_request, unmasked_sum, unopened

LOG = logging.getLogger("ballast.coordinator")
FALSE_SHARES = "false_shares"
"""Code of the account of a plant whose shares of a secret do not fit what it committed itself to."""


@dataclass(frozen=True)
class Summed:
    """Sums by cohort, of those whose masks came off; the account of every site; seconds waited for the slowest.

    ``lost``: why masks did not come off, where that is no single plant's.
    """

    sums: Mapping[str, CohortSum]
    answers: tuple[SiteAnswer, ...]
    slowest_seconds: float
    lost: tuple[str, ...] = ()


class CohortSums:
    """The sums of one run. ``keys`` are the public keys of its plants, ``shares`` theirs in their cohorts.

    ``records`` of the rounds are kept where there is an ``auditor``.
    """

    def __init__(
        self, cohorts: Cohorts, keys: Mapping[str, str], shares: Mapping[str, float], transport: SiteTransport,
        deadline_seconds: float, threshold: float, auditor: str = "", *, audit_every_round: bool = False,
        noise: Mapping[str, CohortNoise] = MappingProxyType({}), live: Mapping[str, str] | None = None,
    ) -> None:
        """``noise`` is that of each cohort; of one that has none there nothing is added to the words.

        ``live`` are the keys that hold when an answer is there; None: ``keys``.
        """
        self._cohorts, self._auditor = cohorts, auditor
        largest = max((len(members) for members in cohorts.values()), default=0)
        self._exchange = MaskExchange(keys, live, transport, deadline_seconds, largest)
        terms = AgreementTerms(cohorts, shares, threshold, noise, auditor, audit_every_round)
        self._agreements = MaskAgreements(terms, keys, self._exchange, live)
        self.records = SumRecords()
        self._lost: tuple[str, ...] = ()

    @property
    def cohorts(self) -> Cohorts:
        """Plants by cohort."""
        return self._cohorts

    async def prepare(self, question: Question) -> tuple[SiteAnswer, ...]:
        """Agree on keys where that is due, and have everybody prepare for the question's round.

        The accounts of the plants that did not: the round may begin without them, where the threshold of each cohort
        is there, or be prepared once more. Who answered and waits for others of its cohort is none of them.
        """
        self._exchange.begin()
        accounts = self._exchange.accounts.of(await self._agreements.prepare(question))
        return tuple(each for each in accounts if each.status != "accepted") or accounts

    async def gather(self, question: Question, next_round: int | None) -> Summed:
        """Sums of the answers to the question, which every plant was to prepare for; the next round is prepared too."""
        self._lost = ()
        running = self._agreements.running()
        tasks = {
            name: deliveries(each.cohort, each.number, each.prepared) for name, each in running.items()
        }
        said = await self._exchange.ask(
            question, {site: task for each in tasks.values() for site, task in each.items()}, question.kind,
            most=BYTES_A_WORD * word_count(question.shapes),
        )
        size = 8 * word_count(question.shapes)
        masked = {name: self._of_size(parts(said, tasks[name], MaskedWords), size) for name in running}
        questions = {name: sum_question(question, each.cohort) for name, each in running.items()} if (
            self._auditor and question.kind == "round"
        ) else {}
        for name, asked_of in questions.items():
            masked[name] = self._bound(running[name], asked_of, masked[name])
        requests = {name: asked for name in running if (asked := _request(running[name], masked[name])) is not None}
        unmasking = {
            site: Unmasking(run_id=question.run_id, request=asked, next_round=next_round)
            for asked in requests.values() for site in asked.answered
        }
        told = await self._exchange.ask(question, unmasking, "unmask", account=False)
        sums: dict[str, CohortSum] = {}
        for name, asked in requests.items():
            revealing = parts(told, asked.answered, Unmasked)
            words = self._unmasked(running[name], asked, masked[name], revealing)
            if words is None:
                self._exchange.accounts.in_debt(asked.answered, told)
                continue
            if name in questions:
                sent = {site: masked[name][site] for site in asked.answered}
                self.records.keep(name, SummedWords(running[name].cohort, questions[name], sent, words))
            sums[name] = CohortSum(words, len(asked.answered) == len(self._cohorts[name]), asked.answered)
            running[name].note(next_round, {site: each.preparation for site, each in revealing.items()})
        for name in self._cohorts.keys() - sums.keys():
            self._agreements.drop(name)
        return Summed(sums, self._exchange.accounts.of(), self._exchange.slowest_seconds, self._lost)

    async def opened(self, question: Question, name: str, request: AuditRequest) -> dict[str, SealedOpenings]:
        """What the plants of a cohort that stand in a request seal for the auditor, of those that do."""
        task = OpenRounds(run_id=question.run_id, request=request.model_dump_json().encode())
        asked = {site: task for site in sorted({site for each in request.rounds for site in each.answered})}
        most = opened_bytes(len(request.rounds), word_count(question.shapes), len(asked))
        return parts(await self._exchange.ask(question, asked, "open", most=most, account=False), asked, SealedOpenings)

    def forget(self) -> None:
        """Agree on all keys anew."""
        self._agreements.forget()

    def _unmasked(
        self, agreed: Agreed, asked: UnmaskRequest, masked: Mapping[str, MaskedWords], told: Mapping[str, Unmasked]
    ) -> Words | None:
        revealed = {site: each.revealed for site, each in told.items()}
        try:
            words = unmasked_sum(agreed.cohort, asked, agreed.prepared, masked, revealed)
            for holder, dealer in unopened(asked, revealed):
                said = "%s says that what %s sealed for it in round %d does not open; one of the two lies"
                LOG.warning(said, holder, dealer, asked.round)
            return words
        except UnfitSharesError as error:
            self._exchange.accounts.reject(error.site, FALSE_SHARES, str(error))
            return None
        except MaskingError as error:
            LOG.warning("a sum is lost: %s", error)
            self._lost += (str(error),)
            return None

    def _of_size(self, masked: dict[str, MaskedWords], size: int) -> dict[str, MaskedWords]:
        """Answers of ``size`` bytes; the others are rejected, and their plants count as absent."""
        for site in [site for site, each in masked.items() if len(each.words) != size]:
            reason = f"it masked {len(masked[site].words)} bytes, {size} were due"
            self._exchange.accounts.reject(site, "wrong_dimension", reason)
        return {site: each for site, each in masked.items() if len(each.words) == size}

    def _bound(
        self, at: Agreed, question: SumQuestion, masked: dict[str, MaskedWords]
    ) -> dict[str, MaskedWords]:
        """Answers that their plants committed themselves to; the others are rejected, and count as absent."""
        lacking = unbound(at.cohort, question, at.prepared, masked)
        for site, reason in lacking.items():
            self._exchange.accounts.reject(site, "not_committed", reason)
        return {site: each for site, each in masked.items() if site not in lacking}


def _request(agreed: Agreed, masked: Mapping[str, MaskedWords]) -> UnmaskRequest | None:
    try:
        return unmask_request(agreed.cohort, agreed.number, agreed.prepared, masked)
    except MaskingError as error:
        LOG.warning("a sum is lost: %s", error)
        return None
