"""A client that takes nothing of its answer is let go; one that goes on taking, however slowly, has all of it."""

from __future__ import annotations

import json
import logging
import re
import socket
import time
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import pytest

from api.models.examples import FEATURES_EXAMPLE
from api.web import slow_readers
from services.contracts.access.identity import Role
from tests.waiting import PATIENCE, wait_until

PATH = "/v1/models/pumps/diagnose"
LINE = json.dumps(FEATURES_EXAMPLE).encode() + b"\n"
SMALL = 4096
"""Of the client's buffer: what is under way is in the server's then."""


def asked(server: str, world: Any, kind: str, rest: str) -> socket.socket:
    """A connection with a small buffer on which a question has begun."""
    address = urlsplit(server)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
    client.settimeout(PATIENCE)
    client.connect((address.hostname, address.port))
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {world.tokens[Role.VIEWER]}\r\n"
        f"Content-Type: {kind}\r\n{rest}\r\n\r\n"
    )
    client.sendall(head.encode())
    return client


def test_who_reads_nothing_of_a_stream_is_let_go_without_a_line_in_the_log(
    world: Any, monkeypatch: Any, request: Any, caplog: Any
) -> None:
    monkeypatch.setattr(slow_readers, "PATIENCE_SECONDS", 1.0)
    server = request.getfixturevalue("server")
    chunk = LINE * 1000
    piece = f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n"
    with caplog.at_level(logging.WARNING), asked(
        server, world, "application/x-ndjson", "Transfer-Encoding: chunked"
    ) as client:
        with pytest.raises(OSError, match=r"reset|[Bb]roken pipe") as ended:
            for _ in range(1000):  # until the server takes no more
                client.sendall(piece)
        assert not isinstance(ended.value, TimeoutError)
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("ends", ["", "\r\nConnection: close"], ids=["goes on", "is its last"])
def test_who_reads_nothing_of_a_whole_answer_is_let_go(
    world: Any, monkeypatch: Any, request: Any, caplog: Any, ends: str
) -> None:
    """A connection whose last answer is written is closing for as long as its client takes nothing."""
    monkeypatch.setattr(slow_readers, "PATIENCE_SECONDS", 1.0)
    server = request.getfixturevalue("server")
    body = json.dumps({"samples": [FEATURES_EXAMPLE] * 10_000}).encode()
    with caplog.at_level(logging.INFO, "ballast.api"), asked(
        server, world, "application/json", f"Content-Length: {len(body)}{ends}"
    ) as client:
        client.sendall(body)
        wait_until(lambda: "took nothing of its answer" in caplog.text, "client that is let go")
        found = b""
        with suppress(ConnectionError):
            while more := client.recv(2**20):
                found += more
    head, _, answer = found.partition(b"\r\n\r\n")
    told = re.search(rb"content-length: (\d+)", head)
    assert b"200 OK" in head and told is not None and 0 < len(answer) < int(told[1])


def test_who_reads_slowly_has_all_of_it(world: Any, monkeypatch: Any, request: Any) -> None:
    monkeypatch.setattr(slow_readers, "PATIENCE_SECONDS", 2.0)
    server = request.getfixturevalue("server")
    body = json.dumps({"samples": [FEATURES_EXAMPLE] * 10_000}).encode()
    with asked(server, world, "application/json", f"Content-Length: {len(body)}\r\nConnection: close") as client:
        client.sendall(body)
        found = b""
        for _ in range(30):  # thrice its patience
            found += client.recv(SMALL)
            time.sleep(0.2)
        while more := client.recv(2**20):
            found += more
    head, _, answer = found.partition(b"\r\n\r\n")
    assert b"200 OK" in head and len(json.loads(answer)["diagnoses"]) == 10_000
