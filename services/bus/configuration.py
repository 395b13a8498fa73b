"""Writes the NATS server's configuration: TLS, one nkey user for the coordinator and one for each site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from services.contracts.errors import ConflictError
from services.contracts.keys.signing import check_public_key
from services.process.private_files import write_whole
from services.process.settings import bracketed

COORDINATOR_INBOX = "_COORD"
RESPONSE_WINDOW = "24h"
"""As long as a plan may wait for an answer: a later one the server refuses, and its plant would make it again."""
MOST_SUBSCRIPTIONS = 64
"""Of one connection; a plant has one and the coordinator a few. The server keeps each, and would keep millions."""


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
        self.coordinator_public = folder / "coordinator.pub"  # in a cluster the servers know no more than this
        self.coordinator_former = folder / "coordinator-former.json"  # the key before it, and until when it holds
        self.coordinator_line = folder / "oem-keys.json"  # statements of all changes, for who checks signatures


def write_atomically(path: Path, text: str) -> None:
    """Write a file (mode 0600) whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_whole(path, text.encode(), private=True)


@dataclass(frozen=True)
class ClusterPart:
    """One server's part in a cluster: where it listens for the others, and where all are found (``name:port``)."""

    name: str
    host: str
    port: int
    advertise: str
    routes: Sequence[str]


def write_server(
    files: BusFiles, *, host: str, port: int, max_payload: int, cluster: ClusterPart | None = None,
    websocket_port: int | None = None,
) -> None:
    """Write the server's part of the configuration; the users follow, with :func:`users_text`.

    With ``websocket_port`` it hears the same users as WebSockets there too, over TLS by the same certificate.

    The server of a cluster runs in its folder, wherever that lies then, and logs to its own stderr.
    """
    certificate, key, authority, pid = (
        each.name if cluster else str(each.resolve())
        for each in (files.certificate, files.key, files.authority, files.pid)
    )
    tls = f"""  cert_file: "{certificate}"
  key_file: "{key}"
  ca_file: "{authority}"
  timeout: 5"""
    log = "" if cluster else f'log_file: "{files.log.resolve()}"\n'
    write_atomically(
        files.configuration,
        f"""listen: "{bracketed(host)}:{port}"
server_name: {cluster.name if cluster else "ballast"}
max_payload: {max_payload}
max_subscriptions: {MOST_SUBSCRIPTIONS}
pid_file: "{pid}"
{log}logtime_utc: true
ping_interval: "20s"
tls {{
{tls}
}}
{_websocket_text(host, websocket_port, certificate, key) if websocket_port else ""}\
{_cluster_text(cluster, tls) if cluster else ""}include ./users.conf
""",
    )


def _websocket_text(host: str, port: int, certificate: str, key: str) -> str:
    """For plants whose firewall lets nothing out but HTTPS."""
    return f"""websocket {{
listen: "{bracketed(host)}:{port}"
handshake_timeout: "5s"
tls {{
  cert_file: "{certificate}"
  key_file: "{key}"
}}
}}
"""


def hears_websockets(files: BusFiles, port: int) -> bool:
    """Whether the configuration that the server was started with names this port for WebSockets."""
    text = files.configuration.read_text(encoding="utf-8") if files.configuration.exists() else ""
    section = text.partition("websocket {")[2].partition("tls {")[0]
    return f':{port}"' in section


def _cluster_text(cluster: ClusterPart, tls: str) -> str:
    """The servers know one another by certificates of the authority, so whoever has none joins nothing.

    They tell clients nothing of one another: they would give addresses that no certificate names. To one another they
    tell the name of the certificate. Without ``advertise`` it is the address that a connection came from, which the
    others try without end, and refuse each time.
    """
    routes = ", ".join(f'"nats://{route}"' for route in cluster.routes)
    return f"""cluster {{
name: ballast
listen: "{bracketed(cluster.host)}:{cluster.port}"
advertise: "{cluster.advertise}"
no_advertise: true
routes: [{routes}]
tls {{
{tls}
  verify: true
}}
}}
"""


def users_text(coordinator_keys: str, site_keys: Mapping[str, str]) -> str:
    """Users of the server: a site may hear its own tasks, answer them once each, and say hello; nothing else.

    While a key is changed for another there are two of it, apart by a blank; each is a user with the same permissions.
    ``ConflictError`` where two users have one key: the server would refuse all of them.
    """
    bearers = dict.fromkeys(coordinator_keys.split(), "the OEM")
    for site_id, key in ((site_id, key) for site_id, keys in sorted(site_keys.items()) for key in keys.split()):
        if bearers.setdefault(key, f"site {site_id}") != f"site {site_id}":
            raise ConflictError(
                f"site {site_id} bears the key of {bearers[key]}, and the NATS server takes each key once: remove the "
                f"site (`ballast site remove {site_id}`) and enrol it with a key of its own",
                code="key_taken",
            )
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
