"""Public keys of NATS users: one key has one text, and what no server takes is refused where it is given."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import nkeys
import pytest

from services.contracts.errors import InvalidInputError
from services.contracts.keys.signing import check_public_key, new_seed_file, public_key, signer, verify


@pytest.fixture
def seed(tmp_path: Path) -> Path:
    new_seed_file(tmp_path / "plant.nk")
    return tmp_path / "plant.nk"


def text(body: bytes) -> str:
    """A key as it is written: prefix and key, and a checksum that holds."""
    return base64.b32encode(body + nkeys.crc16(bytearray(body)).to_bytes(2, "little")).decode()


def test_a_signature_is_of_all_bytes_and_of_one_key(seed: Path, tmp_path: Path) -> None:
    sign, key = signer(seed), new_seed_file(tmp_path / "other.nk")
    own, data = nkeys.from_seed(bytearray(seed.read_bytes().strip())).public_key.decode(), bytes(3 << 20)
    signature = sign(data)
    assert len(signature) == 64 and verify(own, data, signature) and verify(f"{key} {own}", data, signature)
    for changed in (data[:-1] + b"\1", b"\1" + data[1:], data[:-1], data + b"\0"):
        assert not verify(own, changed, signature)
    assert not verify(key, data, signature) and not verify("", data, signature)
    assert not verify(own, data, signature[:-1]) and not verify(own, data, b"")


@pytest.mark.parametrize("prefix", range(0xA0, 0xA8))
def test_of_the_eight_prefixes_that_begin_with_u_one_is_a_users(seed: Path, prefix: int) -> None:
    """Otherwise one key had eight texts, and two plants could bear it."""
    own = nkeys.from_seed(bytearray(seed.read_bytes().strip())).public_key.decode()
    told = text(bytes([prefix]) + base64.b32decode(own)[1:-2])
    assert told.startswith("U") and len(told) == 56
    if prefix == nkeys.PREFIX_BYTE_USER:
        assert check_public_key(told) == own
    else:
        with pytest.raises(InvalidInputError, match="begin with the prefix of a user"):
            check_public_key(told)
        assert not verify(told, b"data", signer(seed)(b"data"))


def test_a_key_that_is_a_byte_short_is_none_though_its_checksum_holds() -> None:
    """It has 56 characters with the padding; a NATS server that reads it refuses all of its users."""
    told = text(bytes([nkeys.PREFIX_BYTE_USER]) + bytes(31))
    assert len(told) == 56 and told.endswith("=")
    with pytest.raises(InvalidInputError, match="its 35 bytes"):
        check_public_key(told)


@pytest.mark.parametrize(("change", "words"), [
    (lambda key: key[:-1], "56 characters"), (lambda key: key + "A", "56 characters"),
    (lambda key: "S" + key[1:], "starts with U"), (lambda key: key[:20] + "1" + key[21:], "base 32"),
    (lambda key: key.lower().replace("u", "U", 1), "base 32"),
    (lambda key: key[:20] + ("B" if key[20] == "A" else "A") + key[21:], "checksum does not hold"),
])
def test_what_is_wrong_with_a_key_is_said(seed: Path, change: Callable[[str], str], words: str) -> None:
    own = nkeys.from_seed(bytearray(seed.read_bytes().strip())).public_key.decode()
    with pytest.raises(InvalidInputError, match=words):
        check_public_key(change(own))


@pytest.mark.parametrize("place", [2, 3, 30, 54, 57])
def test_a_seed_with_a_mistyped_character_is_none_and_not_the_seed_of_another_key(seed: Path, place: int) -> None:
    own = seed.read_text().strip()
    wrong = own[:place] + ("B" if own[place] == "A" else "A") + own[place + 1:]
    seed.write_text(wrong + "\n")
    for read in (public_key, signer):
        with pytest.raises(InvalidInputError, match="checksum|does not hold an nkey seed|no NATS user") as refused:
            read(seed)
        assert wrong not in str(refused.value)


def test_a_seed_is_one_of_a_user(seed: Path) -> None:
    key, text_of_it = public_key(seed), seed.read_text().strip()
    for around in (f"  {text_of_it}\r\n", text_of_it, text_of_it + "======"):
        seed.write_text(around)
        assert public_key(seed) == key
    for prefix in (nkeys.PREFIX_BYTE_ACCOUNT, nkeys.PREFIX_BYTE_OPERATOR):
        seed.write_bytes(bytes(nkeys.encode_seed(bytes(range(32)), prefix)))
        with pytest.raises(InvalidInputError, match="the seed of no NATS user"):
            public_key(seed)


def test_a_seed_that_cannot_be_read_is_told_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="cannot be read: Is a directory"):
        public_key(tmp_path)
    with pytest.raises(InvalidInputError, match="no key at"):
        public_key(tmp_path / "none.nk")
