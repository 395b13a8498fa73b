"""What is agreed on with the plants of each cohort: the keys of its masks, and who has prepared for which round.

It is kept in memory for one run: a coordinator that resumes agrees on keys anew.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from models.cohorts.dealing import Cohorts
from services.contracts.problems.noise import CohortNoise
from services.contracts.wire.masking import (
    MaskingCohort,
    MaskingError,
    MaskKey,
    MaskKeys,
    Preparation,
    threshold_of,
)
from services.coordinator.asking.poll import Poll, Question
from services.coordinator.round_loop.keys_in_use import KeysInUse
from services.coordinator.round_loop.mask_exchange import MaskExchange, parts
from services.masking.keys import check_mask_key


@dataclass
class Agreed:
    """What holds with one cohort: its keys, and who has prepared for which round."""

    cohort: MaskingCohort
    keys: Mapping[str, MaskKey]
    number: int = -1
    prepared: dict[str, Preparation] = field(default_factory=dict)

    def note(self, number: int | None, said: Mapping[str, Preparation | None]) -> None:
        """Note who has prepared for a round, for all that have keys; None: for no further one."""
        self.number = -1 if number is None else number
        self.prepared = {
            site: each for site, each in said.items()
            if each is not None and each.round == number and not self.keys.keys() - each.sealed.keys() - {site}
        }


@dataclass(frozen=True)
class AgreementTerms:
    """What every cohort is asked to agree on.

    ``shares`` are those of the plants in their cohorts, ``threshold`` the share of a cohort that a sum needs, ``noise``
    that of each cohort; of one that has none there nothing is added to the words.
    """

    cohorts: Cohorts
    shares: Mapping[str, float]
    threshold: float
    noise: Mapping[str, CohortNoise]
    auditor: str = ""
    audit_every_round: bool = False


class MaskAgreements:
    """Agreements with the cohorts of one run, by cohort. ``keys``, ``live``: those of its plants (``KeysInUse``)."""

    def __init__(
        self, terms: AgreementTerms, keys: Mapping[str, str], exchange: MaskExchange,
        live: Mapping[str, str] | None = None,
    ) -> None:
        self._terms, self._exchange = terms, exchange
        self._in_use = KeysInUse(keys, live)
        self._agreed: dict[str, Agreed] = {}

    def running(self) -> dict[str, Agreed]:
        """What holds with the cohorts in which as many plants have prepared as a sum needs."""
        found = {name: self._agreed[name] for name in self._terms.cohorts if name in self._agreed}
        return {name: each for name, each in found.items() if len(each.prepared) >= each.cohort.threshold}

    async def prepare(self, question: Question) -> list[str]:
        """Agree on keys where not every plant has prepared for the question's round; the plants that still have not."""
        cohorts = self._terms.cohorts
        due = [name for name in cohorts if not self._ready(name, question.round)]
        if due:
            await self._agree(question, due)
        prepared = {site for each in self._agreed.values() for site in each.prepared}
        return [site for members in cohorts.values() for site in members if site not in prepared]

    def drop(self, cohort: str) -> None:
        """Agree with a cohort anew before its next round."""
        self._agreed.pop(cohort, None)

    def forget(self) -> None:
        """Agree with all cohorts anew."""
        self._agreed.clear()

    def _ready(self, name: str, number: int) -> bool:
        agreed, members = self._agreed.get(name), self._terms.cohorts[name]
        return agreed is not None and agreed.number == number and len(agreed.prepared) == len(members)

    async def _agree(self, question: Question, due: Sequence[str]) -> None:
        wanted, said = await self._ask_to_agree(question, due)
        if self._in_use.turn(said.answers):
            wanted, said = await self._ask_to_agree(question, due)
        keys: dict[str, dict[str, MaskKey]] = {}
        for name, cohort in wanted.items():
            keys[name] = {}
            for site, key in parts(said, cohort.members, MaskKey).items():
                try:
                    check_mask_key(cohort, site, key)
                    keys[name][site] = key
                except MaskingError as error:
                    self._exchange.accounts.reject(site, "bad_mask_key", str(error))
        enough = {name: each for name, each in keys.items() if len(each) >= wanted[name].threshold}
        tasks = {
            site: MaskKeys(run_id=question.run_id, round=question.round, keys=each)
            for each in enough.values() for site in each
        }
        said = await self._exchange.ask(question, tasks, "prepare")
        for name in due:
            self.drop(name)
            if name in enough:
                self._agreed[name] = Agreed(wanted[name], enough[name])
                self._agreed[name].note(question.round, parts(said, enough[name], Preparation))

    async def _ask_to_agree(self, question: Question, due: Sequence[str]) -> tuple[dict[str, MaskingCohort], Poll]:
        """Cohorts as they are asked to agree on keys, and what their plants say."""
        wanted = {name: self._wanted(question.run_id, name) for name in due}
        asked = {site: cohort for cohort in wanted.values() for site in cohort.members}
        return wanted, await self._exchange.ask(question, asked, "agree")

    def _wanted(self, run_id: str, name: str) -> MaskingCohort:
        terms = self._terms
        members = terms.cohorts[name]
        threshold = threshold_of(len(members), terms.threshold)
        return MaskingCohort(
            run_id=run_id, name=name, keys=self._in_use.of(members), threshold=threshold,
            shares={site: terms.shares[site] for site in members}, agreement=secrets.randbelow(2**53),
            auditor=terms.auditor, audit_every_round=terms.audit_every_round, noise=terms.noise.get(name),
        )
