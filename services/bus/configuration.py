"""Writes the NATS server's configuration: TLS, one nkey user for the coordinator and one for each site."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from services.contracts.signing import check_public_key

COORDINATOR_INBOX = "_COORD"
RESPONSE_WINDOW = "60m"


class BusFiles:
    """Where the embedded server keeps its files, below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.configuration = folder / "nats.conf"
        self.users = folder / "users.conf"  # with their permissions; rewritten when a site comes or goes
        self.pid = folder / "nats.pid"
        self.log = folder / "nats.log"
        self.authority = folder / "ca.pem"  # the certificate that the sites need
        self.certificate = folder / "server.pem"
        self.key = folder / "server.key"
        self.coordinator_seed = folder / "coordinator.nk"


def write_atomically(path: Path, text: str, mode: int = 0o600) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(name, mode)
    os.replace(name, path)


def write_server(files: BusFiles, *, host: str, port: int, max_payload: int) -> None:
    """Write the server's part of the configuration; the users follow by :func:`write_users`."""
    write_atomically(
        files.configuration,
        f"""listen: "{host}:{port}"
server_name: ballast
max_payload: {max_payload}
pid_file: "{files.pid.resolve()}"
log_file: "{files.log.resolve()}"
logtime_utc: true
ping_interval: "20s"
tls {{
  cert_file: "{files.certificate.resolve()}"
  key_file: "{files.key.resolve()}"
  ca_file: "{files.authority.resolve()}"
  timeout: 5
}}
include ./users.conf
""",
    )


def write_users(files: BusFiles, *, coordinator_key: str, site_keys: Mapping[str, str]) -> None:
    """Write the users: a site may hear its own tasks, answer them once each, and say hello; nothing else."""
    users = [
        f'{{ nkey: {check_public_key(coordinator_key)}, permissions: {{ publish: ["site.*.task"], '
        f'subscribe: ["{COORDINATOR_INBOX}.>", "hello.*"] }} }}'
    ]
    for site_id, key in sorted(site_keys.items()):
        users.append(
            f'{{ nkey: {check_public_key(key)}, permissions: {{ publish: ["hello.{site_id}"], '
            f'subscribe: ["site.{site_id}.task"], allow_responses: {{ max: 1, expires: "{RESPONSE_WINDOW}" }} }} }}'
        )
    write_atomically(files.users, "authorization { users = [\n  " + "\n  ".join(users) + "\n] }\n")
