"""A plant's half of commit and open: what it keeps of its answers, in memory, so that it can show two of them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import Final

from services.contracts.wire.masking import Commitment, Delivery, MaskedWords, MaskingCohort, MaskingError
from services.masking.commitments import Opening, pair_digest, signed, words_digest
from services.masking.keys import Words
from services.masking.masks import SELF, commitment, words_to_bytes
from services.masking.member import Member
from services.masking.secret_sharing import from_bytes

MOST_AUDITS: Final = 1
"""Pairs of rounds that a plant opens in a run: what the auditor sees are single answers."""

MOST_ROUNDS: Final = 2
"""Rounds that prove a contradiction."""

ROUNDS_KEPT: Final = 200
"""Answers that are kept in memory: twice the rounds of a plan that says nothing of them; 16 bytes a number each."""

_NO_SIGNATURE = bytes(64)


class Committer:
    """The last answers of one plant in one run, each with its commitment; it forgets them in a restart."""

    def __init__(
        self, cohort: MaskingCohort, site_id: str, member: Member, sign: Callable[[bytes], bytes],
        most_audits: int = MOST_AUDITS,
    ) -> None:
        self._cohort, self._fingerprint, self._site = cohort, cohort.fingerprint, site_id
        self._member, self._sign, self._most = member, sign, most_audits
        self._kept: dict[int, tuple[MaskedWords, Commitment, Opening]] = {}
        self._audited: list[frozenset[int]] = []

    def answer(self, delivery: Delivery, words: Words, question: str) -> tuple[MaskedWords, Commitment]:
        """Masked words and the commitment to them; the same for the same question again.

        ``question`` is the SHA-256 of what was asked (``services.auditing.questions``). :class:`MaskingError` as of
        :meth:`services.masking.member.Member.mask`, or where the round was answered to another question.
        """
        number, masked = delivery.round, self._member.mask(delivery, words)
        if number in self._kept:
            kept, bound, _ = self._kept[number]
            if bound.question != question:
                raise MaskingError(f"{self._site} answered round {number} already, to another question")
            return kept, bound
        self_mask, pairs = self._member.masks_of(number)
        opening = Opening(
            run_id=self._cohort.run_id, round=number, site_id=self._site, blinding=os.urandom(32),
            words=words_to_bytes(words), self_mask=self_mask, pairs=pairs, signature=_NO_SIGNATURE,
        )
        run_id, cohort, site = self._cohort.run_id, self._fingerprint, self._site
        bound = signed(Commitment(
            run_id=run_id, round=number, site_id=site, cohort=cohort, question=question,
            words=words_digest(opening.blinding, cohort, question, number, site, opening.words),
            masked=hashlib.sha256(masked.words).hexdigest(),
            self_mask=commitment(from_bytes(self_mask), SELF, run_id, number, site),
            pairs={peer: pair_digest(key, cohort, number, site, peer) for peer, key in pairs.items()},
            signature=_NO_SIGNATURE,
        ), self._sign)
        self._kept[number] = masked, bound, opening
        if len(self._kept) > ROUNDS_KEPT:
            del self._kept[min(self._kept)]
        return masked, bound

    def question_of(self, number: int) -> str:
        """SHA-256 of the question of an answered round; :class:`MaskingError` where it is not remembered."""
        if number not in self._kept:
            raise MaskingError(f"{self._site} remembers no answer of round {number}: it restarted, or that is long ago")
        return self._kept[number][1].question

    def openings(self, numbers: tuple[int, ...], every_round: bool = False) -> tuple[Opening, ...]:
        """Signed openings of rounds, one or two unless ``every_round`` is allowed.

        The caller seals them for the auditor: nobody else may have them.

        :class:`MaskingError` where a round is not remembered, or so many pairs of rounds were opened before.
        """
        for number in numbers:
            self.question_of(number)
        wanted = frozenset(numbers)
        if not every_round and wanted not in self._audited:
            if len(wanted) > MOST_ROUNDS:
                raise MaskingError(f"{self._site} opens {MOST_ROUNDS} rounds to an auditor, {len(wanted)} were asked")
            if len(self._audited) >= self._most:
                raise MaskingError(f"{self._site} has opened rounds to an auditor in this run, and does so once")
            self._audited.append(wanted)
        return tuple(signed(self._kept[number][2], self._sign) for number in sorted(wanted))
