"""Who gets at the plant's own page, and what can be asked of it: its owner alone, and to read."""

from __future__ import annotations

import http.client
import itertools
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest

from services.site_agent.cli import main
from services.site_agent.console.server import DOCUMENTS, HEADERS, OPEN, PAGES
from tests.services.site_agent.conftest import RUN
from tests.services.site_agent.console.conftest import Reader, settings_of


def test_nobody_reads_a_page_without_the_secret_which_works_once(answered: Any, look: Callable[..., Reader]) -> None:
    reader = look(settings_of(answered.folder))
    address = reader.console.first_address
    for path in [*PAGES, *DOCUMENTS, OPEN, f"{OPEN}?secret=", f"{OPEN}?secret={'x' * 43}", "/nothing"]:
        status, headers, content = reader.ask(path)
        assert status == 403 and "Set-Cookie" not in headers, path
        assert RUN[:8] not in content and "plant-1" not in content, path
    assert reader.ask(address.removeprefix(f"http://127.0.0.1:{reader.console.server_port}"), "HEAD")[0] == 400
    status, headers, _ = reader.ask(f"{OPEN}?{urlsplit(address).query}")
    assert status == 303
    cookie = headers["Set-Cookie"]
    assert f"{reader.console.server_port}" in cookie.partition("=")[0], "browsers hold cookies of all ports together"
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    secret = urlsplit(address).query.partition("=")[2]
    assert secret not in cookie and len(secret) >= 43 and reader.console.first_address == ""
    assert reader.ask(f"{OPEN}?secret={secret}")[0] == 403, "a second browser"
    name, value = cookie.split(";")[0].split("=", 1)
    for brought in (name, f"{name}=", f"{name}={secret}", f"{name}={value}x", f"other={value}", f"{name}={value[:-1]}"):
        assert reader.ask("/", Cookie=brought)[0] == 403, brought
    assert reader.ask("/", Cookie=f'odd={{"a": 1}}; {name}={value}')[0] == 200, "whatever others set on this host"
    assert reader.ask(f"{OPEN}?secret=", Cookie=f"{name}={value}")[0] == 303, "who is in goes on"


def test_a_name_from_elsewhere_leads_nowhere(seen: Reader) -> None:
    port = seen.console.server_port
    strangers = (
        "evil.example", f"evil.example:{port}", "127.0.0.1", "localhost", "127.0.0.1:1", "",
        f"127.0.0.1.evil.example:{port}", f"[::1]:{port}", f"0.0.0.0:{port}",
    )
    for host, path in itertools.product(strangers, ("/", "/ledger.json", "/console.css", f"{OPEN}?secret=x")):
        status, headers, content = seen.ask(path, Host=host)
        assert status == 421 and "Set-Cookie" not in headers and RUN[:8] not in content, (host, path)
    assert seen.ask("/", Host=f"localhost:{port}")[0] == seen.ask("/", Host=f"127.0.0.1:{port}")[0] == 200


def test_an_error_that_nobody_expected_tells_nothing_of_itself(seen: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("sensor hall-3/pump-7")

    monkeypatch.setitem(PAGES, "/", replace(PAGES["/"], find=fail))
    status, _, content = seen.ask("/")
    assert status == 500 and "This cannot be shown" in content
    assert "hall-3" not in content and "RuntimeError" not in content
    assert seen.ask("/policy")[0] == 200, "the page goes on"


def test_a_reader_who_hangs_up_leaves_no_traceback(seen: Reader, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise ConnectionResetError
    except ConnectionResetError:
        seen.console.handle_error(None, ("127.0.0.1", 1))
    assert capsys.readouterr() == ("", "")


def test_a_connection_that_says_nothing_is_closed(seen: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    handler: Any = seen.console.RequestHandlerClass
    assert 0 < handler.timeout <= 60
    monkeypatch.setattr(handler, "timeout", 0.05)
    with socket.create_connection(("127.0.0.1", seen.console.server_port), timeout=10) as silent:
        assert silent.recv(1) == b""


def test_it_listens_on_the_loopback_alone(seen: Reader) -> None:
    assert seen.console.server_address[0] == "127.0.0.1" and seen.console.socket.family == socket.AF_INET


def test_it_can_be_read_and_nothing_else(seen: Reader) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "ANY"):
        status, headers, content = seen.ask("/ledger", method)
        assert status == 405 and headers["Allow"] == "GET, HEAD" and RUN[:8] not in content, method
        assert HEADERS.items() <= headers.items()
    status, headers, content = seen.ask("/ledger", "HEAD")
    assert (status, content) == (200, "")
    assert headers["Content-Length"] == seen.ask("/ledger")[1]["Content-Length"]
    with socket.create_connection(("127.0.0.1", seen.console.server_port), timeout=10) as asked:
        asked.sendall(f"HEAD /console.css HTTP/1.0\r\nHost: 127.0.0.1:{seen.console.server_port}\r\n\r\n".encode())
        with asked.makefile("rb") as answer:
            assert answer.read().endswith(b"\r\n\r\n"), "nothing follows the headers"


def test_every_answer_binds_the_browser(seen: Reader) -> None:
    kinds = {"/console.css": "text/css", "/icon.svg": "image/svg+xml", **dict.fromkeys(DOCUMENTS, "application/json")}
    for path in [*PAGES, *DOCUMENTS, "/console.css", "/icon.svg", "/nothing"]:
        _, headers, content = seen.ask(path)
        assert HEADERS.items() <= headers.items(), path
        assert headers["Content-Type"].partition(";")[0] == kinds.get(path, "text/html")
        assert (headers["X-Content-Type-Options"], headers["Cache-Control"]) == ("nosniff", "no-store")
        assert headers["Referrer-Policy"] == "no-referrer" and "Python" not in headers["Server"]
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'") and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy and "http" not in policy
        assert not re.search(r"<script|<style|style=|\son\w+=|https?://(?!www\.w3\.org/2000/svg)", content), path


def test_only_the_pages_are_there(seen: Reader) -> None:
    for path in (
        "/site.nk", "/../site.nk", "/%2e%2e/site.nk", "/console.css/../parts.py", "/parts.py", "/ledger.jsonl",
        "/ledger/", "//etc/passwd", "/policy.toml", "/ledger?page=0", "/ledger?page=2", "/ledger?page=-1",
        "/ledger?page=x", "/ledger?page=" + "9" * 5000, "/?" + "&".join("a=1" for _ in range(50)), "/ledger?page=%b2",
    ):
        status, headers, content = seen.ask(path)
        assert status in (400, 404) and "Traceback" not in content, path
        assert HEADERS.items() <= headers.items()


def test_the_command_serves_until_it_is_told_to_stop(answered: Any) -> None:
    settings_of(answered.folder)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        config = ["console", "--config", str(answered.folder / "site.toml"), "--port", str(port)]
        assert main(config) == 1, "the port is taken"
    command = [sys.executable, "-m", "services.site_agent", *config]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(3)]
        address = urlsplit(told[1].strip())
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", f"{address.path}?{address.query}")
        assert connection.getresponse().status == 303
        connection.close()
        process.send_signal(signal.SIGTERM)
        try:
            rest, said = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, rest, said) == (0, "", "")
