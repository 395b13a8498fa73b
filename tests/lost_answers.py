"""A PostgreSQL server whose answer to a commit is lost: what was committed stands, and nobody was told."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import parse_qs, urlsplit, urlunsplit

COMMIT = b"COMMIT\x00"


class LossyServer:
    """Stands before a server, and cuts a connection at the commit that is to be lost."""

    def __init__(self, url: str) -> None:
        split = urlsplit(url)
        self._folder = parse_qs(split.query)["host"][0]
        self._listener = socket.create_server(("127.0.0.1", 0))
        here = f"{split.username}@127.0.0.1:{self._listener.getsockname()[1]}"
        self.url = urlunsplit((split.scheme, here, split.path, "", ""))
        self._sign, self._carried, self._ends = b"", True, False
        self._links: list[socket.socket] = []
        self._away = self._early = False
        self.lost = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def lose(self, sign: bytes, *, carried: bool = True, ends: bool = False) -> None:
        """Lose the next commit of a transaction that said ``sign``: its answer, or where not ``carried`` itself.

        ``ends``: from then on the server is away, with all connections, until :meth:`goes_on`.
        """
        self._sign, self._carried, self._ends = sign, carried, ends

    def goes_away(self, sign: bytes) -> None:
        """Be away from the moment on in which a transaction says ``sign``, before its commit."""
        self.lose(sign, carried=False, ends=True)
        self._early = True

    def goes_on(self) -> None:
        """Take connections again."""
        self._away = self._early = False

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                if self._away:
                    client.close()
                    continue
                server = socket.socket(socket.AF_UNIX)
                server.connect(f"{self._folder}/.s.PGSQL.5432")
                dropped = threading.Event()
                self._links.append(client)
                threading.Thread(target=self._asked, args=(client, server, dropped), daemon=True).start()
                threading.Thread(target=_answered, args=(server, client, dropped), daemon=True).start()

    def _asked(self, client: socket.socket, server: socket.socket, dropped: threading.Event) -> None:
        said = b""
        with suppress(OSError):
            while data := client.recv(1 << 16):
                said += data
                if said.endswith(COMMIT) or self._early:
                    if self._sign and self._sign in said:
                        self._sign = b""
                        self.lost += 1
                        self._away = self._ends
                        dropped.set()
                        if self._carried:
                            server.sendall(data)
                        break
                    said = b""
                server.sendall(data)
        if dropped.is_set() and self._away:
            for each in self._links:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):  # what was handed on before is still read
            server.shutdown(socket.SHUT_WR if dropped.is_set() and self._carried else socket.SHUT_RDWR)


def _answered(server: socket.socket, client: socket.socket, dropped: threading.Event) -> None:
    with suppress(OSError):
        while data := server.recv(1 << 16):
            if dropped.is_set():
                break
            client.sendall(data)
    for each in (client, server):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()


@contextmanager
def answers_lost(url: str) -> Iterator[LossyServer]:
    """A server at ``url`` of the embedded PostgreSQL, with commits whose answers can be lost."""
    lossy = LossyServer(url)
    try:
        yield lossy
    finally:
        lossy.close()
