"""Keys of sites before they are enrolled."""

from __future__ import annotations

import os

import nkeys
import pytest

from services.contracts.errors import InvalidInputError
from services.identity.enrolment import check_site_key


def make(prefix: int = nkeys.PREFIX_BYTE_USER) -> tuple[str, str]:
    """Seed and public key of a new nkey."""
    seed = nkeys.encode_seed(os.urandom(32), prefix)
    return seed.decode(), nkeys.from_seed(bytearray(seed)).public_key.decode()


def test_a_users_key_is_accepted() -> None:
    for _ in range(20):
        _, key = make()
        assert check_site_key(f" {key}\n") == key


def test_every_mistyped_character_is_found() -> None:
    _, key = make()
    for place in range(1, len(key)):
        wrong = key[:place] + ("A" if key[place] != "A" else "B") + key[place + 1 :]
        with pytest.raises(InvalidInputError, match="public key"):
            check_site_key(wrong)


@pytest.mark.parametrize("key", ["", "U", "U" * 56, "hello", "U" + "1" * 55, "U" + "é" * 55])
def test_what_is_no_key_is_refused_in_one_line(key: str) -> None:
    with pytest.raises(InvalidInputError) as failure:
        check_site_key(key)
    assert "\n" not in str(failure.value)


def test_other_kinds_of_keys_are_refused() -> None:
    for prefix in (nkeys.PREFIX_BYTE_ACCOUNT, nkeys.PREFIX_BYTE_OPERATOR, nkeys.PREFIX_BYTE_SERVER):
        with pytest.raises(InvalidInputError, match="not a NATS user public key"):
            check_site_key(make(prefix)[1])


def test_a_seed_is_recognised_and_not_repeated() -> None:
    seed, _ = make()
    with pytest.raises(InvalidInputError, match="secret seed") as failure:
        check_site_key(seed)
    assert failure.value.code == "secret_seed"
    assert seed[4:] not in str(failure.value)
