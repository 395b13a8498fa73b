r"""What plants and server both derive: the masks of a round, and what binds a round's secrets to it.

    y_i = x_i + stream(self_i) + sum_{j > i} stream(pair_ij) - sum_{j < i} stream(pair_ij)      modulo 2^64

over the plants j that take part. In the sum over all of them the pair masks cancel.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from services.contracts.wire.masking import MaskingError
from services.masking.keys import Words, derive, stream
from services.masking.secret_sharing import Elements, to_bytes

SELF, RECOVERY = "self-mask", "recovery key"
KEY_BYTES = 32  # 256 bits


def secret_key(secret: Elements, purpose: str, run_id: str, round_number: int, site_id: str) -> bytes:
    """Key of a self-mask or of a recovery box from its shared secret."""
    return derive(to_bytes(secret), purpose, run_id, round_number, site_id)


def commitment(secret: Elements, purpose: str, run_id: str, round_number: int, site_id: str) -> bytes:
    """Digest by which a wrong share is noticed; the secret has 271 random bits, so it tells nothing of it."""
    return derive(to_bytes(secret), "commitment", purpose, run_id, round_number, site_id)


def pair_key(secret: bytes, round_number: int) -> bytes:
    """Key of the mask of a pair of plants in a round, from the secret that they agreed on for the run."""
    return derive(secret, "pair mask", round_number)


def share_key(secret: bytes, round_number: int, sender: str, receiver: str) -> bytes:
    """Key of the box in which one plant of a pair sends the other its shares."""
    return derive(secret, "sealed shares", round_number, sender, receiver)


def pair_mask(key: bytes, own: str, peer: str, count: int) -> Words:
    """What ``own`` adds for ``peer``, (count,); the peer adds the opposite."""
    mask = stream(key, count)
    return mask if own < peer else np.zeros_like(mask) - mask


def words_to_bytes(words: Words) -> bytes:
    """Words, little-endian."""
    return words.astype("<u8").tobytes()


def words_from_bytes(data: bytes) -> Words:
    """Words from :func:`words_to_bytes`. :class:`MaskingError` where they are no whole words."""
    if len(data) % 8:
        raise MaskingError(f"masked words come in eights of bytes, got {len(data)}")
    return np.frombuffer(data, dtype="<u8").astype(np.uint64)


def named(sites: Iterable[str]) -> str:
    """Names for an error sentence."""
    return ", ".join(sorted(sites)) or "none"
