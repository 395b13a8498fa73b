"""`ballast doctor` on a home of its own: well, and with faults in it."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import PIPE

import pytest
from sqlalchemy import text

from api.backend.wiring import open_backend
from api.cli.main import main
from api.system.doctor import last_backup
from services.bus.certificates import ensure_certificates
from services.bus.configuration import BusFiles
from services.bus.server import rotate_coordinator
from services.contracts.history.audit import BACKUP_MADE
from services.contracts.keys.signing import public_key
from services.process.process_lock import held
from services.process.settings import Settings
from tests.api.system.examined import examined


def test_a_home_that_is_well(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "flows.lock").touch(mode=0o600)
    with open_backend(Settings.load(home, {})) as backend, held(home / "flows.lock"):
        backend.store.audit.append(actor="me", role=None, action=BACKUP_MADE, target="store")
        assert last_backup(backend) is not None
        code, found = examined(home, capsys)
    assert (code, {each["check"]: each for each in found.values() if each["state"] != "ok"}) == (0, {})
    assert {"store", "disk", "clock", "audit trail", "backup", "flows process", "sites", "runs"} <= set(found)
    assert main(["doctor", "--home", str(home)]) == 0
    said = capsys.readouterr().out
    assert "WARN  backup" not in said and "WARN  flows process" in said and "-> `ballast up`" in said


def test_settings_are_a_secret_where_they_hold_a_password(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever follows the guides writes them with an editor, which others may read: hosts and ports."""
    path = home / "ballast.toml"
    path.chmod(0o644)
    assert examined(home, capsys)[1]["secrets"]["state"] == "ok"
    path.chmod(0o664)
    assert examined(home, capsys)[1]["secrets"]["state"] == "fail", "others may write them"
    path.chmod(0o644)
    plain = path.read_text()
    for host in ("ada:secret@db", "db?Password=secret"):
        path.write_text(plain.replace("[mlflow]\n", f'[mlflow]\ntracking_uri = "http://{host}"\n'))
        found = examined(home, capsys)[1]["secrets"]
        assert found["state"] == "fail" and "ballast.toml has mode 0644" in found["said"]


def test_planted_faults_are_found(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings.load(home, {})
    (home / "nats/server.key").chmod(0o644)
    (home / "nats/server.pem").write_text("no certificate")
    with open_backend(settings) as backend, closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", settings.api.port))
        taken.listen()
        backend.store.audit.append(actor="me", role=None, action="x", target="y")
        backend.store.audit.append(actor="me", role=None, action=BACKUP_MADE, target="store")
        with backend.store.database.write() as session:
            session.execute(text("DROP TRIGGER audit_events_no_update"))
            session.execute(text("UPDATE audit_events SET reason = 'another' WHERE number = 1"))
            late = f"{datetime.now(UTC) + timedelta(hours=3):%Y-%m-%d %H:%M:%S.%f}"
            session.execute(text("UPDATE audit_events SET at = :at WHERE number = 2"), {"at": late})
        code, found = examined(home, capsys)
    wrong = {name for name, each in found.items() if each["state"] == "fail"}
    assert code == 1
    assert wrong == {
        f"port {settings.api.port}", "secrets", "certificate of the plant link (server.pem)", "audit trail", "clock",
    }
    assert all(found[name]["todo"] for name in wrong)


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux's tables of sockets")
def test_a_server_of_ours_that_hangs_is_not_called_a_stranger(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Who is told that a stranger holds the port would stop it, or choose another port in vain."""
    port = Settings.load(home, {}).prefect.port
    listens = f"import socket; held = socket.create_server(('127.0.0.1', {port})); print(); input()"
    for served, said in ((home, "holds it and does not answer"), (home / "other", "another home folder")):
        environment = {**os.environ, "BALLAST_HOME": str(served)}
        holder = subprocess.Popen([sys.executable, "-c", listens], env=environment, stdin=PIPE, stdout=PIPE)
        with holder:
            assert holder.stdout is not None and holder.stdout.readline() == b"\n"
            found = examined(home, capsys)[1][f"port {port}"]
            holder.kill()
        assert found["state"] == "fail" and said in found["said"] and found["todo"]


def test_a_flows_process_that_hangs_is_found(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It holds its lock all the same."""
    lock = Settings.load(home, {}).flows_lock
    with held(lock):
        _, found = examined(home, capsys)
        assert found["flows process"]["said"] == "runs"
        os.utime(lock, (0, 0))
        _, found = examined(home, capsys)
    assert found["flows process"]["state"] == "fail" and "has not looked" in found["flows process"]["said"]


def test_of_each_model_the_registry_is_told_by_itself(
    home: Path, capsys: pytest.CaptureFixture[str], a_model: Callable[..., list[str]]
) -> None:
    """One whose champion cannot be read hides no other; and a version without a certificate file lacks none."""
    with open_backend(Settings.load(home, {})) as backend:
        for name in ("broken", "pumps"):
            (number,) = a_model(backend, name, 0.9)
            backend.store.model_versions.record_alias(name, "champion", number, "me", "best")
            backend.registry.point(name, "champion", number)
        assert backend.registry.get("pumps", "1").certificate_sha256 == ""
    (document,) = home.glob("mlflow-artifacts/broken/**/model.json")
    document.write_text("{}")
    found = examined(home, capsys)[1]
    assert found["registry broken"]["state"] == "fail" and "cannot be loaded" in found["registry broken"]["said"]
    assert found["registry pumps"]["said"] == "agrees with the store" and "registry" not in found


def test_a_lost_database_is_said_and_the_rest_goes_on(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "ballast.db").unlink()
    code, found = examined(home, capsys)
    assert code == 1 and found["store"]["state"] == "fail"
    todo = "where rows were stored, `ballast restore` the last backup elsewhere; else `ballast migrate`"
    assert found["store"]["todo"] == todo
    assert found["disk"]["state"] == "ok"
    code, found = examined(home / "nowhere", capsys)
    assert code == 1 and "ballast up" in found["home folder"]["todo"]


def with_file_of_another(name: str) -> Callable[[Path], None]:
    """One file of another authority's came to this home."""
    def damage(home: Path) -> None:
        other = BusFiles(home.with_name(f"{home.name}-another"))
        other.folder.mkdir(mode=0o700)
        ensure_certificates(other, ["localhost"])
        (home / "nats" / name).write_bytes((other.folder / name).read_bytes())
    return damage


def other_key(home: Path) -> None:
    """The key of an older copy: the statements of its changes go on behind it."""
    seed, kept = home / "nats/coordinator.nk", (home / "nats/coordinator.nk").read_bytes()
    rotate_coordinator(BusFiles(home / "nats"), datetime.now(UTC) + timedelta(hours=1))
    rotate_coordinator(BusFiles(home / "nats"), datetime.now(UTC) + timedelta(hours=1))
    seed.write_bytes(kept)


def gone(name: str) -> Callable[[Path], None]:
    return lambda home: (home / name).unlink()


def holds(name: str, text: str) -> Callable[[Path], None]:
    def damage(home: Path) -> None:
        (home / name).write_text(text)
    return damage


def test_a_plant_that_was_enrolled_with_the_oems_key_is_found(
    started: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check = "users of the plant link"
    assert examined(started, capsys)[1][check]["state"] == "ok"
    with open_backend(Settings.load(started, {})) as backend:
        backend.store.sites.enrol("plant-9", public_key(started / "nats/coordinator.nk"))
        code, found = examined(started, capsys)
        assert (code, found[check]["state"]) == (1, "fail") and "plant-9" in found[check]["said"]
        assert "`ballast site remove plant-9`" in found[check]["todo"]
        backend.store.sites.remove("plant-9")
    assert examined(started, capsys)[1][check]["state"] == "ok"


KEY, PAIR, PASSWORDS = "the OEM's key", "pair of the plant link", "servers' passwords"
DAMAGES: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "no key": (gone("nats/coordinator.nk"), KEY, "no key at"),
    "an empty key": (holds("nats/coordinator.nk", ""), KEY, "does not hold an nkey seed"),
    "a key of before": (other_key, KEY, "plants trust the latter"),
    "no server.key": (gone("nats/server.key"), PAIR, "No such file"),
    "an empty server.key": (holds("nats/server.key", ""), PAIR, "no certificate and its key"),
    "another server.key": (with_file_of_another("server.key"), PAIR, "no certificate and its key"),
    "another ca.pem": (with_file_of_another("ca.pem"), PAIR, "no plant would connect"),
    "a password cut short": (holds("secrets/mlflow", "ab"), PASSWORDS, "cut short"),
    "no password": (gone("secrets/prefect"), PASSWORDS, "cannot be read"),
    "an empty webhooks.key": (holds("webhooks.key", ""), "webhooks.key", "cut short"),
    "a torn pseudonyms.key": (holds("pseudonyms.key", "a" * 31), "pseudonyms.key", "no key"),
}


def test_keys_that_are_there_and_whole_are_said_to_be(started: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = examined(started, capsys)[1]
    looked_at = {check for _, check, _ in DAMAGES.values()}
    assert {check: found[check]["state"] for check in looked_at} == dict.fromkeys(looked_at, "ok")
    rotate_coordinator(BusFiles(started / "nats"), datetime.now(UTC) + timedelta(hours=1))
    assert examined(started, capsys)[1]["the OEM's key"]["state"] == "ok", "the line ends at the key that is there"


@pytest.mark.parametrize("damage", sorted(DAMAGES))
def test_a_lost_or_strange_key_is_found(damage: str, started: Path, capsys: pytest.CaptureFixture[str]) -> None:
    do, check, said = DAMAGES[damage]
    do(started)
    code, found = examined(started, capsys)
    wrong = {name for name, each in found.items() if each["state"] == "fail"}
    assert (code, wrong) == (1, {check})
    assert re.search(said, found[check]["said"]), found[check]["said"]
    assert found[check]["todo"]


@pytest.mark.parametrize(("content", "todo"), [
    (b"", "`ballast migrate`; where there were rows, it is another file"),
    (b"these are notes, and no database\n" * 200, "`ballast restore` the last backup"),
])
def test_what_to_do_with_a_store_goes_by_what_it_has(
    home: Path, capsys: pytest.CaptureFixture[str], content: bytes, todo: str
) -> None:
    (home / "ballast.db").write_bytes(content)
    found = examined(home, capsys)[1]["store"]
    assert found["state"] == "fail" and todo in found["todo"], found
