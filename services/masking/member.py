r"""A plant's half of a run's sums: it prepares, masks, and reveals of each peer one of two secrets, never both.

The pair secrets stand for the whole run and are never shared. What is shared in a round is of that round alone: the
seed of the self-mask, and a recovery key under which the server holds the seeds of this plant's pair masks *of this
round*. So to recover from a plant that dropped out opens no earlier and no later round; a shared long-term key, as in a
single sum of Bonawitz et al. (2017), would open all of them.

A member lives in memory. A restarted plant has a new key pair, and joins from the next agreement on keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from services.contracts.wire.masking import (
    Delivery,
    MaskedWords,
    MaskingCohort,
    MaskingError,
    MaskKey,
    Preparation,
    Revealed,
    UnmaskRequest,
)
from services.masking.keys import MaskKeyPair, Words, agree, open_sealed, seal, stream
from services.masking.masks import (
    RECOVERY,
    SELF,
    commitment,
    named,
    pair_key,
    pair_mask,
    secret_key,
    share_key,
    words_to_bytes,
)
from services.masking.secret_sharing import Elements, all_from_bytes, new_secret, split, to_bytes


@dataclass
class _Round:
    """One round: its own secrets, what it prepared, what it was asked, what it answered and revealed."""

    secrets: tuple[Elements, Elements]
    preparation: Preparation
    own_shares: bytes
    held: dict[str, bytes] = field(default_factory=dict)
    asked: tuple[Delivery, bytes] | None = None
    masked: MaskedWords | None = None
    request: UnmaskRequest | None = None


class Member:
    """One plant in one run. Rounds are used in order: to mask in one ends those before it."""

    def __init__(
        self, cohort: MaskingCohort, site_id: str, pair: MaskKeyPair, keys: Mapping[str, MaskKey]
    ) -> None:
        self._cohort, self._site = cohort, site_id
        self._secrets = agree(cohort, site_id, pair, keys)
        self._rounds: dict[int, _Round] = {}
        self._least = 0

    def prepare(self, number: int) -> Preparation:
        """Shares of this round's secrets, sealed for every peer; the same whenever it is asked for.

        :class:`MaskingError` where the round is over: its masks are used once.
        """
        if number < self._least:
            raise MaskingError(f"round {number} is over for {self._site}: a round's masks are used once")
        if number not in self._rounds:
            self._rounds[number] = self._new_round(number)
        return self._rounds[number].preparation

    def mask(self, delivery: Delivery, words: Words) -> MaskedWords:
        """Words (L,) under this round's masks, over the peers whose shares are delivered.

        Raises
        ------
        MaskingError
            Fewer than the threshold take part, no secret was agreed on with one of them, or the round was answered with
            other words or over other peers: a second sum over others would show what is between the two.

        A box that does not open costs this plant the share in it, which it then has not to reveal, and nothing else:
        masks are of secrets that no box holds, and who refused for it would be out of the sum by its peer's doing.
        """
        self._check_run(delivery.run_id)
        number, data = delivery.round, words_to_bytes(words)
        at = self._at(number)
        if at.masked is not None:
            if at.asked != (delivery, data):
                raise MaskingError(
                    f"{self._site} answered round {number} already, with other words or other plants; ask a new round"
                )
            return at.masked
        held = {peer: self._opened(number, peer, sealed) for peer, sealed in delivery.sealed.items()}
        if len(held) + 1 < self._cohort.threshold:
            raise MaskingError(
                f"{len(held) + 1} of the {self._cohort.threshold} plants that a sum needs take part in round {number}"
            )
        self_key = secret_key(at.secrets[0], SELF, self._cohort.run_id, number, self._site)
        masked = words + stream(self_key, words.size)
        for peer in held:
            masked = masked + pair_mask(pair_key(self._secrets[peer], number), self._site, peer, words.size)
        at.held, at.asked = held | {self._site: at.own_shares}, (delivery, data)
        at.masked = MaskedWords(
            run_id=self._cohort.run_id, round=number, site_id=self._site, words=words_to_bytes(masked)
        )
        self._least = number
        self._rounds = {each: kept for each, kept in self._rounds.items() if each >= number}
        return at.masked

    def reveal(self, request: UnmaskRequest) -> Revealed:
        """Shares of the self-masks of those that answered, and of the recovery keys of those that did not.

        Of a peer whose box did not open there is none.

        Raises
        ------
        MaskingError
            The request is of another round, names other plants than took part, has fewer answers than the threshold, or
            differs from one that was served: both secrets of a plant would show its answer.
        """
        self._check_run(request.run_id)
        number, answered, absent = request.round, set(request.answered), set(request.absent)
        at = self._at(number)
        if at.masked is None:
            raise MaskingError(f"{self._site} has not answered round {number}, so it reveals nothing of it")
        if at.request not in (None, request):
            raise MaskingError(
                f"{self._site} revealed its shares of round {number} for other answers: both secrets of a plant would "
                "show its answer"
            )
        if answered & absent or answered | absent != set(at.held) or self._site not in answered:
            raise MaskingError(f"the plants of round {number} are {named(at.held)}; the request is of others")
        if len(answered) < self._cohort.threshold:
            raise MaskingError(
                f"{len(answered)} of the {self._cohort.threshold} answers that a sum needs arrived in round {number}"
            )
        at.request, half = request, len(at.own_shares) // 2
        return Revealed(
            run_id=self._cohort.run_id, round=number, site_id=self._site,
            self_shares={site: at.held[site][:half] for site in sorted(answered) if at.held[site]},
            recovery_shares={site: at.held[site][half:] for site in sorted(absent) if at.held[site]},
        )

    def masks_of(self, number: int) -> tuple[bytes, dict[str, bytes]]:
        """Secret of the self-mask, and by peer the keys of the pair masks, of a round that was just answered.

        They open this plant's answer: they are for a commitment, and for the auditor who may see it opened.
        """
        at = self._at(number)
        pairs = {peer: pair_key(self._secrets[peer], number) for peer in at.held if peer != self._site}
        return to_bytes(at.secrets[0]), pairs

    def _new_round(self, number: int) -> _Round:
        run_id, members, places = self._cohort.run_id, self._cohort.members, self._cohort.places
        secrets = new_secret(), new_secret()
        shares = np.hstack([split(secret, len(members), self._cohort.threshold) for secret in secrets])
        sealed = {
            peer: seal(share_key(secret, number, self._site, peer), to_bytes(shares[places[peer] - 1]))
            for peer, secret in self._secrets.items()
        }
        pairs = b"".join(
            pair_key(self._secrets[peer], number) for peer in members if peer in self._secrets
        )
        recovery = seal(secret_key(secrets[1], RECOVERY, run_id, number, self._site), pairs)
        known = tuple(
            commitment(secret, purpose, run_id, number, self._site)
            for secret, purpose in zip(secrets, (SELF, RECOVERY), strict=True)
        )
        preparation = Preparation(
            run_id=run_id, round=number, site_id=self._site, sealed=sealed, recovery=recovery,
            commitments=(known[0], known[1]),
        )
        return _Round(secrets, preparation, to_bytes(shares[places[self._site] - 1]))

    def _at(self, number: int) -> _Round:
        if number not in self._rounds:
            raise MaskingError(f"{self._site} has prepared nothing for round {number}, or the round is over")
        return self._rounds[number]

    def _check_run(self, run_id: str) -> None:
        if run_id != self._cohort.run_id:
            raise MaskingError(f"the message is of run {run_id}, the masks are of run {self._cohort.run_id}")

    def _opened(self, number: int, peer: str, sealed: bytes) -> bytes:
        """A peer's two shares for this plant in a round; empty where the box does not open, or holds no shares."""
        if peer not in self._secrets:
            raise MaskingError(f"{self._site} has agreed on no secret with {peer}")
        shares = open_sealed(share_key(self._secrets[peer], number, peer, self._site), sealed)
        if shares is None or len(shares) != len(self._at(number).own_shares):
            return b""
        try:
            all_from_bytes([shares[: len(shares) // 2], shares[len(shares) // 2 :]])
        except MaskingError:
            return b""
        return shares
