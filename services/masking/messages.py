"""What plants and server tell each other so that a sum comes out and nothing else: frozen, and ready for JSON."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Final, Self

from pydantic import ConfigDict, Field, model_validator

from services.contracts.base import Contract, RunId, Slug
from services.contracts.errors import BallastError

LEAST_MEMBERS: Final = 3
"""Of a sum over two, either plant could take off its own part and see the other's."""

Round = Annotated[int, Field(ge=0)]
Key = Annotated[bytes, Field(min_length=32, max_length=32)]


class MaskingError(BallastError):
    """A sum that cannot be made, or must not be: nothing was revealed."""

    code = "masking"


class _Message(Contract):
    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    run_id: RunId


class MaskingCohort(_Message):
    """Who is summed in a run: public signing keys (nkeys) by site, and how many must answer for a sum to come out.

    At least two thirds must: then a server that tells every plant something else of who is there gets no answer alone
    either (``infra/decisions/0013``).
    """

    name: Slug
    keys: dict[Slug, str]
    threshold: int

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if len(self.keys) < LEAST_MEMBERS:
            raise ValueError(f"a cohort has at least {LEAST_MEMBERS} plants, {self.name} has {len(self.keys)}")
        if not least_threshold(len(self.keys)) <= self.threshold <= len(self.keys):
            raise ValueError(
                f"the threshold of a cohort of {len(self.keys)} plants must be from {least_threshold(len(self.keys))} "
                f"to {len(self.keys)}, got {self.threshold}"
            )
        return self

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


def default_threshold(n_members: int) -> int:
    """Two thirds, and at least three, so that no sum is over two plants."""
    return max(LEAST_MEMBERS, least_threshold(n_members))


class MaskKey(_Message):
    """A plant's X25519 public key for one run, signed with its nkey together with the cohort as the plant knows it."""

    site_id: Slug
    cohort: str = Field(description="fingerprint of the cohort")
    public_key: Key
    signature: Annotated[bytes, Field(min_length=64, max_length=64)]


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


class MaskedWords(_Message):
    """A plant's words (L,) under its masks, uint64 little-endian."""

    round: Round
    site_id: Slug
    words: bytes


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
