"""Homes of a service that `ballast doctor` looks at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from api.cli.processes.child_environment import make_secrets
from services.bus.certificates import ensure_certificates
from services.bus.configuration import BusFiles
from services.bus.server import prepare
from services.process.settings import Settings
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


@pytest.fixture
def started(home: Path) -> Path:
    """A home whose service was started once: keys, certificates, passwords."""
    settings, bus = Settings.load(home, {}), BusFiles(home / "nats")
    for path in (bus.authority, bus.certificate, bus.key):
        path.unlink()
    prepare(bus, host="127.0.0.1", port=settings.nats.port, host_names=["127.0.0.1"], site_keys={})
    make_secrets(settings)
    for name in ("webhooks.key", "pseudonyms.key"):
        (home / name).write_text("ab" * 32 + "\n")
        (home / name).chmod(0o600)
    return home
