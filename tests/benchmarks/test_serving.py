"""The benchmark of serving leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.waiting import PATIENCE, wait_until


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are seen in Linux's /proc")
def test_its_servers_end_when_it_is_told_to_stop() -> None:
    benchmark = subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.serving"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    children = Path(f"/proc/{benchmark.pid}/task/{benchmark.pid}/children")

    def server() -> int | None:
        for child in children.read_text().split():
            if b"api.app:create_app" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
        return None

    started = None
    try:
        wait_until(lambda: server() is not None, "server")
        started = server()
        benchmark.send_signal(signal.SIGTERM)
        assert benchmark.wait(timeout=PATIENCE) == 128 + signal.SIGTERM
        assert not Path(f"/proc/{started}").exists()
    finally:
        benchmark.kill()
        benchmark.wait()
        if started is not None:
            with suppress(ProcessLookupError):
                os.kill(started, signal.SIGKILL)
