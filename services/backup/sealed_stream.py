"""A stream of bytes sealed with a passphrase: Argon2id for the key, XChaCha20-Poly1305 chunks in order.

File: magic, version, cost of the key (operations, memory in bytes), salt, header of the stream; then chunks of 64 KiB,
each 17 bytes longer than what it holds. libsodium's secretstream chains the chunks: one that is altered, missing,
doubled or out of place is refused, and only the last one says that it is the last. The file's own header is
authenticated with every chunk.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import BinaryIO, Final

from nacl import bindings as sodium
from nacl.pwhash import argon2id

from services.contracts.errors import ConflictError, InvalidInputError

MAGIC: Final = b"BALLASTB"
VERSION: Final = 1  # of the format; another one is refused
CHUNK: Final = 65536
"""Bytes of content in a chunk."""
MOST_MEMORY: Final = 2**30
"""A file that asks for more memory than this for its key is refused: it may be anybody's."""
MOST_OPERATIONS: Final = 16  # passes over the memory that a file may ask of who opens it
SHORTEST: Final = 12
"""Characters of a passphrase. A backup lies about for years, and who holds the file may try for as long."""
_HEADER: Final = struct.Struct(">8sBIQ16s")
_SEALED: Final = CHUNK + sodium.crypto_secretstream_xchacha20poly1305_ABYTES
_FINAL: Final = sodium.crypto_secretstream_xchacha20poly1305_TAG_FINAL
_MESSAGE: Final = sodium.crypto_secretstream_xchacha20poly1305_TAG_MESSAGE


@dataclass(frozen=True)
class KeyCost:
    """What one try of a passphrase costs: operations, and memory in bytes."""

    operations: int = argon2id.OPSLIMIT_MODERATE
    memory: int = argon2id.MEMLIMIT_MODERATE


class SealedWriter:
    """File to write into; :meth:`close` seals the last chunk, and a file without it is no backup."""

    def __init__(self, file: BinaryIO, passphrase: str, cost: KeyCost | None = None) -> None:
        cost = cost or KeyCost()
        salt = os.urandom(argon2id.SALTBYTES)
        header = _HEADER.pack(MAGIC, VERSION, cost.operations, cost.memory, salt)
        self._file = file
        self._state = sodium.crypto_secretstream_xchacha20poly1305_state()
        key = _key(check_passphrase(passphrase), salt, cost)
        self._header = header + sodium.crypto_secretstream_xchacha20poly1305_init_push(self._state, key)
        self._held = bytearray()
        file.write(self._header)

    def write(self, data: bytes) -> int:
        """Take bytes; whole chunks are written at once."""
        self._held += data
        while len(self._held) > CHUNK:  # one chunk stays, for only :meth:`close` knows which is the last
            self._push(bytes(self._held[:CHUNK]), _MESSAGE)
            del self._held[:CHUNK]
        return len(data)

    def close(self) -> None:
        """Write what is left as the last chunk; the file below stays open."""
        self._push(bytes(self._held), _FINAL)
        self._held.clear()

    def _push(self, data: bytes, tag: int) -> None:
        self._file.write(sodium.crypto_secretstream_xchacha20poly1305_push(self._state, data, self._header, tag))


class SealedReader:
    """What a :class:`SealedWriter` wrote. ``ConflictError`` with one line where it is not that, whole and in order."""

    def __init__(self, file: BinaryIO, passphrase: str) -> None:
        size = _HEADER.size + sodium.crypto_secretstream_xchacha20poly1305_HEADERBYTES
        self._file, self._header = file, file.read(size)
        if len(self._header) < size or not self._header.startswith(MAGIC):
            raise InvalidInputError("the file is no backup of Ballast")
        _, version, operations, memory, salt = _HEADER.unpack(self._header[: _HEADER.size])
        if version != VERSION:
            raise ConflictError(f"the backup has format {version}, and this version of Ballast reads {VERSION}")
        if not (1 <= operations <= MOST_OPERATIONS and 8192 <= memory <= MOST_MEMORY):
            raise ConflictError("the header of the backup was altered: no key costs that")
        self._state = sodium.crypto_secretstream_xchacha20poly1305_state()
        key = _key(passphrase, salt, KeyCost(operations, memory))
        sodium.crypto_secretstream_xchacha20poly1305_init_pull(self._state, self._header[_HEADER.size :], key)
        self._held = bytearray()
        self._ended = False
        self._chunks = 0

    def read(self, size: int = -1) -> bytes:
        """At most ``size`` bytes, all that are left for a negative one; empty at the end."""
        while not self._ended and (size < 0 or len(self._held) < size):
            self._pull()
        taken = bytes(self._held if size < 0 else self._held[:size])
        del self._held[: len(taken)]
        return taken

    def finish(self) -> None:
        """Read on to the last chunk: what was read before is the backup's whole content only then."""
        while not self._ended:
            self._pull()
            self._held.clear()

    def _pull(self) -> None:
        sealed = self._file.read(_SEALED)
        if not sealed:
            raise ConflictError("the backup is cut short: its last part is missing")
        try:
            data, tag = sodium.crypto_secretstream_xchacha20poly1305_pull(self._state, sealed, self._header)
        except (RuntimeError, ValueError, TypeError):
            if self._chunks == 0:
                raise ConflictError("the passphrase is not the backup's, or the file was altered") from None
            at = len(self._header) + self._chunks * _SEALED
            raise ConflictError(f"the backup is cut short or was altered, at byte {at} or after it") from None
        self._chunks += 1
        self._held += data
        self._ended = tag == _FINAL
        if self._ended and self._file.read(1):
            raise ConflictError("the backup was altered: something follows its end")


def check_passphrase(passphrase: str) -> str:
    """Return a passphrase that is long enough to seal with; ``InvalidInputError``."""
    if len(passphrase) < SHORTEST:
        raise InvalidInputError(f"the passphrase has {len(passphrase)} characters; choose one of {SHORTEST} or more")
    return passphrase


def is_backup(beginning: bytes) -> bool:
    """Whether a file that begins so is a backup."""
    return beginning.startswith(MAGIC)


def _key(passphrase: str, salt: bytes, cost: KeyCost) -> bytes:
    size = sodium.crypto_secretstream_xchacha20poly1305_KEYBYTES
    return bytes(argon2id.kdf(size, passphrase.encode(), salt, opslimit=cost.operations, memlimit=cost.memory))
