"""`ballast doctor` where the API answers and is not ready, as with a key that was replaced behind it."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from api.system import facts
from services.process.settings import Settings

ANSWERS = {"/healthz": b'{"status":"ok","version":"0.1.0"}', "/readyz": b'{"ready":true,"missing":{},"notices":{}}'}


class Api(HTTPServer):
    """An API that says of itself whether it is ready."""

    ready = True


class Answer(BaseHTTPRequestHandler):
    """Its answers to the two questions about its health."""

    server: Api

    def do_GET(self) -> None:
        """Answer, with 503 where it is not ready."""
        away = self.path == "/readyz" and not self.server.ready
        body = b'{"ready":false,"missing":{"keys":"x"},"notices":{}}' if away else ANSWERS[self.path]
        self.send_response(503 if away else 200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def api() -> Iterator[Api]:
    server = Api(("127.0.0.1", 0), Answer)
    Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_an_api_that_is_not_ready_is_told(api: Api, tmp_path: Path) -> None:
    settings = Settings.load(tmp_path, {"BALLAST_API_PORT": str(api.server_port)})
    assert "API" not in {each.check for each in facts.ports(settings)}
    api.ready = False
    found = {each.check: each for each in facts.ports(settings)}
    assert found[f"port {api.server_port}"].state == "ok"
    assert (found["API"].state, found["API"].said) == ("warn", "answers, and is not ready")
    assert found["API"].todo == f"http://127.0.0.1:{api.server_port}/readyz says why"


def test_of_an_api_that_does_not_run_only_its_port_is_told(api: Api, tmp_path: Path) -> None:
    api.shutdown()
    api.server_close()
    settings = Settings.load(tmp_path, {"BALLAST_API_PORT": str(api.server_port)})
    assert "API" not in {each.check for each in facts.ports(settings)}
