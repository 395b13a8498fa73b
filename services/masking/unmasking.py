"""The server's half: it passes boxes on that it cannot open, and takes the masks off the sum, never off an answer."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

import numpy as np

from services.contracts.wire.masking import (
    Delivery,
    MaskedWords,
    MaskingCohort,
    MaskingError,
    Preparation,
    Revealed,
    UnmaskRequest,
)
from services.masking.keys import Words, open_sealed, stream
from services.masking.masks import KEY_BYTES, RECOVERY, SELF, commitment, named, pair_mask, secret_key, words_from_bytes
from services.masking.secret_sharing import Elements, all_from_bytes, combine

MOST_CHOICES: Final = 200
"""Two thirds of the shares, drawn, miss one false share once in three draws, two once in nine, three once in thirty."""


def deliveries(
    cohort: MaskingCohort, number: int, preparations: Mapping[str, Preparation]
) -> dict[str, Delivery]:
    """What each plant that prepared gets with the question of a round: who takes part, and the shares sealed for it.

    Raises
    ------
    MaskingError
        Fewer than the threshold have prepared for this round, or not for one another.
    """
    _check(cohort, number, preparations)
    _enough(cohort, number, preparations, "prepared")
    missing = [site for site, each in preparations.items() if preparations.keys() - each.sealed.keys() - {site}]
    if missing:
        raise MaskingError(f"site {missing[0]} has no shares for all of {named(preparations)}: agree on keys anew")
    return {
        site: Delivery(
            run_id=cohort.run_id, round=number,
            sealed={peer: each.sealed[site] for peer, each in preparations.items() if peer != site},
        )
        for site in preparations
    }


def unmask_request(
    cohort: MaskingCohort, number: int, preparations: Mapping[str, Preparation], masked: Mapping[str, MaskedWords]
) -> UnmaskRequest:
    """What to ask of the plants that answered; :class:`MaskingError` below the threshold, when the round is lost."""
    _check(cohort, number, masked)
    _enough(cohort, number, masked, "answered")
    if strangers := masked.keys() - preparations.keys():
        raise MaskingError(f"site {min(strangers)} answered round {number} without having prepared for it")
    return UnmaskRequest(
        run_id=cohort.run_id, round=number, answered=tuple(sorted(masked)),
        absent=tuple(sorted(preparations.keys() - masked.keys())),
    )


def unmasked_sum(
    cohort: MaskingCohort, request: UnmaskRequest, preparations: Mapping[str, Preparation],
    masked: Mapping[str, MaskedWords], revealed: Mapping[str, Revealed],
) -> Words:
    """Sum (L,) modulo 2^64 of the words of the plants that answered, from the shares of any ``threshold`` of them.

    A false share counts for nothing where the threshold of true ones is there: without that one plant of a cohort could
    end each of its rounds, and nobody would know which.

    Raises
    ------
    UnfitSharesError
        No shares of a secret fit it, though one plant more than the threshold revealed its own; a recovery box that is
        none; or too few shares, and a plant whose boxes, or that says whose boxes, did not open among more peers than
        may lie together (:func:`most_liars`).
    MaskingError
        Too few shares, or answers of different lengths.
    """
    number = request.round
    _check(cohort, number, revealed)
    _enough(cohort, number, revealed, "revealed their shares")
    words = {site: words_from_bytes(masked[site].words) for site in request.answered}
    if len({each.size for each in words.values()}) != 1:
        raise MaskingError(f"the answers of round {number} differ in length")
    total: Words = np.add.reduce(list(words.values()))
    opener = _Opener(cohort, request, revealed, cohort.places)
    for site in request.answered:
        secret = opener.secret(preparations[site], SELF)
        total = total - stream(secret_key(secret, SELF, cohort.run_id, number, site), total.size)
    for site in request.absent:
        for peer, key in opener.pair_keys(preparations[site]).items():
            if peer in words:
                total = total - pair_mask(key, peer, site, total.size)
    return total


def most_liars(cohort: MaskingCohort) -> int:
    """Plants of a cohort that may lie together: as many as it can spare for a sum, and one where it can spare none."""
    return max(1, len(cohort.keys) - cohort.threshold)


def unopened(request: UnmaskRequest, revealed: Mapping[str, Revealed]) -> list[tuple[str, str]]:
    """Pairs of plants: who revealed no share, and of whom: the box did not open, or who says so lies."""
    return [
        (holder, dealer)
        for holder, each in sorted(revealed.items())
        for dealers, told in ((request.answered, each.self_shares), (request.absent, each.recovery_shares))
        for dealer in dealers if dealer not in told
    ]


class UnfitSharesError(MaskingError):
    """Shares of a plant's secret do not fit what it committed itself to: it dealt false ones, or several told such."""

    def __init__(self, message: str, site: str) -> None:
        super().__init__(message)
        self.site = site


@dataclass(frozen=True)
class _Opener:
    """The secrets of a request's round that its revealed shares open; ``places`` are the holders' numbers.

    ``fitted``: the holders whose shares fitted last, which are tried first.
    """

    cohort: MaskingCohort
    request: UnmaskRequest
    revealed: Mapping[str, Revealed]
    places: Mapping[str, int]
    fitted: list[int] = field(default_factory=list)

    @property
    def number(self) -> int:
        """The round."""
        return self.request.round

    def pair_keys(self, preparation: Preparation) -> dict[str, bytes]:
        """Keys of a plant's pair masks of this round, by peer: what the plant put under its recovery key.

        :class:`UnfitSharesError` where that does not open.
        """
        site = preparation.site_id
        key = secret_key(self.secret(preparation, RECOVERY), RECOVERY, self.cohort.run_id, self.number, site)
        opened = open_sealed(key, preparation.recovery)
        peers = [peer for peer in self.cohort.members if peer in preparation.sealed]
        if opened is None or len(opened) != KEY_BYTES * len(peers):
            raise UnfitSharesError(f"what {site} prepared for its absence in round {self.number} does not open", site)
        return {peer: opened[KEY_BYTES * k : KEY_BYTES * (k + 1)] for k, peer in enumerate(peers)}

    def secret(self, preparation: Preparation, purpose: str) -> Elements:
        """A plant's shared secret, held to what it committed itself to.

        :class:`UnfitSharesError` names a plant whose shares do not fit; :class:`MaskingError` where nobody can be
        named.
        """
        site, threshold, shares = preparation.site_id, self.cohort.threshold, dict[int, bytes]()
        for holder in sorted(self.revealed):
            each = self.revealed[holder]
            told = each.self_shares if purpose == SELF else each.recovery_shares
            if site in told:
                shares[self.places[holder]] = told[site]
        wanted = preparation.commitments[purpose == RECOVERY]
        for holders in self._choices(list(shares), threshold):
            try:
                elements = all_from_bytes([shares[holder] for holder in holders])
            except MaskingError:
                continue
            secret = combine(dict(zip(holders, elements, strict=True)), threshold)
            if commitment(secret, purpose, self.cohort.run_id, self.number, site) == wanted:
                self.fitted[:] = holders
                return secret
        if len(shares) < threshold:
            raise self._too_few(site, len(shares))
        if len(self.revealed) > threshold:
            raise UnfitSharesError(
                f"the shares of the {purpose} of {site} in round {self.number} do not fit: it dealt false ones, or "
                "several plants told false ones", site,
            )
        raise MaskingError(
            f"the shares of the {purpose} of {site} in round {self.number} do not fit: one of them is wrong"
        )

    def _too_few(self, site: str, count: int) -> MaskingError:
        """Who lied where a plant's secret is lost since boxes did not open: one of each pair did, and few did so."""
        pairs, most = unopened(self.request, self.revealed), most_liars(self.cohort)
        degree = Counter(chain.from_iterable(pairs))
        # An honest plant is in no more of the pairs than there are liars, for each of them has one.
        liar = next((each for each in (site, *sorted(degree)) if degree[each] > most), None)
        if liar is not None:
            others = sorted({one if other == liar else other for one, other in pairs if liar in (one, other)})
            return UnfitSharesError(
                f"shares that {liar} sealed, or was sent, do not open between it and {', '.join(others)}, more than "
                f"may lie together: of what {site} prepared for round {self.number} nothing opens", liar,
            )
        told = "; ".join(f"{one} says that what {other} sealed for it does not open" for one, other in pairs)
        return MaskingError(
            f"{count} of the {self.cohort.threshold} shares of {site} that a sum needs are there in round {self.number}"
            + (f": {told}, and the others cannot tell which of the two lies" if told else "")
        )

    def _choices(self, holders: list[int], threshold: int) -> Iterator[list[int]]:
        """Holders whose shares to try: those that fitted last, the first ones, and then drawn ones."""
        if len(holders) < threshold:
            return
        if self.fitted and set(self.fitted) <= set(holders):
            yield self.fitted
        yield holders[:threshold]
        if len(holders) > threshold:
            draw = random.Random(self.number)  # noqa: S311, nothing is secret in which of them are tried
            for _ in range(MOST_CHOICES):
                yield sorted(draw.sample(holders, threshold))


def _check(
    cohort: MaskingCohort, number: int, messages: Mapping[str, Preparation | MaskedWords | Revealed]
) -> None:
    """Refuse messages of another run, round or site."""
    for site, each in messages.items():
        if site not in cohort.keys or each.site_id != site:
            raise MaskingError(f"a message of {each.site_id} stands for {site} in cohort {cohort.name}")
        if (each.run_id, each.round) != (cohort.run_id, number):
            raise MaskingError(f"a message of {site} is of round {each.round} of run {each.run_id}, not of {number}")


def _enough(cohort: MaskingCohort, number: int, there: Mapping[str, object], what: str) -> None:
    if len(there) < cohort.threshold:
        raise MaskingError(
            f"{len(there)} of the {cohort.threshold} plants that a sum of cohort {cohort.name} needs have {what} in "
            f"round {number}"
        )
