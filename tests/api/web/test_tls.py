"""The API on more than the loopback: TLS and nothing else."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.cli.commands.up import prepare_stores
from api.cli.processes import stack
from api.cli.processes.supervisor import Supervisor
from api.web.limits import OnlyTls
from services.contracts.errors import InvalidInputError, UnavailableError
from services.process.settings import Settings
from tests.ports import free_port


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, new_mlflow: Callable[[Path], str]) -> Iterator[Settings]:
    """The API as `ballast up` starts it, listening for everybody."""
    home = tmp_path_factory.mktemp("tls") / "home"
    home.mkdir()
    (home / "ballast.toml").write_text(f'[api]\nhost = "0.0.0.0"\nport = {free_port()}\n')
    settings = Settings.load(home)
    assert new_mlflow(home) == settings.tracking_uri
    prepare_stores(settings)
    with Supervisor(stack.log_folder(settings), print) as supervisor:
        stack.start_api(supervisor, settings)
        supervisor.wait_ready("api")
        yield settings


def test_it_answers_with_a_certificate_of_its_own_authority(server: Settings) -> None:
    context = ssl.create_default_context(cafile=str(server.tls_folder / "ca.pem"))
    for name in ("localhost", "127.0.0.1"):
        answer = httpx.get(f"https://{name}:{server.api.port}/healthz", verify=context)
        assert answer.status_code == 200
        assert answer.headers["strict-transport-security"] == "max-age=31536000"
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        httpx.get(f"https://127.0.0.1:{server.api.port}/healthz")


def test_it_does_not_speak_plain_http(server: Settings) -> None:
    with pytest.raises(httpx.TransportError):
        httpx.get(f"http://127.0.0.1:{server.api.port}/healthz")
    with socket.create_connection(("127.0.0.1", server.api.port), timeout=10) as plain:
        plain.sendall(b"GET /v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer blst_\r\n\r\n")
        assert b"HTTP/" not in plain.recv(4096)


def test_the_certificate_is_kept_and_its_key_is_private(server: Settings) -> None:
    certificate, key = stack.api_certificate(server)
    before = certificate.read_bytes()
    assert stack.api_certificate(server) == (certificate, key)
    assert certificate.read_bytes() == before
    assert key.stat().st_mode & 0o077 == 0 and key.parent.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(("scheme", "host", "passed"), [
    ("http", "192.168.0.7", False), ("http", "2001:db8::1", False), ("http", "0.0.0.0", False),
    ("https", "192.168.0.7", True), ("http", "127.0.0.1", True), ("http", "::1", True), ("http", "/run/api.sock", True),
])
async def test_plain_http_is_refused_where_others_can_reach(scheme: str, host: str, passed: bool) -> None:
    """Also where somebody starts uvicorn by hand."""
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        sent.append("passed")

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("the body was read")

    scope = {"type": "http", "scheme": scheme, "server": (host, 8000), "method": "GET", "headers": []}
    await OnlyTls(app)(scope, receive, send)
    assert (sent == ["passed"]) is passed
    assert passed or (sent[0]["status"] == 403 and b"https_only" in sent[1]["body"])


def test_on_the_loopback_there_is_plain_http_and_no_promise_of_more(shared_world: Any) -> None:
    assert "strict-transport-security" not in shared_world.call(None, "GET", "/healthz").headers


@pytest.mark.parametrize(("text", "uses_tls"), [
    ("", False), ('host = "localhost"', False), ('host = "::1"', False), ('host = "0.0.0.0"', True),
    ('host = "::"', True), ('host = "ballast.example.com"', True), ('certificate = "c.pem"\nkey = "k.pem"', True),
])
def test_when_it_speaks_tls(tmp_path: Path, text: str, uses_tls: bool) -> None:
    (tmp_path / "ballast.toml").write_text(f"[api]\n{text}\n")
    assert Settings.load(tmp_path).api.uses_tls is uses_tls


def test_a_certificate_without_its_key_or_its_file_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "ballast.toml").write_text('[api]\ncertificate = "c.pem"\n')
    with pytest.raises(InvalidInputError, match="certificate and key belong together"):
        Settings.load(tmp_path)
    (tmp_path / "ballast.toml").write_text(f'[api]\ncertificate = "{tmp_path}/c.pem"\nkey = "{tmp_path}/k.pem"\n')
    with pytest.raises(UnavailableError, match="there is no file .*c.pem"):
        stack.api_certificate(Settings.load(tmp_path))
