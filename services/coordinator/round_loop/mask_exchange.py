"""Exchanges of a run on sums with its plants, and what each plant answered over the exchanges of a round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from services.contracts.wire.masking import MaskingTask
from services.contracts.wire.messages import Kind
from services.coordinator.asking.poll import Poll, Question, poll
from services.coordinator.asking.ports import SiteTransport
from services.coordinator.round_loop.sum_accounts import SumAccounts

BYTES_A_PEER = 800  # of base 64: sealed shares, the pair's key, a digest, a name; 500 are used
BYTES_A_WORD = 11  # 8 in base 64
BYTES_A_WORD_OPENED = 20  # 8 in base 64, in a box, in base 64 again: 14.3; and its names

PartT = TypeVar("PartT")


class MaskExchange:
    """Asks the plants of one run. ``keys`` are their public keys, ``largest`` is how many the largest cohort has.

    ``live`` are the keys that hold when an answer is there; None: ``keys``.
    """

    def __init__(
        self, keys: Mapping[str, str], live: Mapping[str, str] | None, transport: SiteTransport,
        deadline_seconds: float, largest: int,
    ) -> None:
        self._keys, self._live = dict(keys), live
        self._transport, self._deadline, self._largest = transport, deadline_seconds, largest
        self.begin()

    def begin(self) -> None:
        """Begin a round: with accounts of nobody, and no second waited."""
        self.accounts, self.slowest_seconds = SumAccounts(), 0.0

    async def ask(
        self, question: Question, tasks: Mapping[str, MaskingTask], kind: Kind, *, most: int = 0, account: bool = True
    ) -> Poll:
        """One exchange with the plants that have a task; their accounts are added up over the exchanges of a round.

        ``most``: bytes of an answer beside those that go with the peers; ``account``: whether its status counts.
        """
        asked = replace(
            question, kind=kind, arrays=question.arrays if kind == question.kind else {}, masking=tasks,
            most_bytes=most + BYTES_A_PEER * self._largest,
        )
        keys = {site: self._keys[site] for site in tasks}
        outcome = await poll(asked, keys, self._transport, self._deadline, self._live)
        self.slowest_seconds += outcome.slowest_seconds
        self.accounts.add(outcome.answers, keep_status=not account)
        return outcome


def parts(outcome: Poll, sites: Mapping[str, object] | Sequence[str], part: type[PartT]) -> dict[str, PartT]:
    """What the sites said under this type."""
    found = {site: outcome.updates[site].masking for site in sites if site in outcome.updates}
    return {site: each for site, each in found.items() if isinstance(each, part)}


def opened_bytes(rounds: int, words: int, plants: int) -> int:
    """Bytes, at most, in which a plant of a cohort opens so many rounds of so many words."""
    return rounds * (BYTES_A_WORD_OPENED * words + BYTES_A_PEER * plants)
