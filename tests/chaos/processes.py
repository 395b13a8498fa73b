"""Processes of this machine by what they are: who descends from whom, and who bears a mark in its environment."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

MARK = "BALLAST_CHAOS"
"""Variable of the environment that every process of the works inherits."""
WORDS = {
    "flows": b"flows.runner", "flow run": b"--multiprocessing-fork", "nats": b"nats-server",
    "api": b"api.app:create_app",
    "prefect": b"prefect\0server\0start", "mlflow": b"mlflow_pages",
}
"""Words of a command line by which a process of the OEM's side is known."""


def parents() -> dict[int, int]:
    """Parent of each process."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, IndexError):
                found[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    return found


def descendants(root: int) -> set[int]:
    """A process and all that it has started, and these."""
    above, ours, new = parents(), {root}, {root}
    while new := {pid for pid, parent in above.items() if parent in new} - ours:
        ours |= new
    return ours


def marked(mark: str) -> dict[int, str]:
    """Command line of every living process that bears the mark."""
    wanted, found = f"{MARK}={mark}".encode(), {}
    for pid in parents():
        with suppress(OSError):
            if wanted in (Path("/proc") / str(pid) / "environ").read_bytes().split(b"\0"):
                found[pid] = command_line(pid).replace(b"\0", b" ").decode(errors="replace").strip()
    return {pid: line for pid, line in found.items() if line}  # a zombie has none


def command_line(pid: int) -> bytes:
    """Command line with its zeros; empty for one that has ended."""
    with suppress(OSError):
        return (Path("/proc") / str(pid) / "cmdline").read_bytes()
    return b""


def send(pid: int, number: int) -> bool:
    """Signal a process; False where it is gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False


def fill_disk(pid: int, full: bool) -> bool:
    """Let no file of a process grow past one byte (``EFBIG``), or let them grow again; False where it is gone.

    Only a process of the same user may do that to another without a capability (``CAP_SYS_RESOURCE``) that root need
    not have: for PostgreSQL, which runs as a user of its own, util-linux's ``prlimit`` does it as that user.
    """
    with suppress(ProcessLookupError, FileNotFoundError):
        owner = (Path("/proc") / str(pid)).stat().st_uid
        if owner != os.geteuid():
            command = ["prlimit", f"--pid={pid}", f"--fsize={'1' if full else 'unlimited'}:"]
            done = subprocess.run(command, user=owner, capture_output=True, check=False)
            return done.returncode == 0
        _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1 if full else most, most))
        return True
    return False


def kill_all(mark: str) -> None:
    """End whatever bears the mark."""
    for pid in marked(mark):
        send(pid, signal.SIGCONT)
        send(pid, signal.SIGKILL)
