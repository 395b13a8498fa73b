"""Whether somebody answers at an address: only a 200 does, whatever else listens there."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

import pytest

from api.cli.processes.listening import answers, free_port, listens
from services.bus.server import check_port_free
from services.contracts.errors import ConflictError
from tests.ports import free_port as unused_port


@pytest.fixture
def serving() -> Iterator[Callable[[bytes], int]]:
    """Listen with an answer for one client; the port."""
    opened: list[socket.socket] = []

    def serve(said: bytes) -> int:
        server = socket.create_server(("127.0.0.1", 0))
        opened.append(server)

        def answer() -> None:
            client, _ = server.accept()
            with client, suppress(OSError):  # who is told nothing that it knows may leave first
                client.sendall(said)
                client.shutdown(socket.SHUT_WR)
                while client.recv(4096):
                    pass

        threading.Thread(target=answer, daemon=True).start()
        return int(server.getsockname()[1])

    yield serve
    for server in opened:
        server.close()


@pytest.mark.parametrize(("said", "ready"), [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", True), (b"HTTP/1.1 204 No Content\r\n\r\n", False),
    (b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", False), (b'INFO {"server_id":"N"}\r\n', False),
    (b"", False),
])
def test_only_a_200_is_an_answer(serving: Callable[[bytes], int], said: bytes, ready: bool) -> None:
    assert answers(f"http://127.0.0.1:{serving(said)}/readyz")() is ready


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_who_answers_is_this_host_and_no_proxy_that_the_environment_names(
    serving: Callable[[bytes], int], monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    """A proxy said 200 of itself, or knew no such address: it started too soon, or never."""
    said = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(f"{scheme}_proxy", f"http://127.0.0.1:{serving(said)}")
    assert not answers(f"{scheme}://127.0.0.1:{unused_port()}/readyz")()
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{unused_port()}")
    assert answers(f"http://127.0.0.1:{serving(said)}/readyz")()


def test_what_speaks_no_tls_does_not_answer_by_it(serving: Callable[[bytes], int]) -> None:
    assert not answers(f"https://127.0.0.1:{serving(b'HTTP/1.1 200 OK')}/readyz")()


def test_where_nobody_listens_nothing_answers() -> None:
    port = unused_port()
    assert not answers(f"http://127.0.0.1:{port}/")() and not listens("127.0.0.1", port)()
    assert free_port(port) == port


def test_a_port_that_is_held_is_not_free() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as holder:
        port = int(holder.getsockname()[1])
        assert listens("127.0.0.1", port)()
        assert free_port(port) not in (0, port)


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET6, "::1"), (socket.AF_INET, "127.0.0.1")])
def test_a_port_is_free_or_taken_at_an_address_of_either_kind(family: socket.AddressFamily, host: str) -> None:
    """An API on all IPv6 addresses starts: a probe of the other kind would find every port taken."""
    with closing(socket.socket(family)) as taken:
        taken.bind((host, 0))
        taken.listen()
        port = int(taken.getsockname()[1])
        with pytest.raises(ConflictError, match="is taken already") as said:
            check_port_free(host, port, "the API")
        assert said.value.code == "port_taken"
    check_port_free(host, port, "the API")
    check_port_free("::" if ":" in host else "0.0.0.0", port, "the API")


def test_an_address_of_another_machine_is_not_taken() -> None:
    with pytest.raises(ConflictError, match="cannot be had for the API") as said:
        check_port_free("192.0.2.1", unused_port(), "the API")
    assert said.value.code == "port_unusable"
