"""Processor time of a server and of the workers that it started: what a request costs, whatever else runs."""

from __future__ import annotations

import os
from pathlib import Path


class Clock:
    """Seconds that the processes of a group have computed, from Linux's ``/proc``."""

    def __init__(self, group: int) -> None:
        self._group = group
        self._ticks = os.sysconf("SC_CLK_TCK")

    def seconds(self) -> float:
        """Seconds until now, of the program and of the system for it."""
        ticks = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:  # it has ended meanwhile
                continue
            if int(fields[2]) == self._group:
                ticks += int(fields[11]) + int(fields[12])
        return ticks / self._ticks
