"""A sealed file is read back whole, or refused with one line."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl.pwhash import argon2id

from services.backup import archive
from services.backup.sealed_stream import (
    CHUNK,
    MOST_OPERATIONS,
    KeyCost,
    SealedReader,
    SealedWriter,
    check_passphrase,
    is_backup,
)
from services.contracts.errors import BallastError, ConflictError, InvalidInputError

WORD = "correct horse battery"
CHEAP = KeyCost(operations=1, memory=8192)
HEADER = 8 + 1 + 4 + 8 + 16 + 24
SEALED = CHUNK + 17


def sealed(content: bytes, word: str = WORD) -> bytes:
    file = io.BytesIO()
    writer = SealedWriter(file, word, CHEAP)
    writer.write(content)
    writer.close()
    return file.getvalue()


def test_a_try_of_a_passphrase_costs_what_libsodium_holds_for_secrets_that_lie_about() -> None:
    """A backup is kept for years: whoever finds it may try for as long, with as many machines."""
    assert KeyCost() == KeyCost(argon2id.OPSLIMIT_MODERATE, argon2id.MEMLIMIT_MODERATE)
    assert KeyCost().operations >= 3 and KeyCost().memory >= 256 * 2**20


def opened(data: bytes, word: str = WORD) -> bytes:
    reader = SealedReader(io.BytesIO(data), word)
    content = reader.read()
    reader.finish()
    return content


CONTENT = b"".join(number.to_bytes(4, "big") for number in range(CHUNK))  # four chunks, all different
FILE = sealed(CONTENT)


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_content_comes_back(size: int) -> None:
    data = sealed(CONTENT[:size])
    assert opened(data) == CONTENT[:size]
    assert is_backup(data[:8])
    assert CONTENT[:64] not in data


def test_pieces_are_read_as_they_were_asked_for() -> None:
    reader = SealedReader(io.BytesIO(FILE), WORD)
    assert b"".join(iter(lambda: reader.read(10_007), b"")) == CONTENT


@given(st.integers(0, len(FILE) - 1), st.integers(0, 7))
@settings(max_examples=60)
def test_a_flipped_bit_is_noticed(at: int, bit: int) -> None:
    changed = bytearray(FILE)
    changed[at] ^= 1 << bit
    if 9 <= at < 21:
        return  # the cost of the key: tried below, for it may be dear
    with pytest.raises(BallastError):
        opened(bytes(changed))


@given(st.integers(0, len(FILE) - 1))
@settings(max_examples=40)
def test_a_file_cut_short_is_noticed(size: int) -> None:
    with pytest.raises(BallastError):
        opened(FILE[:size])


def chunks() -> list[bytes]:
    return [FILE[HEADER + start : HEADER + start + SEALED] for start in range(0, len(FILE) - HEADER, SEALED)]


@pytest.mark.parametrize("order", [(1, 0, 2, 3), (0, 2, 3), (0, 1, 1, 2, 3), (0, 1, 3), (0, 1, 2, 3, 3), (0, 1, 2)])
def test_chunks_out_of_order_left_out_or_doubled_are_noticed(order: tuple[int, ...]) -> None:
    parts = chunks()
    assert len(parts) == 4
    with pytest.raises(ConflictError, match="cut short|altered"):
        opened(FILE[:HEADER] + b"".join(parts[number] for number in order))


def test_another_passphrase_is_refused() -> None:
    with pytest.raises(ConflictError, match="passphrase is not the backup's"):
        opened(FILE, "correct horse batterx")


def test_what_is_no_backup_is_said_to_be_none() -> None:
    for data in (b"", b"BALLASTB", b"PK\x03\x04" + bytes(200)):
        with pytest.raises(InvalidInputError, match="no backup"):
            opened(data)


def test_a_header_may_not_ask_for_all_memory_or_time() -> None:
    dear = (MOST_OPERATIONS + 1).to_bytes(4, "big") + (8192).to_bytes(8, "big")
    for cost in (b"\xff" * 12, (1).to_bytes(4, "big") + (2**40).to_bytes(8, "big"), bytes(12), dear):
        with pytest.raises(ConflictError, match="header"):
            SealedReader(io.BytesIO(FILE[:9] + cost + FILE[21:]), WORD)


def test_a_newer_format_is_told() -> None:
    with pytest.raises(ConflictError, match="format 2"):
        SealedReader(io.BytesIO(FILE[:8] + b"\x02" + FILE[9:]), WORD)


def test_short_passphrases_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="11 characters"):
        check_passphrase("x" * 11)
    with pytest.raises(InvalidInputError):
        SealedWriter(io.BytesIO(), "x" * 11, CHEAP)


def test_members_are_all_there_only_where_the_last_chunk_is() -> None:
    """Also where the archive in it ended before, and its reader would be content."""
    file = io.BytesIO()
    stream = SealedWriter(file, WORD, CHEAP)
    with tarfile.open(fileobj=stream, mode="w|") as tar:  # type: ignore[call-overload]
        archive.Writer(tar).add("a", b"content")
    stream.write(bytes(2 * CHUNK))
    stream.close()
    whole = file.getvalue()
    assert list(archive.members(SealedReader(io.BytesIO(whole), WORD))) == [("a", b"content")]
    with pytest.raises(ConflictError, match="cut short"):
        list(archive.members(SealedReader(io.BytesIO(whole[: HEADER + 2 * SEALED]), WORD)))


def test_a_backup_that_failed_on_the_way_is_none() -> None:
    file = io.BytesIO()
    with pytest.raises(OSError, match="full"), archive.writing(SealedWriter(file, WORD, CHEAP)) as made:
        made.add("a", bytes(2 * CHUNK))
        raise OSError("the disk is full")
    with pytest.raises(ConflictError, match="cut short"):
        list(archive.members(SealedReader(io.BytesIO(file.getvalue()), WORD)))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE])
def test_what_is_no_file_in_a_backup_is_refused(kind: bytes) -> None:
    """A link might lead a later member out of the folder."""
    file = io.BytesIO()
    stream = SealedWriter(file, WORD, CHEAP)
    with tarfile.open(fileobj=stream, mode="w|") as tar:  # type: ignore[call-overload]
        archive.Writer(tar).add("a", b"content")
        odd = tarfile.TarInfo("b")
        odd.type, odd.linkname = kind, "a"
        tar.addfile(odd)
    stream.close()
    found = archive.members(SealedReader(io.BytesIO(file.getvalue()), WORD))
    assert next(found) == ("a", b"content")
    with pytest.raises(ConflictError, match="the backup holds something that is no file: b"):
        next(found)
