"""``ballast up`` refuses with one line, before it starts or writes anything."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from api.cli import demo, stack
from services.contracts.errors import ConflictError
from services.contracts.settings import Settings
from tests.ports import free_port

BALLAST = Path(sys.executable).parent / "ballast"
SECTIONS = ("api", "nats", "prefect", "mlflow")


def up(home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BALLAST), "up", "--home", str(home)], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("section", SECTIONS)
def test_a_taken_port_is_one_clear_line(tmp_path: Path, section: str) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        home = tmp_path / "home"
        home.mkdir()
        ports = {name: free_port() for name in SECTIONS} | {section: port}
        (home / "ballast.toml").write_text("".join(f"[{name}]\nport = {ports[name]}\n" for name in SECTIONS))
        done = up(home)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"port {port} on 127.0.0.1 is taken already" in done.stderr
    assert os.listdir(home) == ["ballast.toml"]


def test_settings_that_do_not_fit_are_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "ballast.toml").write_text("[api]\nport = 99999\n")
    done = up(tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "api.port" in done.stderr


def test_the_demo_does_not_empty_a_folder_that_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(ConflictError, match="was not made by ballast demo"):
        demo.prepare_home(tmp_path)
    assert (tmp_path / "letters.txt").read_text() == "dear"


def test_the_demo_takes_free_ports(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            holder.bind(("127.0.0.1", 4222))
            holder.listen()
        except OSError:
            pass  # somebody else holds it: just as well
        settings = demo.prepare_home(tmp_path / "demo")
    assert settings.nats.port != 4222
    stack.check_ports(settings)


def test_phone_home_is_off_for_every_child(tmp_path: Path) -> None:
    environment = stack.environment(Settings.load(tmp_path))
    assert environment["MLFLOW_DISABLE_TELEMETRY"] == "true"
    assert environment["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"
    assert environment["DO_NOT_TRACK"]
