"""Files of a site beside its data, looked at for the plant's own screen: key, certificate, proxy's password, ledger."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from services.contracts.access.loopback import is_loopback
from services.site_agent.connection.link_address import Address
from services.site_agent.http_proxy import HttpProxy
from services.site_agent.outgoing.ledger_check import read_sound
from services.site_agent.rules.heard_keys import heard_line
from services.site_agent.settings import SiteSettings

LEAST_FREE_BYTES = 10_000_000
"""What answers of some runs write to ledger and record of exposure, with room to spare."""

_UNSIGNED = (
    "take care: the settings name no oem_key, so a task is answered whoever has the server: `ballast site oem-key` at "
    "the OEM prints it"
)
_OPEN = (
    "take care: a server is written nats:// or ws://, and no ca is named, so all that leaves may go in the open: write "
    "tls:// or wss://"
)


def files_summary(settings: SiteSettings) -> list[str]:
    """Lines that say that the agent can start with its files, and which of them others can read.

    Nothing is changed, and nobody is asked: whether a server lets the site in is what ``ballast-site health`` says.

    Raises
    ------
    BallastError
        What ``ballast-site run`` would end with: no key or none that is one, no certificate of the OEM's authority or
        none that is one, a proxy's password that cannot be read, a ledger that is not what was written, a file of heard
        keys that is none.
    """
    Address.of(settings, settings.nkey_seed).tls_context()
    if settings.proxy is not None:
        HttpProxy.of(settings.proxy, settings.proxy_auth)
    heard_line(settings.heard_keys)
    count = read_sound(settings.ledger).count
    secrets = (settings.nkey_seed, settings.proxy_auth, settings.ledger, settings.exposure)
    orders = (settings.heard_keys, settings.policy, settings.asset_type, settings.ca, settings.data.path, settings.log)
    folders = {path.parent for path in (*secrets, settings.policy) if path is not None}
    return [f"the site's own files can be used: key, settings of the link, ledger ({count} entries, none changed)",
            *([_UNSIGNED] if settings.oem_key is None else []),
            *([] if settings.needs_tls or all(map(_is_here, settings.servers)) else [_OPEN]),
            *(line for path in secrets if path is not None and (line := _told_mode(path))),
            *(line for path in (*sorted(folders), *orders) if path is not None and (line := _told_writers(path))),
            *_told_room({settings.ledger.parent, settings.exposure.parent})]


def _is_here(server: str) -> bool:
    return is_loopback(urlsplit(server).hostname or "")


def _told_mode(path: Path) -> str:
    """A line where others can read or write a file of the plant's own; empty where they cannot, or there is none."""
    if not path.exists() or not (mode := stat.S_IMODE(path.stat().st_mode)) & 0o077:
        return ""
    return f"take care: {path} has mode {mode:04o}, so that others can read or change it: chmod go= {path}"


def _told_writers(path: Path) -> str:
    """A line where others can write what the agent goes by, or put another file into its place."""
    if not path.exists():
        return ""
    status = path.stat()
    if status.st_uid not in (os.geteuid(), 0):
        return f"take care: {path} belongs to another user, who can change what it holds: chown it to this one"
    if not (mode := stat.S_IMODE(status.st_mode)) & 0o022:
        return ""
    return f"take care: {path} has mode {mode:04o}, so that others can change what it holds: chmod go-w {path}"


def _told_room(folders: Iterable[Path]) -> list[str]:
    """A line for each folder whose disk has next to no room: nothing leaves that the ledger cannot take."""
    return [
        f"take care: below {path} are {free / 1e6:.1f} MB free; make room: nothing leaves that the ledger cannot note"
        for path in sorted(folders) if path.exists() and (free := shutil.disk_usage(path).free) < LEAST_FREE_BYTES
    ]
