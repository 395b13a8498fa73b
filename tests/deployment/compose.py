"""The compose file under a real engine: its services started in their order, asked for their health, and ended."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
USER = 65532
POSTGRES_USER = 999
ORDER = ("postgres", "prepare", "nats-1", "nats-2", "nats-3", "prefect", "mlflow", "api", "flows")
HEALTH_SECONDS = 300.0


def find_engine() -> tuple[list[str], list[str]] | None:
    """The engine's command and its compose command, of Docker or of Podman; None where there is not a pair of them."""
    docker, podman, compose = shutil.which("docker"), shutil.which("podman"), shutil.which("podman-compose")
    if docker and subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode == 0:
        return [docker], [docker, "compose"]
    return ([podman], [compose]) if podman and compose else None


class Deployment:
    """One deployment in a folder of its own, with a project's name of its own, so that no other is touched."""

    def __init__(self, folder: Path, engine: Sequence[str], compose: Sequence[str],
                 environment: dict[str, str]) -> None:
        self.folder, self.engine = folder, list(engine)
        self._compose = [*compose, "-p", "ballast-trial", "-f", str(folder / "compose.yaml")]
        self._environment = {**os.environ, **environment}
        shutil.copy(ROOT / "infra" / "compose.yaml", folder)
        self.services: dict[str, Any] = yaml.safe_load((folder / "compose.yaml").read_text())["services"]

    def compose(self, *words: str, check: bool = True) -> str:
        """Run a command of compose and return what it printed; ``RuntimeError`` with its words where it failed."""
        done = subprocess.run([*self._compose, *words], cwd=self.folder, env=self._environment, capture_output=True,
                              text=True, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"compose {' '.join(words)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def make_files(self) -> None:
        """What compose.yaml says to do before the first start."""
        secrets = self.folder / "secrets"
        secrets.mkdir(mode=0o700)
        os.chown(secrets, USER, USER)
        self.compose("--profile", "files", "run", "--rm", "-T", "files")
        for name in ("postgres-password", "databases.sql"):
            os.chown(secrets / name, POSTGRES_USER, -1)

    def up(self) -> None:
        """Start every service when those before it are healthy, as ``depends_on`` says; older Podmans do not wait."""
        for name in ORDER:
            self.compose("up", "-d", "--no-deps", name)
            if name == "prepare":
                self._wait_for_end(name)
            elif name in ("postgres", "prefect"):
                self.wait_for_health(name)
        for name in ORDER:
            if name != "prepare":
                self.wait_for_health(name)

    def wait_for_health(self, name: str) -> None:
        """Run the service's own check inside of it until it passes: Podman runs none itself without systemd."""
        deadline = time.monotonic() + HEALTH_SECONDS
        test = self.services[name]["healthcheck"]["test"][1:]
        while subprocess.run([*self.engine, "exec", self.container(name), *test], capture_output=True,
                             check=False).returncode:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{name} is not healthy: {self.logs(name)[-3000:]}")
            time.sleep(2)
        print(f"  {name} is healthy", flush=True)

    def container(self, name: str) -> str:
        """The container of a service: Docker puts a hyphen where Podman puts an underscore."""
        mark = "-" if self._compose[1] == "compose" else "_"
        return mark.join(("ballast-trial", name, "1"))

    def ballast(self, *words: str) -> str:
        """Run ``ballast`` inside the API's container."""
        done = subprocess.run(
            [*self.engine, "exec", self.container("api"), "/usr/bin/python3", "-m", "api.cli.main", *words],
            capture_output=True, text=True, check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"ballast {' '.join(words[:2])}: {done.stderr[-2000:]}")
        return done.stdout

    def kill(self, name: str) -> None:
        """Kill a service's process, as a crash does."""
        subprocess.run([*self.engine, "kill", self.container(name)], check=True, capture_output=True)

    def restart(self, name: str) -> None:
        """Restart a service, and wait until it is healthy again."""
        subprocess.run([*self.engine, "restart", self.container(name)], check=True, capture_output=True)
        self.wait_for_health(name)

    def logs(self, name: str) -> str:
        """What a service wrote."""
        done = subprocess.run([*self.engine, "logs", self.container(name)], capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def _wait_for_end(self, name: str) -> None:
        done = subprocess.run([*self.engine, "wait", self.container(name)], capture_output=True, text=True, check=True)
        if done.stdout.strip() != "0":
            raise RuntimeError(f"{name} failed: {self.logs(name)}")
