"""The OEM's whole side as ``ballast up`` starts it, told to say all that it can: PostgreSQL, lines in JSON, debug."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from services.identity.server_secrets import USER, ServerSecrets
from services.process.settings import Settings
from tests.ports import free_port
from tests.waiting import wait_until

SECTIONS = ("api", "nats", "prefect", "mlflow")
PASSWORD = "pw-of-the-database-6f1d"


@dataclass(frozen=True)
class Host:
    """A home folder in which everything runs."""

    settings: Settings
    secrets: ServerSecrets
    process: subprocess.Popen[bytes]

    @property
    def prefect(self) -> str:
        return self.settings.prefect_api_url

    @property
    def mlflow(self) -> str:
        return f"http://127.0.0.1:{self.settings.mlflow.port}"

    @property
    def prefect_user(self) -> tuple[str, str]:
        user, password = self.secrets.prefect.split(":")
        return user, password

    @property
    def mlflow_user(self) -> tuple[str, str]:
        return USER, self.secrets.mlflow


@contextmanager
def open_host(postgresql: str) -> Iterator[Host]:
    """Start it over a PostgreSQL database of its own, and stop it at the end."""
    # Not below pytest's own folder, which is shut to others: what shuts them out here must be ours.
    base = Path(tempfile.mkdtemp(prefix="ballast-host-"))
    base.chmod(0o755)
    home = base / "home"
    home.mkdir(mode=0o755)
    # The server asks for no password; what stands in the address must not be seen all the same.
    address = postgresql.replace("postgres:@", f"postgres:{PASSWORD}@")
    assert PASSWORD in address
    lines = [f'database_url = "{address}"\n[logging]\nformat = "json"\nlevel = "debug"\n']
    (home / "ballast.toml").write_text("".join([*lines, *(f"[{name}]\nport = {free_port()}\n" for name in SECTIONS)]))
    (home / "ballast.toml").chmod(0o600)
    said = base / "said"
    with said.open("wb") as output:
        process = subprocess.Popen(
            [str(Path(sys.executable).parent / "ballast"), "up", "--home", str(home)], stdout=output, stderr=output,
            umask=0o022,
        )

    def is_up() -> bool:
        assert process.poll() is None, said.read_text()
        return "plant link (NATS)" in said.read_text()

    try:
        wait_until(is_up, "end of the start")
        settings = Settings.load(home)
        yield Host(settings, ServerSecrets(settings.secrets_folder), process)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        shutil.rmtree(base)
