"""Ed25519 keys in the NATS nkey form: what a site signs with, and what the OEM's side checks with."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import nkeys
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from services.contracts.errors import ConflictError, InvalidInputError
from services.contracts.keys.once import written_once

PUBLIC_KEY_LENGTH = 56  # characters: 35 bytes (prefix, key, checksum) in base 32
_BYTES = 35


def new_seed_file(path: Path) -> str:
    """Write a new user seed (mode 0600), whole or not at all, and return its public key.

    ``ConflictError`` where a file is there.
    """
    seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not written_once(path, bytes(seed) + b"\n"):
        raise ConflictError(f"{path} exists already; a key is never overwritten")
    return public_key(path)


def _pair(path: Path) -> nkeys.KeyPair:
    """Keys of a seed file; ``InvalidInputError`` where it cannot be read, or holds no seed of a user as NATS writes it.

    ``nkeys`` reads a seed of any prefix and looks at no checksum: a mistyped one would be the seed of another key.
    """
    try:
        text = path.read_bytes().strip()
        prefix, raw = nkeys.decode_seed(bytearray(text))
        pair = nkeys.from_seed(bytearray(text))
    except FileNotFoundError:
        raise InvalidInputError(f"no key at {path}") from None
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, nkeys.NkeysError):
        raise InvalidInputError(f"{path} does not hold an nkey seed (it should start with SU)") from None
    if prefix != nkeys.PREFIX_BYTE_USER:
        raise InvalidInputError(f"{path} holds the seed of no NATS user (it should start with SU)")
    if bytes(nkeys.encode_seed(bytes(raw), prefix)) != text.rstrip(b"="):
        raise InvalidInputError(f"the checksum of the seed in {path} does not hold: a character was mistyped")
    return pair


def public_key(path: Path) -> str:
    """Public key (U..., 56 characters) of a seed file."""
    key: str = _pair(path).public_key.decode()
    return key


def signer(path: Path) -> Callable[[bytes], bytes]:
    """Sign bytes with the seed of a file: Ed25519, 64 bytes."""
    pair = _pair(path)

    def sign(data: bytes) -> bytes:
        signature: bytes = bytes(pair.sign(data))
        return signature

    return sign


@lru_cache(maxsize=4096)
def _raw_public_key(key: str) -> bytes:
    """The 32 bytes of a NATS user public key; :class:`InvalidInputError` with the reason where it is not one.

    Remembered, as the same few keys are held against every message.
    """
    if len(key) != PUBLIC_KEY_LENGTH or not key.startswith("U"):
        raise InvalidInputError("not a NATS user public key: it has 56 characters and starts with U")
    try:
        raw = base64.b32decode(key)
    except ValueError:
        raise InvalidInputError("not a NATS user public key: it is written in base 32 (A-Z, 2-7)") from None
    if nkeys.crc16(bytearray(raw[:-2])) != int.from_bytes(raw[-2:], "little"):
        raise InvalidInputError("the public key's checksum does not hold: a character was mistyped")
    # Eight prefixes begin with U, and a shorter key is padded: a NATS server takes no such users, or one key as two.
    if len(raw) != _BYTES or raw[0] != nkeys.PREFIX_BYTE_USER:
        raise InvalidInputError("not a NATS user public key: its 35 bytes begin with the prefix of a user")
    return raw[1:-2]


def check_public_key(key: str) -> str:
    """Return the key if it is a NATS user public key, else raise :class:`InvalidInputError`."""
    _raw_public_key(key)
    return key


def verify(key: str, data: bytes, signature: bytes) -> bool:
    """Whether ``signature`` is the one that the holder of the key ``U...`` made over ``data``.

    While a key is changed for another, ``key`` is both, apart by a blank: either may have signed.
    """
    return any(_signed(each, data, signature) for each in key.split())


def _signed(key: str, data: bytes, signature: bytes) -> bool:
    try:
        VerifyKey(_raw_public_key(key)).verify(data, signature)
    except (InvalidInputError, ValueError, BadSignatureError):
        return False
    return True
