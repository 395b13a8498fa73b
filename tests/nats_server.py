"""An embedded NATS server for tests, started with the command that the service uses."""

from __future__ import annotations

import socket
import subprocess
import time

from services.bus.configuration import BusFiles
from services.bus.server import check_port_free, command
from services.process.private_files import UMASK
from tests.waiting import PATIENCE


def start(files: BusFiles, *, host: str, port: int) -> subprocess.Popen[bytes]:
    """Start the server and wait until it answers on its port."""
    check_port_free(host, port, "the NATS server")
    process = subprocess.Popen(command(files), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, umask=UMASK)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert process.poll() is None, f"the NATS server ended at once ({process.returncode}); see {files.log}"
        try:
            with socket.create_connection((host, port), timeout=0.2):
                return process
        except OSError:
            time.sleep(0.02)
    process.kill()
    raise AssertionError(f"the NATS server did not answer on {host}:{port}; see {files.log}")
