"""A real HTTP proxy on the loopback, for plants behind a firewall."""

from __future__ import annotations

import base64
import socket
from contextlib import suppress
from dataclasses import dataclass, field

from tests.services.site_agent.relay import HOST as HOST
from tests.services.site_agent.relay import head_of, relay, serve_each

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
        serve_each(self.listener, self._tunnel)

    def cut(self) -> None:
        for each in self.open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _tunnel(self, client: socket.socket) -> None:
        with suppress(OSError), client:
            head = head_of(client)
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
                relay(client, way, self._see)

    def _see(self, data: bytes) -> None:
        self.seen += data
