"""`ballast doctor` on a home of its own: well, and with faults in it."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from api.backend.wiring import open_backend
from api.cli.main import main
from api.recovery.backup import MADE
from api.system.doctor import BACKUP_MADE, last_backup
from services.bus.certificates import ensure_certificates
from services.bus.configuration import BusFiles
from services.contracts.process_lock import held
from services.contracts.settings import Settings
from tests.ports import free_port


@pytest.fixture
def home(tmp_path: Path, new_sqlite: Callable[[], str], new_mlflow: Callable[[Path], str]) -> Path:
    tmp_path.chmod(0o700)
    Path(new_sqlite().removeprefix("sqlite:///")).rename(tmp_path / "ballast.db")
    new_mlflow(tmp_path)
    ports = {name: free_port() for name in ("api", "nats", "prefect", "mlflow")}
    (tmp_path / "ballast.toml").write_text("".join(f"[{name}]\nport = {port}\n" for name, port in ports.items()))
    (tmp_path / "nats").mkdir()
    ensure_certificates(BusFiles(tmp_path / "nats"), ["localhost"])
    for path in tmp_path.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return tmp_path


def examined(home: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main(["doctor", "--json", "--home", str(home)])
    return code, {found["check"]: found for found in json.loads(capsys.readouterr().out)}


def test_a_home_that_is_well(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "flows.lock").touch(mode=0o600)
    with open_backend(Settings.load(home, {})) as backend, held(home / "flows.lock"):
        backend.store.audit.append(actor="me", role=None, action=MADE, target="store")
        assert MADE == BACKUP_MADE and last_backup(backend) is not None
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
        backend.store.audit.append(actor="me", role=None, action=MADE, target="store")
        with backend.store.database.write() as session:
            session.execute(text("DROP TRIGGER audit_events_no_update"))
            session.execute(text("UPDATE audit_events SET reason = 'another' WHERE number = 1"))
            late = (datetime.now(UTC) + timedelta(hours=3)).replace(tzinfo=None)
            session.execute(text("UPDATE audit_events SET at = :at WHERE number = 2"), {"at": late})
        code, found = examined(home, capsys)
    wrong = {name for name, each in found.items() if each["state"] == "fail"}
    assert code == 1
    assert wrong == {
        f"port {settings.api.port}", "secrets", "certificate of the plant link (server.pem)", "audit trail", "clock",
    }
    assert all(found[name]["todo"] for name in wrong)


def test_a_lost_database_is_said_and_the_rest_goes_on(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "ballast.db").unlink()
    code, found = examined(home, capsys)
    assert code == 1 and found["store"]["state"] == "fail" and "ballast migrate" in found["store"]["todo"]
    assert found["disk"]["state"] == "ok"
    code, found = examined(home / "nowhere", capsys)
    assert code == 1 and "ballast up" in found["home folder"]["todo"]
