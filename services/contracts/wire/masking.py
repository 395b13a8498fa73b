"""What plants and server tell each other so that a sum comes out and nothing else: frozen, and ready for JSON."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Annotated, Final, Self

from pydantic import ConfigDict, Field, model_validator

from services.contracts.base import SHA256_PATTERN, Contract, RunId, Slug
from services.contracts.errors import BallastError
from services.contracts.problems.noise import CohortNoise

LEAST_MEMBERS: Final = 3
"""Of a sum over two, either plant could take off its own part and see the other's."""

Round = Annotated[int, Field(ge=0)]
Key = Annotated[bytes, Field(min_length=32, max_length=32)]
Signature = Annotated[bytes, Field(min_length=64, max_length=64)]
Digest = Annotated[str, Field(pattern=SHA256_PATTERN)]


class MaskingError(BallastError):
    """A sum that cannot be made, or must not be: nothing was revealed."""

    code = "masking"


class _Message(Contract):
    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    run_id: RunId


class MaskingCohort(_Message):
    """Who is summed in a run: public signing keys (nkeys) by site, and how many must answer for a sum to come out.

    At least two thirds must: then a server that tells every plant something else of who is there gets no answer alone
    either (``infra/decisions/0013``). ``shares`` are those of the plants in the sum, alike where it is empty: all sign
    the same ones, so that none is told another weight than the rest. ``agreement`` tells apart the agreements on keys
    of one run. ``auditor`` is the nkey to which the plants open two rounds that contradict each other, empty: none;
    with ``audit_every_round`` all rounds, at the end of the run.
    ``noise``: what each plant adds to its words in a round, by terms that all sign; None: nothing.
    """

    name: Slug
    keys: dict[Slug, str]
    threshold: int
    shares: dict[Slug, Annotated[float, Field(ge=0, le=1)]] = Field(default_factory=dict)
    agreement: int = Field(default=0, ge=0, lt=2**53)
    auditor: str = ""
    audit_every_round: bool = False
    noise: CohortNoise | None = None

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if len(self.keys) < LEAST_MEMBERS:
            raise ValueError(f"a cohort has at least {LEAST_MEMBERS} plants, {self.name} has {len(self.keys)}")
        if not least_threshold(len(self.keys)) <= self.threshold <= len(self.keys):
            raise ValueError(
                f"the threshold of a cohort of {len(self.keys)} plants must be from {least_threshold(len(self.keys))} "
                f"to {len(self.keys)}, got {self.threshold}"
            )
        if self.shares and self.shares.keys() != self.keys.keys():
            raise ValueError(f"cohort {self.name} must have a share for each of its plants, and for no other")
        if self.noise is not None and self.noise.honest > self.threshold:
            raise ValueError(
                f"the noise of {self.noise.honest} plants must be in every sum, and {self.threshold} answers make one"
            )
        return self

    def share(self, site_id: str) -> float:
        """Share of a plant in the sum."""
        return self.shares[site_id] if self.shares else 1.0 / len(self.keys)

    @property
    def members(self) -> tuple[str, ...]:
        """Sites in order."""
        return tuple(sorted(self.keys))

    @property
    def places(self) -> dict[str, int]:
        """Number of each site among the holders of shares, from 1."""
        return {site: place for place, site in enumerate(self.members, 1)}

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all of it, hexadecimal."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def least_threshold(n_members: int) -> int:
    """Two thirds of the plants, rounded up."""
    return -(-2 * n_members // 3)


def threshold_of(n_members: int, share: float) -> int:
    """As many as ``share`` of the plants, and at least three."""
    # A share of a plant is a float of the plan's weights; a threshold of two thirds must not be 67 in 100 by it.
    return max(LEAST_MEMBERS, math.ceil(share * n_members - 1e-9))


def default_threshold(n_members: int) -> int:
    """Two thirds, and at least three, so that no sum is over two plants."""
    return max(LEAST_MEMBERS, least_threshold(n_members))


class MaskKey(_Message):
    """A plant's X25519 public key for one run, signed with its nkey together with the cohort as the plant knows it."""

    site_id: Slug
    cohort: str = Field(description="fingerprint of the cohort")
    public_key: Key
    signature: Signature


class MaskKeys(_Message):
    """The mask keys of a cohort, by site, of those plants that made one; and the round to prepare for."""

    round: Round
    keys: dict[Slug, MaskKey]


class Preparation(_Message):
    """What a plant leaves with the server before a round: shares for its peers, and what unlocks its pair masks.

    ``sealed``: for each peer, a share of the self-mask's seed and one of the recovery key, which the peer alone opens.
    ``recovery``: the seeds of its pair masks of this round, under the recovery key. ``commitments``: digests of both
    secrets, by which a wrong share is noticed.
    """

    round: Round
    site_id: Slug
    sealed: dict[Slug, bytes]
    recovery: bytes
    commitments: tuple[Key, Key]


class Delivery(_Message):
    """What a plant gets with a round's question: the shares that each peer which takes part sealed for it."""

    round: Round
    sealed: dict[Slug, bytes]


class Commitment(_Message):
    """A plant's digests of one answered round. ``cohort``: fingerprint; ``question``: SHA-256 of what was asked.

    ``words``: blinded digest of the words; ``masked``: SHA-256 of the masked words; ``pairs``: by each peer that took
    part. ``signature`` is the plant's, over all the rest.
    """

    round: Round
    site_id: Slug
    cohort: Digest
    question: Digest
    words: Key
    masked: Digest
    self_mask: Key
    pairs: dict[Slug, Key]
    signature: Signature


class MaskedWords(_Message):
    """A plant's words (L,) under its masks, uint64 little-endian; in a run with an auditor, what binds it to them."""

    round: Round
    site_id: Slug
    words: bytes
    commitment: Commitment | None = None


class UnmaskRequest(_Message):
    """Whose masked words arrived, and who took part in vain."""

    round: Round
    answered: tuple[Slug, ...]
    absent: tuple[Slug, ...]


class Revealed(_Message):
    """A plant's shares: of the self-masks of those that answered, of the recovery keys of those that did not."""

    round: Round
    site_id: Slug
    self_shares: dict[Slug, bytes]
    recovery_shares: dict[Slug, bytes]


class Unmasking(_Message):
    """The request, and the round to prepare for in the same answer; None: there is none."""

    request: UnmaskRequest
    next_round: Round | None = None


class Unmasked(_Message):
    """The shares, and what the plant prepared for the next round."""

    revealed: Revealed
    preparation: Preparation | None = None


class OpenRounds(_Message):
    """Two rounds are to be opened to the auditor; ``request`` is an ``AuditRequest`` of ``services.auditing``, JSON."""

    request: bytes


class SealedOpenings(_Message):
    """A plant's openings in a box for the auditor; ``signature`` is the plant's, over run, names and box."""

    site_id: Slug
    auditor: str
    box: bytes
    signature: Signature

    @property
    def statement(self) -> bytes:
        """What is signed."""
        box = hashlib.sha256(self.box).hexdigest()
        return f"ballast sealed openings {self.run_id} {self.site_id} {self.auditor} {box}".encode()


MaskingTask = MaskingCohort | MaskKeys | Delivery | Unmasking | OpenRounds
"""What a task of a run on sums asks beside its arrays: to agree on keys, to prepare, to mask, to unmask, to open."""

MaskingAnswer = MaskKey | Preparation | MaskedWords | Unmasked | SealedOpenings
"""What answers each of them."""
