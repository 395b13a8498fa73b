"""`ballast doctor` where something is gone that was there: it says so, says what brings it back, and makes nothing."""

from __future__ import annotations

import shutil
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from sqlalchemy import text

from api.backend.actor import local_administrator
from api.backend.first_keys import begin_with_keys
from api.backend.wiring import open_backend
from api.sites.service import rotate_coordinator
from api.system import facts
from services.bus.configuration import BusFiles, hears_websockets, write_server
from services.contracts.history.audit import BACKUP_RESTORED
from services.contracts.history.events import Webhook
from services.contracts.keys.signing import new_seed_file
from services.contracts.plans.plan import Plan
from services.identity.service_keys import MEANINGS
from services.process.settings import Settings
from tests.api.system.examined import examined

Capture = pytest.CaptureFixture[str]
NOW = datetime.now(UTC)


def test_the_oems_key_is_missed_where_its_whole_folder_is_gone(started: Path, tmp_path: Path, capsys: Capture) -> None:
    shutil.rmtree(started / "nats")
    assert "the OEM's key" not in examined(started, capsys)[1], "nobody was ever connected"
    with open_backend(Settings.load(started, {})) as backend:
        backend.store.sites.enrol("plant-1", new_seed_file(tmp_path / "seed"))
        assert "the OEM's key" not in examined(started, capsys)[1]
        backend.store.sites.seen("plant-1", "1")
    code, found = examined(started, capsys)
    assert (code, found["the OEM's key"]["state"]) == (1, "fail")
    assert "coordinator.nk, and 1 plants know it" in found["the OEM's key"]["said"]
    assert "`ballast restore`" in found["the OEM's key"]["todo"]
    assert not (started / "nats").exists()


def test_the_key_of_webhooks_is_missed_where_there_are_some(home: Path, capsys: Capture) -> None:
    (home / "webhooks.key").unlink(missing_ok=True)
    assert "webhooks.key" not in examined(home, capsys)[1]
    with open_backend(Settings.load(home, {})) as backend:
        backend.store.webhooks.add(Webhook(
            webhook_id="a" * 12, url="https://x", created_by="me", created_at=NOW, due_at=NOW, last_number=0
        ))
    code, found = examined(home, capsys)
    assert (code, found["webhooks.key"]["state"]) == (1, "fail")
    assert "1 webhooks are signed by it" in found["webhooks.key"]["said"]
    assert "add the webhooks anew" in found["webhooks.key"]["todo"]


@pytest.mark.parametrize("name", sorted(MEANINGS))
def test_a_key_that_is_not_the_services_is_found(name: str, started: Path, capsys: Capture) -> None:
    """Of another machine's home, or gone: the store knows the fingerprint of the one that was used first."""
    begin_with_keys(Settings.load(started, {}))
    check = f"{name} of the service"
    assert check not in examined(started, capsys)[1]
    (started / name).write_text("cd" * 32)
    code, found = examined(started, capsys)
    assert (code, found[check]["state"]) == (1, "fail")
    assert found[check]["said"].endswith(f"{name} is not the key that this service uses")
    assert f":{started / name} here" in found[check]["todo"] and f"`ballast key replace {name}`" in found[check]["todo"]
    (started / name).unlink()
    code, found = examined(started, capsys)
    assert (code, found[check]["state"]) == (1, "fail") and found[check]["said"].endswith(f"{name} is missing")


def test_the_port_of_websockets_is_looked_at_as_the_others(started: Path, capsys: Capture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
        settings_file = started / "ballast.toml"
        settings_file.write_text(settings_file.read_text().replace("[nats]\n", f"[nats]\nwebsocket_port = {port}\n"))
        code, found = examined(started, capsys)
        wrong = {name for name, each in found.items() if each["state"] == "fail"}
        assert (code, wrong) == (1, {f"port {port}"})
        assert "not the NATS server's WebSocket" in found[f"port {port}"]["said"]
    found = examined(started, capsys)[1][f"port {port}"]
    assert (found["state"], found["said"]) == ("ok", "free for the NATS server's WebSocket, which does not run")


def test_a_server_without_websockets_does_not_hold_their_port(started: Path) -> None:
    files = BusFiles(started / "nats")
    assert not hears_websockets(files, 4222)
    write_server(files, host="127.0.0.1", port=4222, max_payload=1, websocket_port=8443)
    assert hears_websockets(files, 8443) and not hears_websockets(files, 4222)


def test_the_statements_of_changes_of_the_oems_key_are_missed(started: Path, capsys: Capture) -> None:
    """Without them who knows the present key takes what a former one signed for a stranger's, and nothing said why."""
    line, check = BusFiles(started / "nats").coordinator_line, "line of the OEM's keys"
    with open_backend(Settings.load(started, {})) as backend:
        rotate_coordinator(backend, local_administrator(), timedelta(hours=1))
        first = line.read_bytes()
        rotate_coordinator(backend, local_administrator(), timedelta(hours=1))
    assert check not in examined(started, capsys)[1]
    kept = line.read_bytes()
    line.unlink()
    code, found = examined(started, capsys)
    assert {name for name, each in found.items() if each["state"] == "fail"} == {check} and code == 1
    assert "oem-keys.json lacks the change of" in found[check]["said"] and "`ballast restore`" in found[check]["todo"]
    own = (started / "ballast.toml").read_text()
    (started / "ballast.toml").write_text(own.replace("[nats]\n", '[nats]\nservers = ["tls://nats.example.com:4222"]\n'))
    assert check not in examined(started, capsys)[1], "what an earlier server left here is of no account"
    (started / "ballast.toml").write_text(own)
    line.write_bytes(first)
    assert examined(started, capsys)[1][check]["state"] == "fail", "of before the last change"
    line.write_bytes(kept)
    assert check not in examined(started, capsys)[1]


@pytest.mark.parametrize("held", [b"no statements", None])
def test_statements_that_cannot_be_read_are_told_of_once(started: Path, capsys: Capture, held: bytes | None) -> None:
    """None: a folder stands in the file's place."""
    line = BusFiles(started / "nats").coordinator_line
    with open_backend(Settings.load(started, {})) as backend:
        rotate_coordinator(backend, local_administrator(), timedelta(hours=1))
    line.unlink()
    line.mkdir() if held is None else line.write_bytes(held)
    code, found = examined(started, capsys)
    assert {name for name, each in found.items() if each["state"] == "fail"} == {"the OEM's key"} and code == 1
    assert "oem-keys.json" in found["the OEM's key"]["said"]


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_an_address_of_another_machine_is_not_held_by_anybody(host: str, home: Path, capsys: Capture) -> None:
    port = Settings.load(home, {}).nats.port
    settings_file = home / "ballast.toml"
    settings_file.write_text(settings_file.read_text().replace("[nats]\n", f'[nats]\nhost = "{host}"\n'))
    code, found = examined(home, capsys)
    assert (code, found[f"port {port}"]["state"]) == (1, "fail")
    assert f"on {host} cannot be had" in found[f"port {port}"]["said"]
    assert "held by" not in found[f"port {port}"]["said"] and "ss -ltnp" not in found[f"port {port}"]["todo"]
    assert found[f"port {port}"]["todo"].startswith("name an address of this machine")


def test_a_registry_that_is_gone_is_not_made_anew(home: Path, capsys: Capture) -> None:
    (home / "mlflow.db").unlink()
    assert "registry" not in examined(home, capsys)[1], "no version was ever registered"
    with open_backend(Settings.load(home, {})) as backend:
        run = backend.store.runs.create_run(Plan(name="m", asset_type="rig"))
        backend.store.model_versions.add("m", "1", run.run_id, {})
    code, found = examined(home, capsys)
    assert (code, found["registry"]["state"]) == (1, "fail")
    assert found["registry"]["said"].endswith("mlflow.db") and "`ballast restore`" in found["registry"]["todo"]
    assert not (home / "mlflow.db").exists()


def test_a_folder_that_anybody_may_write_to_is_found(started: Path, capsys: Capture) -> None:
    """Whoever may write there puts a key of its own in the place of ours, however the file's mode is."""
    for folder in (started, started / "nats", started / "secrets"):
        folder.chmod(0o775)  # a volume of Kubernetes is its group's too
        assert examined(started, capsys)[1]["secrets"]["state"] == "ok"
        folder.chmod(0o777)
        code, found = examined(started, capsys)
        assert (code, found["secrets"]["state"], found["secrets"]["todo"].partition(";")[0]) == (
            1, "fail", f"chmod o= {folder}"
        )
        folder.chmod(0o700)


def test_a_chain_holds_while_all_its_certificates_do(tmp_path: Path) -> None:
    begins, ends, pems = [], [], []
    for number, days in enumerate((400, 20, 90)):
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{number}")])
        ends.append(NOW.replace(microsecond=0) + timedelta(days=days))
        begins.append(NOW.replace(microsecond=0) - timedelta(days=number % 2))
        builder = x509.CertificateBuilder(name, name, key.public_key(), number + 1, begins[-1], ends[-1])
        made = builder.sign(key, SHA256())
        pems.append(made.public_bytes(Encoding.PEM))
    (tmp_path / "chain.pem").write_bytes(b"".join(pems))
    assert facts._holds(tmp_path / "chain.pem") == (begins[0], ends[1])


@pytest.mark.parametrize("name", ["ca.pem", "server.pem"])
def test_a_certificate_that_is_none_is_named(name: str, started: Path, capsys: Capture) -> None:
    (started / "nats" / name).write_text("x")
    code, found = examined(started, capsys)
    assert code == 1 and str(started / "nats" / name) in found["pair of the plant link"]["said"]


def test_a_store_that_is_gone_shut_or_old_has_a_remedy_of_its_own(home: Path, capsys: Capture) -> None:
    kept = (home / "ballast.db").read_bytes()
    with open_backend(Settings.load(home, {})) as backend, backend.store.database.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    found = examined(home, capsys)[1]["store"]
    assert (found["state"], found["todo"]) == ("fail", "`ballast migrate`") and "at schema 0001" in found["said"]
    (home / "ballast.db").write_bytes(kept)
    (home / "ballast.db").rename(home / "kept.db")
    (home / "ballast.db").mkdir()  # as a file that may not be opened, also for root
    found = examined(home, capsys)[1]["store"]
    assert found["state"] == "fail" and "let the service's account read and write" in found["todo"]
    assert "makes it" not in found["said"]


def test_a_home_that_came_out_of_a_backup_has_none_since(home: Path, capsys: Capture) -> None:
    assert BACKUP_RESTORED == "backup.restored"
    with open_backend(Settings.load(home, {})) as backend:
        backend.store.audit.append(actor="me", role=None, action=BACKUP_RESTORED, target="store")
    found = examined(home, capsys)[1]["backup"]
    assert found["state"] == "warn" and "none was made since this home folder was restored from one" in found["said"]


def test_a_file_in_the_place_of_the_home_is_no_home(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "home").write_text("notes")
    code, found = examined(tmp_path / "home", capsys)
    assert code == 1 and found["home folder"]["said"].endswith("is no folder")
    assert "makes it" not in found["home folder"]["todo"]
