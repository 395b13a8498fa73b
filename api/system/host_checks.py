"""What ``ballast doctor`` judges of the host: checks take facts and say whether they are well, and what to do."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from api.backend.disk_space import LEAST_BYTES
from api.system.finding import Finding, span

SKEW_WARN: Final = timedelta(seconds=2)
SKEW_FAIL: Final = timedelta(seconds=30)
"""Leases last ten seconds: clocks further apart than they let two processes drive one run."""
LOW_BYTES: Final = 2 * 10**9  # of room on the disk; below it there is a warning
EXPIRES_SOON: Final = timedelta(days=30)


def port(
    purpose: str, number: int, *, free: bool, ours: bool, other: Path | None = None, hangs: bool = False
) -> Finding:
    """A port that the service wants is free, or held by the service; ``other``: home folder that its holder serves.

    ``hangs``: its holder serves our own home folder, and does not answer as it ought to.
    """
    if other is not None:
        return Finding(
            check=f"port {number}", state="fail", said=f"held by what serves another home folder, {other}",
            todo=f"stop that one, or choose another port for {purpose} in ballast.toml",
        )
    if ours:
        return Finding(check=f"port {number}", state="ok", said=f"{purpose} answers")
    if hangs:
        return Finding(
            check=f"port {number}", state="fail", said=f"{purpose} holds it and does not answer",
            todo="look at its log in the home folder's logs; where it stays so, stop `ballast up` and start it again",
        )
    if free:
        return Finding(check=f"port {number}", state="ok", said=f"free for {purpose}, which does not run")
    return Finding(
        check=f"port {number}", state="fail", said=f"held by something that is not {purpose}",
        todo=f"stop it (`ss -ltnp 'sport = :{number}'` says what it is), or choose another port in ballast.toml",
    )


def unusable_port(number: int, said: str) -> Finding:
    """A port, or its address, that this host does not give to the service, whoever holds it."""
    what, _, todo = said.partition("; ")
    return Finding(check=f"port {number}", state="fail", said=what, todo=todo)


def clock(now: datetime, database: datetime | None, newest: datetime | None) -> Finding:
    """Clock of this host against the database server's (None: there is none), and against the newest entry's time."""
    if newest is not None and newest - now > SKEW_WARN:
        return Finding(
            check="clock", state="fail", todo="set this host's clock (`timedatectl status`), then start again",
            said=f"the newest entry of the audit trail is {span(newest - now)} in the future: the clock went back",
        )
    apart = abs(now - database) if database is not None else timedelta()
    if apart <= SKEW_WARN:
        return Finding(check="clock", state="ok", said="goes with the database's")
    return Finding(
        check="clock", state="fail" if apart > SKEW_FAIL else "warn", said=f"{span(apart)} apart from the database's",
        todo="let both hosts follow a time server (chrony, systemd-timesyncd)",
    )


def disk(folder: Path, free: int, total: int) -> Finding:
    """Room on a disk to which the service writes, in bytes."""
    said = f"{free / 1e9:.1f} of {total / 1e9:.0f} GB free below {folder}"
    if free >= LOW_BYTES:
        return Finding(check="disk", state="ok", said=said)
    return Finding(
        check="disk", state="fail" if free < LEAST_BYTES else "warn", said=said,
        todo="make room, set [retention] rounds_days and run `ballast retention run`, or move the home folder",
    )


def permissions(modes: Mapping[Path, tuple[int, int]], user: int, folders: Mapping[Path, int] | None = None) -> Finding:
    """Secrets are their owner's alone: mode and owner by file, mode by folder, into which no stranger may write."""
    for path, (mode, owner) in sorted(modes.items()):
        if owner != user:
            return Finding(check="secrets", state="fail", said=f"{path} belongs to another user (number {owner})",
                           todo=f"chown {user} {path}; if others could read it, change the key")
        if stat.S_IMODE(mode) & 0o077:
            return Finding(check="secrets", state="fail",
                           said=f"{path} has mode {stat.S_IMODE(mode):04o}: others can read it",
                           todo=f"chmod go= {path}; if others use this host, change the key")
    for path, mode in sorted((folders or {}).items()):
        if stat.S_IMODE(mode) & stat.S_IWOTH:
            return Finding(check="secrets", state="fail",
                           said=f"{path} has mode {stat.S_IMODE(mode):04o}: anybody can put files of theirs there",
                           todo=f"chmod o= {path}; if others use this host, change the keys")
    return Finding(check="secrets", state="ok", said=f"{len(modes)} files, none that others can read")


def certificate(name: str, holds: tuple[datetime, datetime] | None, now: datetime, renew: str) -> Finding:
    """From when to when a certificate holds; None: the file cannot be read as one."""
    if holds is None:
        return Finding(check=f"certificate {name}", state="fail", said="cannot be read", todo=renew)
    begins, expires = holds
    if now < begins:
        return Finding(check=f"certificate {name}", state="fail", todo=f"set the clock right; where it is, {renew}",
                       said=f"holds from {begins:%Y-%m-%d %H:%M} UTC on, and by this host's clock it is earlier")
    left, said = expires - now, f"holds until {expires:%Y-%m-%d}"
    if left > EXPIRES_SOON:
        return Finding(check=f"certificate {name}", state="ok", said=said)
    if left > timedelta():
        return Finding(check=f"certificate {name}", state="warn", said=f"{said}, {left.days} days more", todo=renew)
    return Finding(check=f"certificate {name}", state="fail", said=f"expired on {expires:%Y-%m-%d}", todo=renew)
