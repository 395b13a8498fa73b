"""Sums over cohorts, exchange by exchange: keys and shares, masked answers, and the taking off of the masks.

What is agreed on with the plants is kept in memory for one run: a coordinator that resumes agrees on keys anew. A round
begins when every plant of a cohort has prepared for it; who drops out after that is survived as long as the threshold
of the cohort answers.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeVar

from models.cohorts.dealing import Cohorts
from models.cohorts.fixed_point import Words, word_count
from models.cohorts.sums import CohortSum
from services.auditing.questions import Question as SumQuestion
from services.auditing.request import AuditRequest
from services.contracts.history.run import SiteAnswer
from services.contracts.problems.noise import CohortNoise
from services.contracts.wire.masking import (
    MaskedWords,
    MaskingCohort,
    MaskingError,
    MaskingTask,
    MaskKey,
    MaskKeys,
    OpenRounds,
    Preparation,
    SealedOpenings,
    Unmasked,
    Unmasking,
    UnmaskRequest,
    threshold_of,
)
from services.contracts.wire.messages import Kind
from services.coordinator.asking.openings import SummedWords, SumRecords, sum_question, unbound
from services.coordinator.asking.poll import Poll, Question, poll
from services.coordinator.asking.ports import SiteTransport
from services.coordinator.round_loop.keys_in_use import KeysInUse
from services.coordinator.round_loop.sum_accounts import SumAccounts
from services.masking.keys import check_mask_key
from services.masking.unmasking import UnfitSharesError, deliveries, unmask_request, unmasked_sum, unopened

LOG = logging.getLogger("ballast.coordinator")
FALSE_SHARES = "false_shares"
"""Code of the account of a plant whose shares of a secret do not fit what it committed itself to."""
BYTES_A_PEER = 800  # of base 64: sealed shares, the pair's key, a digest, a name; 500 are used
BYTES_A_WORD = 11  # 8 in base 64
BYTES_A_WORD_OPENED = 20  # 8 in base 64, in a box, in base 64 again: 14.3; and its names

PartT = TypeVar("PartT")


@dataclass
class _Agreed:
    """What holds with one cohort: its keys, and who has prepared for which round."""

    cohort: MaskingCohort
    keys: Mapping[str, MaskKey]
    number: int = -1
    prepared: dict[str, Preparation] = field(default_factory=dict)


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
        self._noise, self._live = noise, live
        self._cohorts, self._keys, self._shares = cohorts, dict(keys), dict(shares)
        self._in_use = KeysInUse(keys)
        self._transport, self._deadline, self._threshold = transport, deadline_seconds, threshold
        self._auditor, self._every_round = auditor, audit_every_round
        self.records = SumRecords()
        self._agreed: dict[str, _Agreed] = {}
        self._accounts = SumAccounts()
        self._slowest = 0.0
        self._lost: tuple[str, ...] = ()

    @property
    def cohorts(self) -> Cohorts:
        """Plants by cohort."""
        return self._cohorts

    async def prepare(self, question: Question) -> tuple[SiteAnswer, ...]:
        """Agree on keys where that is due, and have everybody prepare for the question's round.

        The accounts of the plants that did not: the round may begin without them, where the threshold of each cohort
        is there, or be prepared once more.
        """
        self._accounts, self._slowest = SumAccounts(), 0.0
        due = [name for name in self._cohorts if not self._ready(name, question.round)]
        if due:
            await self._agree(question, due)
        prepared = {site for each in self._agreed.values() for site in each.prepared}
        away = [site for members in self._cohorts.values() for site in members if site not in prepared]
        return self._accounts.of(away)

    async def gather(self, question: Question, next_round: int | None) -> Summed:
        """Sums of the answers to the question, which every plant was to prepare for; the next round is prepared too."""
        self._lost = ()
        running = {name: self._agreed[name] for name in self._cohorts if self._enough(name)}
        tasks = {
            name: deliveries(each.cohort, each.number, each.prepared) for name, each in running.items()
        }
        said = await self._ask(
            question, {site: task for each in tasks.values() for site, task in each.items()}, question.kind,
            most=BYTES_A_WORD * word_count(question.shapes),
        )
        size = 8 * word_count(question.shapes)
        masked = {name: self._of_size(_parts(said, tasks[name], MaskedWords), size) for name in running}
        questions = {name: sum_question(question, each.cohort) for name, each in running.items()} if (
            self._auditor and question.kind == "round"
        ) else {}
        for name, asked_of in questions.items():
            masked[name] = self._bound(running[name], asked_of, masked[name])
        requests = {name: asked for name in running if (asked := self._request(name, masked[name])) is not None}
        unmasking = {
            site: Unmasking(run_id=question.run_id, request=asked, next_round=next_round)
            for asked in requests.values() for site in asked.answered
        }
        told = await self._ask(question, unmasking, "unmask", account=False)
        sums: dict[str, CohortSum] = {}
        for name, asked in requests.items():
            parts = _parts(told, asked.answered, Unmasked)
            words = self._unmasked(name, asked, masked[name], parts)
            if words is None:
                self._accounts.in_debt(asked.answered, told)
                continue
            if name in questions:
                sent = {site: masked[name][site] for site in asked.answered}
                self.records.keep(name, SummedWords(self._agreed[name].cohort, questions[name], sent, words))
            sums[name] = CohortSum(words, len(asked.answered) == len(self._cohorts[name]), asked.answered)
            self._prepared(name, next_round, {site: each.preparation for site, each in parts.items()})
        for name in self._cohorts.keys() - sums.keys():
            self._agreed.pop(name, None)
        return Summed(sums, self._accounts.of(), self._slowest, self._lost)

    async def opened(self, question: Question, name: str, request: AuditRequest) -> dict[str, SealedOpenings]:
        """What the plants of a cohort that stand in a request seal for the auditor, of those that do."""
        task = OpenRounds(run_id=question.run_id, request=request.model_dump_json().encode())
        asked = {site: task for site in sorted({site for each in request.rounds for site in each.answered})}
        most = opened_bytes(len(request.rounds), word_count(question.shapes), len(asked))
        return _parts(await self._ask(question, asked, "open", most=most, account=False), asked, SealedOpenings)

    def forget(self) -> None:
        """Agree on all keys anew."""
        self._agreed.clear()

    async def _agree(self, question: Question, due: Sequence[str]) -> None:
        wanted, said = await self._ask_to_agree(question, due)
        if self._in_use.turn(said.answers):
            wanted, said = await self._ask_to_agree(question, due)
        keys: dict[str, dict[str, MaskKey]] = {}
        for name, cohort in wanted.items():
            keys[name] = {}
            for site, key in _parts(said, cohort.members, MaskKey).items():
                try:
                    check_mask_key(cohort, site, key)
                    keys[name][site] = key
                except MaskingError as error:
                    self._accounts.reject(site, "bad_mask_key", str(error))
        enough = {name: each for name, each in keys.items() if len(each) >= wanted[name].threshold}
        tasks = {
            site: MaskKeys(run_id=question.run_id, round=question.round, keys=each)
            for each in enough.values() for site in each
        }
        said = await self._ask(question, tasks, "prepare")
        for name in due:
            self._agreed.pop(name, None)
            if name in enough:
                self._agreed[name] = _Agreed(wanted[name], enough[name])
                self._prepared(name, question.round, _parts(said, enough[name], Preparation))

    async def _ask_to_agree(self, question: Question, due: Sequence[str]) -> tuple[dict[str, MaskingCohort], Poll]:
        """Cohorts as they are asked to agree on keys, and what their plants say."""
        wanted = {name: self._wanted(question.run_id, name) for name in due}
        asked = {site: cohort for cohort in wanted.values() for site in cohort.members}
        return wanted, await self._ask(question, asked, "agree")

    def _wanted(self, run_id: str, name: str) -> MaskingCohort:
        members = self._cohorts[name]
        threshold = threshold_of(len(members), self._threshold)
        return MaskingCohort(
            run_id=run_id, name=name, keys=self._in_use.of(members), threshold=threshold,
            shares={site: self._shares[site] for site in members}, agreement=secrets.randbelow(2**53),
            auditor=self._auditor, audit_every_round=self._every_round, noise=self._noise.get(name),
        )

    def _prepared(self, name: str, number: int | None, said: Mapping[str, Preparation | None]) -> None:
        """Note who has prepared for a round, for all that have keys."""
        agreed = self._agreed[name]
        agreed.number = -1 if number is None else number
        agreed.prepared = {
            site: each for site, each in said.items()
            if each is not None and each.round == number and not agreed.keys.keys() - each.sealed.keys() - {site}
        }

    def _ready(self, name: str, number: int) -> bool:
        agreed = self._agreed.get(name)
        return agreed is not None and agreed.number == number and len(agreed.prepared) == len(self._cohorts[name])

    def _enough(self, name: str) -> bool:
        return name in self._agreed and len(self._agreed[name].prepared) >= self._agreed[name].cohort.threshold

    def _request(self, name: str, masked: Mapping[str, MaskedWords]) -> UnmaskRequest | None:
        agreed = self._agreed[name]
        try:
            return unmask_request(agreed.cohort, agreed.number, agreed.prepared, masked)
        except MaskingError as error:
            LOG.warning("a sum is lost: %s", error)
            return None

    def _unmasked(
        self, name: str, asked: UnmaskRequest, masked: Mapping[str, MaskedWords], told: Mapping[str, Unmasked]
    ) -> Words | None:
        agreed, revealed = self._agreed[name], {site: each.revealed for site, each in told.items()}
        try:
            words = unmasked_sum(agreed.cohort, asked, agreed.prepared, masked, revealed)
            for holder, dealer in unopened(asked, revealed):
                said = "%s says that what %s sealed for it in round %d does not open; one of the two lies"
                LOG.warning(said, holder, dealer, asked.round)
            return words
        except UnfitSharesError as error:
            self._accounts.reject(error.site, FALSE_SHARES, str(error))
            return None
        except MaskingError as error:
            LOG.warning("a sum is lost: %s", error)
            self._lost += (str(error),)
            return None

    async def _ask(
        self, question: Question, tasks: Mapping[str, MaskingTask], kind: Kind, *, most: int = 0, account: bool = True
    ) -> Poll:
        """One exchange with the plants that have a task; their accounts are added up over the exchanges of a round."""
        arrays = question.arrays if kind == question.kind else {}
        largest = max((len(members) for members in self._cohorts.values()), default=0)
        asked = replace(
            question, kind=kind, arrays=arrays, masking=tasks, most_bytes=most + BYTES_A_PEER * largest
        )
        keys = {site: self._keys[site] for site in tasks}
        outcome = await poll(asked, keys, self._transport, self._deadline, self._live)
        self._slowest += outcome.slowest_seconds
        self._accounts.add(outcome.answers, keep_status=not account)
        return outcome

    def _of_size(self, masked: dict[str, MaskedWords], size: int) -> dict[str, MaskedWords]:
        """Answers of ``size`` bytes; the others are rejected, and their plants count as absent."""
        for site in [site for site, each in masked.items() if len(each.words) != size]:
            reason = f"it masked {len(masked[site].words)} bytes, {size} were due"
            self._accounts.reject(site, "wrong_dimension", reason)
        return {site: each for site, each in masked.items() if len(each.words) == size}

    def _bound(
        self, at: _Agreed, question: SumQuestion, masked: dict[str, MaskedWords]
    ) -> dict[str, MaskedWords]:
        """Answers that their plants committed themselves to; the others are rejected, and count as absent."""
        lacking = unbound(at.cohort, question, at.prepared, masked)
        for site, reason in lacking.items():
            self._accounts.reject(site, "not_committed", reason)
        return {site: each for site, each in masked.items() if site not in lacking}


def opened_bytes(rounds: int, words: int, plants: int) -> int:
    """Bytes, at most, in which a plant of a cohort opens so many rounds of so many words."""
    return rounds * (BYTES_A_WORD_OPENED * words + BYTES_A_PEER * plants)


def _parts(outcome: Poll, sites: Mapping[str, object] | Sequence[str], part: type[PartT]) -> dict[str, PartT]:
    """What the sites said under this type."""
    found = {site: outcome.updates[site].masking for site in sites if site in outcome.updates}
    return {site: each for site, each in found.items() if isinstance(each, part)}
