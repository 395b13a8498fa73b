"""Ports for the servers that tests start."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port that nobody holds at present, whatever else runs on this machine."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])
