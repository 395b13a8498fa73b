"""The files of a cluster of NATS servers: one authority, a certificate for each server, the coordinator's key.

Each server has a folder of its own, with no more in it than it needs: its own private key, and the coordinator's
*public* key. The coordinator's seed goes to the API and the flows alone. Whichever server an agent or the coordinator
is connected to, a message reaches the one it is for, with the same users and the same permissions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from services.bus.configuration import BusFiles, ClusterPart, write_atomically, write_server
from services.bus.server import DEFAULT_MAX_PAYLOAD, update_users
from services.contracts.errors import ConflictError, InvalidInputError
from services.contracts.keys.signing import new_seed_file
from services.process.private_files import private_folder
from services.process.settings import WILDCARDS

CLIENT_PORT = 4222
ROUTE_PORT = 6222


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
        When two members have the same name, or one has no host name that others can use.
    ConflictError
        When the folder holds a cluster already.
    """
    names = [member.name for member in members]
    if len(set(names)) < len(names):
        raise InvalidInputError(f"the servers of a cluster need different names, got {', '.join(names)}")
    for member in members:
        if not member.host_names or member.host_names[0] in WILDCARDS:
            raise InvalidInputError(f"server {member.name} needs a host name by which the others find it")
    shared = BusFiles(private_folder(folder))
    if shared.coordinator_seed.exists() or shared.authority.exists():
        raise ConflictError(f"{folder} holds the files of a cluster already; name another folder")
    from services.bus.certificates import make_certificates  # with cryptography, for the start alone

    files = {member.name: BusFiles(private_folder(folder / member.name)) for member in members}
    make_certificates([(files[each.name], _names(each)) for each in members], "plant link", peers=True)
    key = new_seed_file(shared.coordinator_seed)
    write_atomically(shared.authority, files[names[0]].authority.read_text(encoding="ascii"))
    routes = [f"{member.host_names[0]}:{member.route_port}" for member in members]
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
