"""What ``ballast doctor`` judges of the ways to other hosts: who is on one reads and changes what is not encrypted."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from api.system.finding import Finding
from services.process.settings import Settings, is_loopback

_KNOWS_ITS_SERVER: Final = frozenset({"verify-ca", "verify-full"})
"""Values of ``sslmode`` by which PostgreSQL's client checks whom it talks to; with the others anybody may answer."""
_OWN_NETWORK: Final = "on a network that carries the service alone, as of containers on one host, it may stay"


def ways(settings: Settings, environment: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """A finding for each address on another host that is reached in the open, or one that says that there is none."""
    judged = [
        _of_database("the store", settings.database, environment),
        _of_database("the registry", settings.tracking_uri, environment),
        _of_database("Prefect's database", settings.prefect.database_url, environment),
        _of_server("the registry", settings.tracking_uri),
        _of_server("Prefect", settings.prefect.api_url),
        *(_of_server("the plant link", server, "tls", sealed=settings.nats.ca_file is not None)
          for server in settings.nats.servers),
    ]
    far = [each for each in judged if each is not None]
    yield from (each for each in far if each.state != "ok")
    if far and all(each.state == "ok" for each in far):
        yield Finding(check="ways", state="ok", said=f"{len(far)} to other hosts, each encrypted, its server checked")


def _of_server(name: str, address: str, wanted: str = "https", *, sealed: bool = False) -> Finding | None:
    """Of a server's address; None where it is of this host, or none of a server: its own check says so."""
    try:
        scheme, host = address.partition(":")[0], urlsplit(address).hostname
    except ValueError:
        return None
    if scheme not in ("http", "https", "nats", "tls", "ws", "wss") or host is None or is_loopback(host):
        return None
    if scheme in ("https", "tls", "wss") or sealed:
        return Finding(check=f"way to {name}", state="ok", said=f"{host}: encrypted")
    return Finding(
        check=f"way to {name}", state="warn", todo=f"write its address {wanted}://...; {_OWN_NETWORK}",
        said=f"{host} is reached in the open: who is on the way reads and changes what passes, passwords too",
    )


def _of_database(name: str, address: str, environment: Mapping[str, str]) -> Finding | None:
    """Of PostgreSQL; None where the database is of this host, or another."""
    if not address.startswith("postgres"):
        return None
    try:
        parsed = make_url(address)
    except (ArgumentError, ValueError):
        return None
    host, option = parsed.host, "ssl" if parsed.drivername.endswith("+asyncpg") else "sslmode"
    if not host or is_loopback(host):
        return None
    mode = str(parsed.query.get(option) or environment.get("PGSSLMODE") or "prefer")
    if mode in _KNOWS_ITS_SERVER:
        return Finding(check=f"way to {name}", state="ok", said=f"{host}: encrypted")
    return Finding(
        check=f"way to {name}", state="warn",
        said=f"nobody checks that {host} is the database's server ({option} {mode}): who stands in the way may have "
             "its password and all rows of it",
        todo=f"add ?{option}=verify-full to its address and name the authority in PGSSLROOTCERT; {_OWN_NETWORK}",
    )
