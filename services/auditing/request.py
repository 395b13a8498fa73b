"""What the coordinator asks when a cohort's sums contradict themselves, and how a plant opens to the auditor alone.

An audit of every round (``every_round``) finds lies that a sum does not show, by an auditor who sees what a coordinator
sees in a run without sums. A plan may have it where all its plants' policies allow it: they sign it with the cohort.

The auditor is named in the plan by its public nkey. Boxes are sealed to the X25519 form of that key, so the coordinator
carries what it cannot read.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import nkeys
from nacl.exceptions import CryptoError
from nacl.public import SealedBox
from nacl.signing import SigningKey, VerifyKey
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from models.cohorts.fixed_point import Words
from services.auditing.questions import Question, falsehood
from services.contracts.base import Contract, RunId, Slug
from services.contracts.errors import InvalidInputError
from services.contracts.keys.signing import check_public_key
from services.contracts.wire.masking import MaskingError, SealedOpenings
from services.masking.commitments import Opening
from services.masking.committer import Committer
from services.masking.masks import words_from_bytes
from services.verification.contradiction import contradiction_of

_OPENINGS = TypeAdapter(tuple[Opening, ...])


class SummedRound(Contract):
    """A round of a cohort as the coordinator has it: the question, who was summed, and the sum of their words."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    question: bytes
    answered: tuple[Slug, ...]
    total: bytes

    @property
    def asked(self) -> Question:
        """The question taken apart."""
        return Question.read(self.question)

    @property
    def words(self) -> Words:
        """The sum (L,)."""
        return words_from_bytes(self.total)


class AuditRequest(Contract):
    """Two rounds whose sums contradict each other, or all rounds of a run; and the auditor to open them to."""

    run_id: RunId
    auditor: str
    rounds: tuple[SummedRound, ...] = Field(min_length=1)


def falsehood_of_sums(rounds: tuple[SummedRound, ...]) -> str:
    """Why the sums of two rounds cannot be of convex risks, in words; empty where nothing speaks against them.

    No risk is below 0, so the risk of more plants is held to the cuts of fewer, never the other way round.
    """
    one, other = rounds
    if set(one.answered) == set(other.answered):
        return falsehood([one.asked, other.asked], [one.words, other.words])
    found = falsehood([one.asked], [one.words]) or falsehood([other.asked], [other.words])
    for more, fewer in ((one, other), (other, one)):
        if not found and set(fewer.answered) < set(more.answered):
            found = contradiction_of(more.asked.answers(more.words), fewer.asked.answers(fewer.words))
    return found


def opened_to(
    auditor: str, site_id: str, request: AuditRequest, committer: Committer, sign: Callable[[bytes], bytes],
    every_round: bool = False,
) -> SealedOpenings:
    """A plant's openings of the rounds that it answered, sealed for the auditor that its plan names.

    ``every_round``: the audit is of all rounds, and needs no cause.

    Raises
    ------
    MaskingError
        The request names another auditor, other questions than the plant answered, or sums without a contradiction;
        or the plant does not remember the rounds, or has opened others in this run.
    """
    if request.auditor != auditor:
        raise MaskingError("the request names another auditor than the plan: nothing is opened")
    numbers = []
    for each in request.rounds:
        asked = each.asked
        if site_id not in each.answered:
            continue
        if committer.question_of(asked.round) != asked.sha256:
            raise MaskingError(f"the request is of another question than that of round {asked.round}")
        numbers.append(asked.round)
    if not every_round and (len(request.rounds) != 2 or not falsehood_of_sums(request.rounds)):
        raise MaskingError("the sums of the request contradict each other nowhere: there is nothing to open")
    text = _OPENINGS.dump_json(committer.openings(tuple(numbers), every_round))
    box = bytes(SealedBox(VerifyKey(_raw(auditor)).to_curve25519_public_key()).encrypt(text))
    bare = SealedOpenings(
        run_id=request.run_id, site_id=site_id, auditor=auditor, box=box, signature=bytes(64)
    )
    return bare.model_copy(update={"signature": sign(bare.statement)})


def unsealed(key_file: Path, sealed: bytes) -> tuple[Opening, ...] | None:
    """Openings in a box for the auditor whose seed the file holds; None where it is no such box."""
    try:
        text = SealedBox(_signing_key(key_file).to_curve25519_private_key()).decrypt(sealed)
        return _OPENINGS.validate_json(text)
    except (CryptoError, ValueError, ValidationError):
        return None


def _raw(key: str) -> bytes:
    return base64.b32decode(check_public_key(key))[1:-2]


def _signing_key(path: Path) -> SigningKey:
    try:
        _, raw = nkeys.decode_seed(path.read_bytes().strip())
        return SigningKey(bytes(raw))
    except (OSError, ValueError, nkeys.NkeysError):
        raise InvalidInputError(f"{path} does not hold an nkey seed (it should start with SU)") from None
