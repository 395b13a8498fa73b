"""The coordinator's key is changed whole or not at all, wherever the change is cut, and can be changed then."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from services.bus import server
from services.bus.configuration import BusFiles
from services.contracts.errors import UnavailableError
from services.contracts.keys.signing import new_seed_file, public_key


class PowerCut(Exception):
    """The machine stopped."""


@pytest.mark.parametrize("step", ["state_change", "write_statements", "write_atomically", "json", "replace"])
def test_a_change_that_was_cut_left_the_key_and_is_made_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    files = BusFiles(tmp_path)
    first = new_seed_file(files.coordinator_seed)

    def stop(*_: object, **__: object) -> None:
        raise PowerCut

    with monkeypatch.context() as cut:
        if step == "replace":
            cut.setattr(Path, "replace", stop)
        elif step == "json":
            cut.setattr("json.dumps", stop)
        else:
            cut.setattr(server, step, stop)
        with pytest.raises(PowerCut):
            server.rotate_coordinator(files, datetime.now(UTC) + timedelta(hours=1))
    assert public_key(files.coordinator_seed) == first and server.coordinator_line(files) == ()
    assert server.coordinator_keys(files, datetime.now(UTC)) == first

    key, former = server.rotate_coordinator(files, datetime.now(UTC) + timedelta(hours=1))
    assert (public_key(files.coordinator_seed), former) == (key, first) and key != first
    assert [(each.former, each.next) for each in server.coordinator_line(files)] == [(first, key)]
    assert server.coordinator_keys(files, datetime.now(UTC)) == f"{key} {first}"
    (end,) = (each.former_until for each in server.coordinator_line(files))
    assert server.coordinator_keys(files, end - timedelta(microseconds=1)) == f"{key} {first}"
    assert server.coordinator_keys(files, end) == key, "at its end it is over"
    assert os.listdir(files.folder).count("coordinator.nk.new") == 0


@pytest.mark.parametrize("said", [
    b"{", b"[]", b"{}", b"\xff", b'{"public_key": "U"}', b'{"public_key": "U", "until": 7}', b"[" * 100_000,
    b'{"public_key": "U", "until": "2030-01-01"}', b'{"public_key": "U", "until": "soon"}',
    b'{"public_key": "U", "until": "2030-01-01T00:00:00+00:00", "before": [3]}',
])
def test_a_file_of_former_keys_that_was_damaged_is_named(tmp_path: Path, said: bytes) -> None:
    files = BusFiles(tmp_path)
    new_seed_file(files.coordinator_seed)
    files.coordinator_former.write_bytes(said)
    with pytest.raises(UnavailableError, match="^.*coordinator-former.json does not say which former keys of the OEM"):
        server.coordinator_keys(files, datetime.now(UTC))


def test_users_that_are_no_text_are_not_those_that_the_server_should_have(tmp_path: Path) -> None:
    files = BusFiles(tmp_path)
    new_seed_file(files.coordinator_seed)
    server.update_users(files, {})
    assert server.are_users_current(files, {})
    files.users.write_bytes(b"\xff" + files.users.read_bytes())
    assert not server.are_users_current(files, {})


@pytest.mark.parametrize("standing", [None, (), ("b" * 64, "a" * 64)])
def test_of_a_stolen_key_the_statement_says_what_stood(tmp_path: Path, standing: tuple[str, ...] | None) -> None:
    """Without it the thief's versions would be good to whoever trusts the next key; with none nothing of it stands."""
    files, until = BusFiles(tmp_path), datetime.now(UTC) + timedelta(hours=1)
    new_seed_file(files.coordinator_seed)
    server.rotate_coordinator(files, until, standing)
    (change,) = server.coordinator_line(files)
    assert (change.stolen, change.standing) == (standing is not None, tuple(sorted(standing or ())))
    assert change.former_until == (until if standing is None else change.at)


def test_the_line_leads_from_the_first_key_to_the_present_one_however_many_there_were(tmp_path: Path) -> None:
    """A plant that was away for all of them trusts the first yet; each former key holds to its own end."""
    files, now = BusFiles(tmp_path), datetime.now(UTC)
    keys = [new_seed_file(files.coordinator_seed)]
    for hours in (3, 1, 2):
        keys.append(server.rotate_coordinator(files, now + timedelta(hours=hours))[0])
    line = [(each.former, each.next) for each in server.coordinator_line(files)]
    assert line == list(zip(keys[:-1], keys[1:], strict=True))
    for after, still in ((0.5, [2, 1, 0]), (1.5, [2, 0]), (2.5, [0]), (3.5, [])):
        held = server.coordinator_keys(files, now + timedelta(hours=after))
        assert held.split() == [keys[3], *(keys[number] for number in still)]
    at_once = server.rotate_coordinator(files, now)[0]
    assert server.coordinator_keys(files, datetime.now(UTC)) == at_once, "what ends at once ends those before it, too"
