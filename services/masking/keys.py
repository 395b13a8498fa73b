r"""Keys of a run: signed X25519 keys, one secret for each pair of plants, and what is derived from it.

Every key has one use: ``derive`` hashes (keyed BLAKE2b) the purpose, the run, the round and the parties into it, so no
key stream is drawn twice. Streams are XSalsa20, that of NaCl's secretbox, whose boxes seal the shares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from nacl.exceptions import CryptoError
from nacl.public import Box, PrivateKey, PublicKey
from nacl.secret import SecretBox
from numpy.typing import NDArray

from services.contracts.keys.signing import verify
from services.contracts.wire.masking import MaskingCohort, MaskingError, MaskKey

Words = NDArray[np.uint64]

_NONCE = bytes(SecretBox.NONCE_SIZE)
"""Every key of a stream is derived for one stream, so its nonce says nothing."""


@dataclass(frozen=True, repr=False)
class MaskKeyPair:
    """A plant's X25519 key for one run. It lives in memory alone: who loses it sits the run's sums out."""

    private: bytes

    @staticmethod
    def new() -> MaskKeyPair:
        """A new one."""
        return MaskKeyPair(bytes(PrivateKey.generate()))

    def signed(self, cohort: MaskingCohort, site_id: str, sign: Callable[[bytes], bytes]) -> MaskKey:
        """Public half, signed by ``sign`` of ``services.contracts.keys.signing.signer``."""
        public, fingerprint = bytes(PrivateKey(self.private).public_key), cohort.fingerprint
        return MaskKey(
            run_id=cohort.run_id, site_id=site_id, cohort=fingerprint, public_key=public,
            signature=sign(_statement(fingerprint, site_id, public)),
        )


def agree(cohort: MaskingCohort, site_id: str, pair: MaskKeyPair, keys: Mapping[str, MaskKey]) -> dict[str, bytes]:
    """Secret (32 bytes) that a plant shares with each peer whose key is here; once in a run.

    Raises
    ------
    MaskingError
        The plant is not of the cohort, or a peer's key is not signed by its nkey for this cohort and run.
    """
    if site_id not in cohort.keys:
        raise MaskingError(f"site {site_id} is not in cohort {cohort.name}")
    own, fingerprint, secrets = PrivateKey(pair.private), cohort.fingerprint, {}
    for peer, key in keys.items():
        if peer == site_id:
            continue
        _check_mask_key(cohort, fingerprint, peer, key)
        shared = _shared(own, peer, key.public_key)
        secrets[peer] = derive(shared, "pair of plants", fingerprint, *sorted((site_id, peer)))
    return secrets


def check_mask_key(cohort: MaskingCohort, site_id: str, key: MaskKey) -> None:
    """Refuse a key that is not this site's for this run and cohort, or that nobody can agree on a secret with.

    :class:`MaskingError`: each of its peers would refuse the keys of all, and be the one that refused.
    """
    _check_mask_key(cohort, cohort.fingerprint, site_id, key)
    _shared(PrivateKey.generate(), site_id, key.public_key)


def _shared(own: PrivateKey, peer: str, public_key: bytes) -> bytes:
    """X25519; a point of low order, which gives the same secret to whoever asks, is refused by every private key."""
    try:
        return Box(own, PublicKey(public_key)).shared_key()
    except (CryptoError, RuntimeError):
        raise MaskingError(f"the mask key of {peer} is no point that a secret can be agreed on with") from None


def _check_mask_key(cohort: MaskingCohort, fingerprint: str, site_id: str, key: MaskKey) -> None:
    if site_id not in cohort.keys:
        raise MaskingError(f"site {site_id} is not in cohort {cohort.name}")
    if (key.site_id, key.run_id) != (site_id, cohort.run_id):
        raise MaskingError(f"the mask key of {key.site_id} for run {key.run_id} is not that of {site_id} for this run")
    if key.cohort != fingerprint:
        raise MaskingError(f"site {site_id} was told of another cohort: its plants, their keys or the threshold differ")
    if not verify(cohort.keys[site_id], _statement(fingerprint, site_id, key.public_key), key.signature):
        raise MaskingError(f"the mask key of {site_id} is not signed by the key that the site enrolled")


def derive(key: bytes, purpose: str, *context: str | int) -> bytes:
    """A key (32 bytes) for one purpose, named in up to 16 bytes, and one context."""
    return hashlib.blake2b(_joined(*context), key=key, person=purpose.encode(), digest_size=32).digest()


def stream(key: bytes, count: int) -> Words:
    """Key stream (count,) of XSalsa20: what its box makes of zeros, without the authenticator."""
    sealed = SecretBox(key).encrypt(bytes(8 * count), _NONCE).ciphertext
    return np.frombuffer(sealed, dtype="<u8", offset=SecretBox.MACBYTES).astype(np.uint64)


def seal(key: bytes, data: bytes) -> bytes:
    """Data that only a holder of the key can open or change."""
    return bytes(SecretBox(key).encrypt(data))


def open_sealed(key: bytes, sealed: bytes) -> bytes | None:
    """What was sealed; None where the key is another or a bit was changed."""
    try:
        return SecretBox(key).decrypt(sealed)
    except (CryptoError, ValueError):
        return None


def _statement(fingerprint: str, site_id: str, public_key: bytes) -> bytes:
    return _joined("ballast mask key", fingerprint, site_id, public_key.hex())


def _joined(*parts: str | int) -> bytes:
    """Parts one after the other, each behind its length, so that no two lists of parts read alike."""
    coded = [str(part).encode() for part in parts]
    return b"".join(len(part).to_bytes(4, "little") + part for part in coded)
