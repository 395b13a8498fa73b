"""Processes that are made to stand still: a signal alone is only asked for, and some thread may go on for a moment."""

from __future__ import annotations

import os
import signal
from pathlib import Path

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
