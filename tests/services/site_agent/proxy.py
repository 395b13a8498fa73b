"""A real HTTP proxy on the loopback, for plants behind a firewall."""

from __future__ import annotations

import base64
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field

HOST = "127.0.0.1"
WORD = "plant:of-the-proxy"


@dataclass
class Proxy:
    """An HTTP proxy that knows CONNECT alone, asks for a password, and can shut the way again."""

    listener: socket.socket
    asked: list[str] = field(default_factory=list)
    refused: int = 0
    seen: bytes = b""
    open: list[socket.socket] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.listener.getsockname()[1]}"

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self._tunnel, args=(client,), daemon=True).start()

    def cut(self) -> None:
        for each in self.open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _tunnel(self, client: socket.socket) -> None:
        with suppress(OSError), client:
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(4096)
            words = head.split(b"\r\n")[0].decode().split()
            if f"basic {base64.b64encode(WORD.encode()).decode()}".lower() not in head.decode().lower():
                self.refused += 1
                client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
                return
            assert words[0] == "CONNECT"
            self.asked.append(words[1])
            host, _, port = words[1].rpartition(":")
            with socket.create_connection((host, int(port))) as way:
                self.open += [client, way]
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                back = threading.Thread(target=self._copy, args=(way, client), daemon=True)
                back.start()
                self._copy(client, way)
                back.join()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self.seen += data
                sink.sendall(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
