"""Ports for the servers that tests start."""

from __future__ import annotations

import itertools
import os
import random
import socket
from collections.abc import Iterator

_FIRST, _EACH, _PARTS = 12_000, 5_000, 4
"""Below 32768, where Linux begins to take ports for outgoing connections: such a one could take ours before its server
does. Processes of one run have parts of their own."""


def _ports() -> Iterator[int]:
    part = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _PARTS
    start = random.SystemRandom().randrange(_EACH)  # another run may be at work on this machine
    for number in itertools.count(start):
        yield _FIRST + part * _EACH + number % _EACH


_NEXT = _ports()


def free_port() -> int:
    """A port that nobody holds at present, and that this process was not given before (until thousands later)."""
    for port in itertools.islice(_NEXT, _EACH):
        with socket.socket() as held:
            try:
                held.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no port is free")
