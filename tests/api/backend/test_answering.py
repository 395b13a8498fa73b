"""Servers of this host that hang: they run, hold their ports, and do not answer."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from api.backend import answering
from api.backend.answering import hanging
from api.cli.commands.health import PROBES
from services.bus.configuration import BusFiles
from services.bus.server import prepare
from services.process.settings import Settings
from tests.nats_server import start
from tests.ports import free_port
from tests.standstill import stand_still
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux's tables of sockets")
HEALTH = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Health(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"true")
HTTPServer(("127.0.0.1", int(sys.argv[1])), Health).serve_forever()
"""
"""What answers as Prefect's server does."""


@pytest.fixture
def ours(tmp_path: Path) -> Settings:
    text = "".join(f"[{part}]\nport = {free_port()}\n" for part in ("nats", "prefect"))
    (tmp_path / "ballast.toml").write_text(text)
    return Settings.load(tmp_path, {})


@pytest.fixture
def ending() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Processes that are ended with the test."""
    begun: list[subprocess.Popen[bytes]] = []
    yield begun.append
    for process in begun:
        process.kill()
        process.wait()


def test_a_nats_server_that_hangs_is_named(ours: Settings, ending: Callable[[subprocess.Popen[bytes]], None]) -> None:
    files = BusFiles(ours.bus_folder)
    prepare(files, host="127.0.0.1", port=ours.nats.port, host_names=["127.0.0.1"], site_keys={})
    assert hanging(ours) == {}, "one that does not run does not hang"
    server = start(files, host="127.0.0.1", port=ours.nats.port)
    ending(server)
    wait_until(lambda: "[ERR]" in files.log.read_text(), "word of the one that looked whether its port is there")
    assert hanging(ours) == {} and PROBES["nats"](ours)
    time.sleep(0.1)  # a word of these would be there
    assert files.log.read_text().count("[ERR]") == 1, "who asks every few seconds does not fill its log"
    stand_still(server.pid)
    assert list(hanging(ours)) == ["plant link"]
    assert not PROBES["nats"](ours), "nor does a container's health check call it well"


def test_a_prefect_server_that_hangs_is_named(
    ours: Settings, ending: Callable[[subprocess.Popen[bytes]], None]
) -> None:
    environment = {**os.environ, "BALLAST_HOME": str(ours.home)}
    server = subprocess.Popen(
        [sys.executable, "-c", HEALTH, str(ours.prefect.port)], env=environment, stderr=subprocess.DEVNULL
    )
    ending(server)
    wait_until(lambda: answering.prefect_answers(ours), "an answer")
    assert hanging(ours) == {}
    stand_still(server.pid)
    assert list(hanging(ours)) == ["prefect"]
    there = ours.model_copy(update={"home": ours.home / "other"})
    assert hanging(there) == {}, "what hangs at its port is another's"


@pytest.mark.parametrize(("line", "body", "at_work"), [
    (b"HTTP/1.1 200 OK", b"true", True),
    (b"HTTP/1.1 200 OK", b"false", False),
    (b"HTTP/1.1 503 Service Unavailable", b"true, it is only starting", False),
    (b"220 mail.example.com ESMTP", b"true", False),
], ids=["at work", "says no", "unavailable", "no HTTP"])
def test_at_work_is_who_says_so_in_an_answer_without_an_error(line: bytes, body: bytes, at_work: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(line + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

        thread = threading.Thread(target=serve)
        thread.start()
        assert answering.answers(f"http://127.0.0.1:{listener.getsockname()[1]}/health", b"true") is at_work
        thread.join()
