"""Processes that are made to stand still: a signal alone is only asked for, and some thread may go on for a moment."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, make_url

from tests.waiting import wait_until


def stands(process: int) -> bool:
    """Whether no thread of a process runs."""
    threads = Path(f"/proc/{process}/task").glob("*/stat")
    try:
        return all(each.read_text().rpartition(")")[2].split()[0] == "T" for each in threads)
    except OSError:
        return False  # a thread ended while it was asked for: one that ran, then


def stand_still(process: int) -> None:
    """Stop a process; when this returns, none of its threads answers anybody until it gets a SIGCONT."""
    os.kill(process, signal.SIGSTOP)
    wait_until(lambda: stands(process), f"standstill of process {process}", every=0.001)


@contextmanager
def postgresql_stands(address: str | URL) -> Iterator[None]:
    """The server of a database stands still, with the processes of all its connections, while inside."""
    import psycopg

    url = make_url(address)
    with psycopg.connect(url.set(drivername="postgresql").render_as_string(hide_password=False)) as connection:
        clients = connection.execute("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'")
        held = {pid for (pid,) in clients.fetchall()} - {connection.info.backend_pid}
    server = int((Path(str(url.query["host"])) / "postmaster.pid").read_text().split()[0])
    try:
        for each in (server, *held):
            stand_still(each)
        yield
    finally:
        for each in (server, *held):
            os.kill(each, signal.SIGCONT)
