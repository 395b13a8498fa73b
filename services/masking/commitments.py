r"""What binds a plant to the answer that it masked, so that it can be opened to an auditor and to nobody else.

With its masked words a plant sends digests, signed with its nkey: of the words under a blinding key, of the secret of
its self-mask, of the key of each pair mask. Digests of 256 random bits tell nothing. An opening gives what was hashed.
Whoever has both can check this plant alone, without the others:

    masked = words + stream(self) +- stream(pair keys),    each part the one that it was committed to.

Both plants of a pair send the digest of one key, so two that agreed on no mask are seen before anything is summed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from services.contracts.base import Slug
from services.contracts.keys.signing import verify
from services.contracts.wire.masking import (
    Commitment,
    Key,
    MaskedWords,
    MaskingCohort,
    MaskingError,
    Preparation,
    Round,
    Signature,
    _Message,
)
from services.masking.keys import Words, derive, stream
from services.masking.masks import SELF, commitment, pair_mask, secret_key, words_from_bytes
from services.masking.secret_sharing import from_bytes


class Opening(_Message):
    """What a plant hashed for a :class:`Commitment`; ``signature`` is the plant's, over all the rest."""

    round: Round
    site_id: Slug
    blinding: Key
    words: bytes
    self_mask: bytes
    pairs: dict[Slug, Key]
    signature: Signature


MessageT = TypeVar("MessageT", Commitment, Opening)


def signed(message: MessageT, sign: Callable[[bytes], bytes]) -> MessageT:
    """The message with its plant's signature, whatever stood there before."""
    return message.model_copy(update={"signature": sign(statement(message))})


def statement(message: Commitment | Opening) -> bytes:
    """What is signed: the kind of the message and all of it but the signature."""
    fields = message.model_dump(mode="json", exclude={"signature"})
    return json.dumps({"ballast": type(message).__name__, **fields}, sort_keys=True).encode()


def words_digest(blinding: bytes, cohort: str, question: str, number: int, site_id: str, words: bytes) -> bytes:
    """Digest of a plant's words under its blinding key."""
    return derive(blinding, "words", cohort, question, number, site_id, hashlib.sha256(words).hexdigest())


def pair_digest(key: bytes, cohort: str, number: int, one: str, other: str) -> bytes:
    """Digest of the key of a pair mask: one for both plants."""
    return derive(key, "pair digest", cohort, number, *sorted((one, other)))


def check_commitment(
    cohort: MaskingCohort, question: str, preparation: Preparation, peers: Iterable[str], masked: MaskedWords,
    found: Commitment,
) -> None:
    """The server's check as the masked words arrive: whoever fails has not answered.

    Raises
    ------
    MaskingError
        It is not signed by the plant, or is of another run, round, question, cohort, of other words, of other peers
        than took part, or of another self-mask than the plant prepared.
    """
    site = masked.site_id
    check_signature(cohort, site, found)
    for what, told, due in (
        ("round", (found.run_id, found.round), (cohort.run_id, masked.round)),
        ("cohort", found.cohort, cohort.fingerprint),
        ("question", found.question, question),
        ("masked words", found.masked, hashlib.sha256(masked.words).hexdigest()),
        ("self-mask", found.self_mask, preparation.commitments[0]),
        ("list of peers", sorted(found.pairs), sorted(set(peers) - {site})),
    ):
        if told != due:
            raise MaskingError(f"what {site} commits itself to in round {masked.round} is of another {what}")


def check_signature(cohort: MaskingCohort, site: str, found: Commitment | Opening) -> None:
    """Refuse a message that is not this plant's: :class:`MaskingError`."""
    if found.site_id != site or site not in cohort.keys:
        raise MaskingError(f"a message of {found.site_id} stands for {site} in cohort {cohort.name}")
    if not verify(cohort.keys[site], statement(found), found.signature):
        raise MaskingError(f"what {site} commits itself to is not signed by the key that the site enrolled")


def disagreeing(commitments: Mapping[str, Commitment]) -> list[tuple[str, str]]:
    """Pairs of plants that did not commit themselves to one mask: their words do not sum; take both as absent."""
    return [
        (one, other) for one in sorted(commitments) for other in sorted(commitments)
        if one < other and commitments[one].pairs.get(other) != commitments[other].pairs.get(one)
    ]


def opened_words(found: Commitment, masked: bytes, opening: Opening) -> Words:
    """The words (L,) of an opening that fits its commitment in every part, and the masked words with it.

    Raises
    ------
    MaskingError
        Which part does not fit; the opening must be the plant's own, which :func:`check_signature` says.
    """
    site, number = found.site_id, found.round
    if (opening.run_id, opening.round, opening.site_id) != (found.run_id, number, site):
        raise MaskingError(f"{site} opened round {opening.round} where round {number} was committed to")
    if hashlib.sha256(masked).hexdigest() != found.masked:
        raise MaskingError(f"the masked words of round {number} are not those that {site} committed itself to")
    if words_digest(opening.blinding, found.cohort, found.question, number, site, opening.words) != found.words:
        raise MaskingError(f"the words that {site} opened for round {number} are not those that it committed itself to")
    if commitment(from_bytes(opening.self_mask), SELF, found.run_id, number, site) != found.self_mask:
        raise MaskingError(f"the self-mask that {site} opened for round {number} is not the one that it prepared")
    told = {peer: pair_digest(key, found.cohort, number, site, peer) for peer, key in opening.pairs.items()}
    if told != found.pairs:
        raise MaskingError(f"the pair masks that {site} opened for round {number} are not those it committed itself to")
    words = words_from_bytes(opening.words)
    total = words + stream(secret_key(from_bytes(opening.self_mask), SELF, found.run_id, number, site), words.size)
    for peer, key in opening.pairs.items():
        total = total + pair_mask(key, site, peer, words.size)
    if total.astype("<u8").tobytes() != masked:
        raise MaskingError(f"{site} masked other words in round {number} than it committed itself to")
    return words
