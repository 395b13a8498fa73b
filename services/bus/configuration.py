"""Writes the NATS server's configuration: TLS, one nkey user for the coordinator and one for each site."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from services.contracts.signing import check_public_key

COORDINATOR_INBOX = "_COORD"
RESPONSE_WINDOW = "60m"


class TlsFiles:
    """Where a server that is given no certificate keeps its own, below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = folder / "ca.pem"  # the certificate that the clients need
        self.certificate = folder / "server.pem"
        self.key = folder / "server.key"


class BusFiles(TlsFiles):
    """Where the embedded NATS server keeps its files, below one folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.configuration = folder / "nats.conf"
        self.users = folder / "users.conf"  # with their permissions; rewritten when a site comes or goes
        self.pid = folder / "nats.pid"
        self.log = folder / "nats.log"
        self.coordinator_seed = folder / "coordinator.nk"
        self.coordinator_former = folder / "coordinator-former.json"  # the key before it, and until when it holds


def write_atomically(path: Path, text: str) -> None:
    """Write a file (mode 0600) whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(name, path)


def write_server(files: BusFiles, *, host: str, port: int, max_payload: int) -> None:
    """Write the server's part of the configuration; the users follow, with :func:`users_text`."""
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


def users_text(coordinator_keys: str, site_keys: Mapping[str, str]) -> str:
    """Users of the server: a site may hear its own tasks, answer them once each, and say hello; nothing else.

    While a key is changed for another there are two of it, apart by a blank; each is a user with the same permissions.
    """
    users = [
        f'{{ nkey: {check_public_key(key)}, permissions: {{ publish: ["site.*.task"], '
        f'subscribe: ["{COORDINATOR_INBOX}.>", "hello.*"] }} }}'
        for key in coordinator_keys.split()
    ]
    for site_id, keys in sorted(site_keys.items()):
        users += [
            f'{{ nkey: {check_public_key(key)}, permissions: {{ publish: ["hello.{site_id}"], '
            f'subscribe: ["site.{site_id}.task"], allow_responses: {{ max: 1, expires: "{RESPONSE_WINDOW}" }} }} }}'
            for key in keys.split()
        ]
    return "authorization { users = [\n  " + "\n  ".join(users) + "\n] }\n"
