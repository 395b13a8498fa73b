"""The keys that all API processes share: made once, held to the store's fingerprints, never in the store."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from services.contracts.access.service_key import ServiceKey
from services.contracts.errors import InvalidInputError, UnavailableError
from services.identity import service_keys
from services.identity.service_keys import (
    MEANINGS,
    PSEUDONYMS,
    WEBHOOKS,
    OtherKeyError,
    ServiceKeys,
    check_name,
    fingerprint,
    read_key,
    subkey,
)
from services.round_store.store import RoundStore
from tests.oracles.store_walk import all_columns

KEY = bytes(range(32))


@pytest.fixture
def home(tmp_path: Path, store: RoundStore) -> Callable[[str], ServiceKeys]:
    return lambda name: ServiceKeys(tmp_path / name, store.service_keys)


def test_the_first_home_makes_the_key_and_another_needs_a_copy(
    home: Callable[[str], ServiceKeys], store: RoundStore
) -> None:
    first, second = home("one"), home("two")
    assert not first.problem(WEBHOOKS), "no key is missed that nobody ever used"
    key = first.get(WEBHOOKS)
    path = first.path(WEBHOOKS)
    assert len(key) == 32 and path.stat().st_mode & 0o777 == 0o600 and first.get(WEBHOOKS) == key
    with pytest.raises(OtherKeyError, match=f"two/webhooks.key is missing; copy the file [^ ]+:{path} here") as found:
        second.get(WEBHOOKS)
    assert "\n" not in str(found.value) and "`ballast key replace webhooks.key`" in str(found.value)
    assert not second.path(WEBHOOKS).exists() and second.problem(WEBHOOKS) == str(found.value)
    second.path(WEBHOOKS).parent.mkdir()
    second.path(WEBHOOKS).write_text("ab" * 32)
    with pytest.raises(OtherKeyError, match="two/webhooks.key is not the key that this service uses; copy the file"):
        second.get(WEBHOOKS)
    second.path(WEBHOOKS).write_bytes(path.read_bytes())
    assert second.get(WEBHOOKS) == key and not second.problem(WEBHOOKS)
    second.path(WEBHOOKS).write_text(path.read_text()[:40])
    assert "cut short" in second.problem(WEBHOOKS) and "copy the file" in second.problem(WEBHOOKS)
    (known,) = store.service_keys.list_keys()
    assert known.fingerprint == fingerprint(WEBHOOKS, key)
    cells = [str(cell.value) for cell in all_columns(store.engine)]
    assert not any(key.hex() in cell or hashlib.sha256(key).hexdigest() in cell for cell in cells)


def test_a_key_of_before_the_store_knew_keys_stays(home: Callable[[str], ServiceKeys], tmp_path: Path) -> None:
    for name in MEANINGS:
        (tmp_path / name).write_text("cd" * 32 + "\n")
    keys = home("")
    assert {keys.get(name).hex() for name in MEANINGS} == {"cd" * 32}
    assert not any(keys.problem(name) for name in MEANINGS)


@pytest.mark.parametrize("homes", [1, 2])
def test_of_many_at_once_one_makes_the_key(home: Callable[[str], ServiceKeys], homes: int, tmp_path: Path) -> None:
    def begin(number: int) -> bytes | None:
        try:
            return home(f"home-{number % homes}").get(PSEUDONYMS)
        except OtherKeyError:
            return None

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(begin, range(8)))
    assert len(set(found) - {None}) == 1
    assert homes > 1 or None not in found
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in files] == [PSEUDONYMS], "who came second leaves no key of its own, nor a scratch file"


def test_a_key_that_its_maker_takes_back_meanwhile_is_another_homes(
    home: Callable[[str], ServiceKeys], monkeypatch: pytest.MonkeyPatch
) -> None:
    def made_and_taken_back(path: Path, text: Callable[[], str]) -> bool:
        monkeypatch.undo()
        home("one").get(PSEUDONYMS)
        return False

    monkeypatch.setattr(service_keys, "made_once", made_and_taken_back)
    with pytest.raises(OtherKeyError, match="two/pseudonyms.key is missing; copy the file [^ ]+one/pseudonyms.key"):
        home("two").get(PSEUDONYMS)


def test_what_needs_no_key_refuses_another_one_alone(home: Callable[[str], ServiceKeys]) -> None:
    home("one").get(WEBHOOKS)
    other = home("two")
    other.check_held()
    other.path(WEBHOOKS).parent.mkdir()
    other.path(PSEUDONYMS).write_text("of no service yet")
    other.check_held()
    other.path(WEBHOOKS).write_text("ab" * 32)
    with pytest.raises(OtherKeyError, match="runs without the file too"):
        other.check_held()


def test_a_process_notes_that_its_key_was_replaced(home: Callable[[str], ServiceKeys], store: RoundStore) -> None:
    keys, began = home("one"), home("one")
    before = keys.get(PSEUDONYMS)
    began.path(PSEUDONYMS).write_text("ef" * 32)
    after = bytes.fromhex("ef" * 32)
    replaced = store.service_keys.replace(PSEUDONYMS, fingerprint(PSEUDONYMS, after), "here")
    assert replaced is not None and replaced.fingerprint == fingerprint(PSEUDONYMS, before)
    assert "was replaced since this process began: start it again" in keys.problem(PSEUDONYMS)
    assert not began.problem(PSEUDONYMS) and began.get(PSEUDONYMS) == after


@pytest.mark.parametrize("text", ["", "no key", "00ff", "\xff", "a" * 65])
def test_a_damaged_key_is_told_of_and_not_entered(
    home: Callable[[str], ServiceKeys], store: RoundStore, tmp_path: Path, text: str
) -> None:
    (tmp_path / WEBHOOKS).write_text(text, encoding="latin-1")
    with pytest.raises(UnavailableError, match="cut short or no key of 64 hexadecimal digits"):
        home("").get(WEBHOOKS)
    assert store.service_keys.list_keys() == []


def test_a_home_that_cannot_be_written_is_told_of(home: Callable[[str], ServiceKeys], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnavailableError, match="cannot be made"):
        home("file").get(WEBHOOKS)


def test_fingerprints_and_subkeys_are_of_one_name_and_tell_nothing_of_the_secrets() -> None:
    made = {fingerprint(name, KEY) for name in MEANINGS} | {subkey(KEY, name).hex() for name in MEANINGS}
    assert len(made) == 4 and all(re.fullmatch("[0-9a-f]{64}", each) for each in made)
    assert fingerprint(WEBHOOKS, KEY) != fingerprint(WEBHOOKS, KEY[::-1])


def test_only_keys_have_names(tmp_path: Path) -> None:
    assert check_name(WEBHOOKS) == WEBHOOKS
    with pytest.raises(InvalidInputError, match="webhooks.key, pseudonyms.key"):
        check_name("../coordinator.nk")
    (tmp_path / "key").write_text(" " + KEY.hex() + "\n")
    assert read_key(tmp_path / "key") == KEY and service_keys.KEY_BYTES == 32


def test_the_store_lists_keys_by_name_and_keeps_a_line_of_where_one_was_used(store: RoundStore) -> None:
    known = store.service_keys
    for name in ("b.key", "c.key", "a.key"):
        known.first(name, "f" * 64, "host:/" + "deep/" * 100 + "\x00")
    assert [each.name for each in known.list_keys()] == ["a.key", "b.key", "c.key"]
    assert {len(each.home) for each in known.list_keys()} == {300}


def test_a_key_that_lay_in_the_home_folder_stays_where_another_was_quicker(tmp_path: Path) -> None:
    """It may be that of a service whose store is another, and of which nobody has a copy."""
    class Quicker:
        def find(self, name: str) -> None:
            return None

        def first(self, name: str, own: str, home: str) -> ServiceKey:
            return ServiceKey(name=name, fingerprint="f" * 64, home="there:/home", created_at=datetime.now(UTC))

    for made, lay in (("made", False), ("lay", True)):
        keys = ServiceKeys(tmp_path / made, Quicker())
        keys.path(WEBHOOKS).parent.mkdir()
        if lay:
            keys.path(WEBHOOKS).write_text("ab" * 32)
        with pytest.raises(OtherKeyError):
            keys.get(WEBHOOKS)
        assert keys.path(WEBHOOKS).exists() is lay, "only a key that was made just now goes"
