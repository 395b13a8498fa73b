"""`ballast-site check` finds each file that the agent could not start with, in the words that `run` ends with."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from services.bus.certificates import ensure_certificates
from services.bus.configuration import BusFiles
from services.contracts.keys.signing import new_seed_file, signer
from services.contracts.wire.messages import Hello
from services.site_agent.cli import main
from services.site_agent.outgoing.egress import Egress
from services.site_agent.outgoing.ledger import Ledger
from services.site_agent.own_use.own_files import LEAST_FREE_BYTES

Capture = pytest.CaptureFixture[str]
ENTRIES = 3


@pytest.fixture
def plant(
    tmp_path: Path, asset_type_file: Path, make_table: Any, write_csv: Callable[..., Path], capsys: Capture
) -> Path:
    """A site with data, the OEM's certificate and a ledger of some entries."""
    oem = BusFiles(tmp_path / "oem")
    oem.folder.mkdir()
    ensure_certificates(oem, ["localhost"])
    home, data = tmp_path / "p", write_csv(make_table(60))
    given = ["--asset-type", str(asset_type_file), "--data", str(data), "--ca", str(oem.authority)]
    given += ["--oem-key", new_seed_file(oem.folder / "coordinator.nk")]
    assert main(["init", "--site-id", "p", "--dir", str(home), *given]) == 0
    capsys.readouterr()
    with Ledger(home / "ledger.jsonl") as ledger:
        egress = Egress(ledger, signer(home / "site.nk"), 10_000)
        for _ in range(ENTRIES):
            egress.release(Hello(site_id="p", version="1", instance="0" * 16))
    return home


def checked(plant: Path, capsys: Capture) -> tuple[int, list[str], str]:
    """Exit code, findings, and what stands on stderr."""
    code = main(["check", "--json", "--config", str(plant / "site.toml")])
    out, err = capsys.readouterr()
    return code, json.loads(out)["findings"] if out else [], err


def put(name: str, text: str) -> Callable[[Path], object]:
    return lambda plant: (plant / name).write_text(text)


def gone(name: str) -> Callable[[Path], object]:
    return lambda plant: (plant / name).unlink()


def cut(plant: Path) -> None:
    lines = (plant / "ledger.jsonl").read_text().splitlines(keepends=True)
    (plant / "ledger.jsonl").write_text("".join(lines[:-1]))


def behind_a_proxy(plant: Path) -> None:
    path = plant / "site.toml"
    text = re.sub("(?m)^servers = .*", 'servers = ["wss://localhost:1"]', path.read_text())
    path.write_text('proxy = "http://localhost:1"\nproxy_auth = "nowhere"\n' + text)


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "keys that nobody heard": (put("heard-keys.json", "{"), "heard-keys.json does not hold what was heard"),
    "no key": (gone("site.nk"), "no key at .*site.nk"),
    "an empty key": (put("site.nk", ""), "site.nk does not hold an nkey seed"),
    "no certificate": (gone("../oem/ca.pem"), "no certificate file at .*ca.pem"),
    "a certificate that is none": (put("../oem/ca.pem", "x"), "ca.pem is not a PEM certificate"),
    "no ledger any more": (gone("ledger.jsonl"), "entries 1 to 3 are missing, cut off at the end; find out why"),
    "a ledger that was cut": (cut, "entry 3 is missing, cut off at the end; find out why, then move it"),
    "no password of the proxy": (behind_a_proxy, "proxy_auth names .*nowhere, which cannot be read"),
}


@pytest.mark.parametrize("damage", sorted(DAMAGES))
def test_a_file_that_the_agent_cannot_start_with_is_found(damage: str, plant: Path, capsys: Capture) -> None:
    do, said = DAMAGES[damage]
    do(plant)
    code, _, found = checked(plant, capsys)
    assert code == 1 and found.count("\n") == 1 and re.search(said, found), found
    assert main(["run", "--timeout", "0.1", "--config", str(plant / "site.toml")]) == 1
    assert found in capsys.readouterr().err, "the agent ends with the same line"


def test_files_that_are_well_are_said_to_be(plant: Path, capsys: Capture) -> None:
    code, findings, _ = checked(plant, capsys)
    assert code == 0 and [line for line in findings if "own files" in line] == [
        "the site's own files can be used: key, settings of the link, ledger (3 entries, none changed)"
    ]
    assert not [line for line in findings if "take care" in line]


def test_that_the_oems_key_is_not_known_is_said(plant: Path, capsys: Capture) -> None:
    path = plant / "site.toml"
    path.write_text(re.sub("(?m)^oem_key = .*\n", "", path.read_text()))
    code, findings, _ = checked(plant, capsys)
    (line,) = [line for line in findings if "take care" in line]
    assert code == 0 and "the settings name no oem_key, so a task is answered whoever has the server" in line


@pytest.mark.parametrize(("server", "ca", "told"), [
    ("nats://oem:4222", False, True), ("ws://oem:80", False, True), ("nats://oem:4222", True, False),
    ("tls://oem:4222", False, False), ("nats://localhost:4222", False, False),
])
def test_that_answers_may_go_in_the_open_is_said(
    server: str, ca: bool, told: bool, plant: Path, capsys: Capture
) -> None:
    path = plant / "site.toml"
    text = re.sub("(?m)^servers = .*", f'servers = ["{server}"]', path.read_text())
    path.write_text(text if ca else re.sub("(?m)^ca = .*\n", "", text))
    code, findings, _ = checked(plant, capsys)
    assert code == 0 and any("may go in the open" in line for line in findings) == told


def with_a_password(plant: Path) -> None:
    behind_a_proxy(plant)
    (plant / "nowhere").write_text("plant:word\n")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
@pytest.mark.parametrize("name", ["site.nk", "ledger.jsonl", "exposure.sqlite", "nowhere"])
def test_a_file_that_others_can_read_or_change_is_told(name: str, mode: int, plant: Path, capsys: Capture) -> None:
    with_a_password(plant)
    (plant / "exposure.sqlite").touch()
    for private in ("exposure.sqlite", "nowhere"):
        (plant / private).chmod(0o600)
    (plant / name).chmod(mode)
    code, findings, _ = checked(plant, capsys)
    told = [line for line in findings if "take care" in line]
    assert code == 0 and len(told) == 1
    wanted = f"has mode {mode:04o}, so that others can read or change it: chmod go= {plant / name}"
    assert told[0].endswith(wanted)


@pytest.mark.parametrize("mode", [0o720, 0o702])
@pytest.mark.parametrize("name", [".", "policy.toml", "asset_type.toml", "site.log"])
def test_what_others_can_write_and_the_agent_goes_by_is_told(
    name: str, mode: int, plant: Path, capsys: Capture
) -> None:
    (plant / "site.log").touch(0o600)
    (plant / name).chmod(mode)
    code, findings, _ = checked(plant, capsys)
    assert code == 0 and [line for line in findings if "take care" in line] == [
        f"take care: {plant / name} has mode {mode:04o}, so that others can change what it holds: "
        f"chmod go-w {plant / name}"
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("name", [".", "policy.toml"])
def test_what_belongs_to_another_user_is_told(name: str, plant: Path, capsys: Capture) -> None:
    os.chown(plant / name, 65534, 65534)
    code, findings, _ = checked(plant, capsys)
    assert code == 0 and [line for line in findings if "take care" in line] == [
        f"take care: {plant / name} belongs to another user, who can change what it holds: chown it to this one"
    ]


@pytest.mark.parametrize(("free", "told"), [(LEAST_FREE_BYTES - 1, 1), (LEAST_FREE_BYTES, 0)])
def test_a_disk_without_room_is_told_of_once(
    plant: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, free: int, told: int
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=free))
    code, findings, _ = checked(plant, capsys)
    found = [line for line in findings if "MB free; make room" in line]
    assert (code, len(found)) == (0, told) and all(str(plant) in line for line in found)
