"""The files of a cluster of NATS servers: one authority, a certificate for each server, the coordinator's key.

Each server has a folder of its own, with no more in it than it needs: its own private key, and the coordinator's
*public* key. The coordinator's seed goes to the API and the flows alone. Whichever server an agent or the coordinator
is connected to, a message reaches the one it is for, with the same users and the same permissions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from services.bus.configuration import BusFiles, ClusterPart, write_atomically, write_server
from services.bus.server import DEFAULT_MAX_PAYLOAD, update_users
from services.contracts.errors import ConflictError, InvalidInputError
from services.contracts.keys.signing import new_seed_file
from services.process.private_files import private_folder
from services.process.settings import WILDCARDS

CLIENT_PORT = 4222  # NATS's own
ROUTE_PORT = 6222  # NATS's own, between servers
_NAME: Final = re.compile(r"(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?")
"""A name of a host, or of all hosts below one, as a certificate may bear it."""


@dataclass(frozen=True)
class Member:
    """One server: its name, the names in its certificate, and where it listens.

    The first of ``host_names`` is the one by which the other servers find it.
    """

    name: str
    host_names: tuple[str, ...]
    host: str = "0.0.0.0"
    port: int = CLIENT_PORT
    route_port: int = ROUTE_PORT
    websocket_port: int | None = None


def read_server(text: str, port: int = CLIENT_PORT, route_port: int = ROUTE_PORT) -> Member:
    """A server as it is written on a command line, NAME=HOST[,HOST]; ``InvalidInputError``."""
    name, _, hosts = text.partition("=")
    names = tuple(host for host in hosts.split(",") if host)
    if not name.replace("-", "").isalnum() or not names:
        raise InvalidInputError(f"a server is written NAME=HOST or NAME=HOST,HOST, got {text}")
    return Member(name, names, port=port, route_port=route_port)


def make_cluster(folder: Path, members: Sequence[Member]) -> dict[str, BusFiles]:
    """Write the files of all members, ``<folder>/<name>``, and ``ca.pem`` and ``coordinator.nk`` beside them.

    The members' users are none at first, but for the coordinator; :func:`services.bus.server.update_users` adds the
    plants. All is made together and once, since the authority's key is thrown away. A member's folder may be moved.

    Raises
    ------
    InvalidInputError
        When two members have the same name or the same place, one has no host name that others can use, or a name or
        a port that none can have.
    ConflictError
        When the folder holds a cluster already.
    """
    names = [member.name for member in members]
    if len(set(names)) < len(names):
        raise InvalidInputError(f"the servers of a cluster need different names, got {', '.join(names)}")
    for member in members:
        if not member.host_names or member.host_names[0] in WILDCARDS:
            raise InvalidInputError(f"server {member.name} needs a host name by which the others find it")
        _check_place(member)
    routes = [_route(member) for member in members]
    if len(set(routes)) < len(routes):
        raise InvalidInputError(f"the servers of a cluster need different hosts or ports, got {', '.join(routes)}")
    shared = BusFiles(private_folder(folder))
    if shared.coordinator_seed.exists() or shared.authority.exists():
        raise ConflictError(f"{folder} holds the files of a cluster already; name another folder")
    from services.bus.certificates import make_certificates  # with cryptography, for the start alone

    files = {member.name: BusFiles(private_folder(folder / member.name)) for member in members}
    make_certificates([(files[each.name], _names(each)) for each in members], "plant link", peers=True)
    key = new_seed_file(shared.coordinator_seed)
    write_atomically(shared.authority, files[names[0]].authority.read_text(encoding="ascii"))
    for member, route in zip(members, routes, strict=True):
        own = files[member.name]
        write_atomically(own.coordinator_public, key + "\n")
        part = ClusterPart(member.name, member.host, member.route_port, route, routes)
        write_server(
            own, host=member.host, port=member.port, max_payload=DEFAULT_MAX_PAYLOAD, cluster=part,
            websocket_port=member.websocket_port,
        )
        update_users(own, {})
    return files


def _names(member: Member) -> list[str]:
    # As a look from the same host calls it, besides.
    return list(dict.fromkeys([*member.host_names, "localhost", "127.0.0.1"]))


def _check_place(member: Member) -> None:
    """Hold a server's names and ports to what its configuration and its certificate can say; ``InvalidInputError``."""
    for place, name in enumerate(member.host_names):
        if not _is_address(name) and (_NAME.fullmatch(name) is None or (place == 0 and name.startswith("*"))):
            what = "a name such as nats-1.example.com or an IP address"
            raise InvalidInputError(f"server {member.name}: {name[:60]!r} is no name of a host: give {what}")
    ports = [member.port, member.route_port, *([] if member.websocket_port is None else [member.websocket_port])]
    wrong = [str(port) for port in ports if not 1 <= port <= 65535]
    if wrong:
        raise InvalidInputError(f"a port is a number from 1 to 65535, got {', '.join(wrong)}")
    if len(set(ports)) < len(ports):
        shown = ", ".join(map(str, ports))
        raise InvalidInputError(f"plants, servers and WebSockets each need a port of their own, got {shown}")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _route(member: Member) -> str:
    host = member.host_names[0]
    return f"[{host}]:{member.route_port}" if ":" in host else f"{host}:{member.route_port}"
