"""A real reverse proxy on the loopback: ends TLS by a certificate of its own, and passes on what it was sent."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress

from services.bus.configuration import TlsFiles
from tests.services.site_agent.relay import HOST, head_of, relay, serve_each


class ReverseProxy:
    """Stands before a server on another port of this machine; with ``status`` it answers by itself, in HTTP."""

    def __init__(self, own: TlsFiles, behind: int, status: str = "") -> None:
        self._front = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._front.load_cert_chain(own.certificate, own.key)
        self._behind, self._status = behind, status
        self.seen = b""
        self.lines: list[str] = []
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=serve_each, args=(self._listener, self._pass_on), daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _pass_on(self, plain: socket.socket) -> None:
        with suppress(OSError), self._front.wrap_socket(plain, server_side=True) as client:
            head = head_of(client)
            self.lines.append(head.decode().split("\r\n")[0])
            if self._status:
                said = f"HTTP/1.1 {self._status}\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>"
                client.sendall(said.encode())
                return
            back = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            back.check_hostname, back.verify_mode = False, ssl.CERT_NONE
            with back.wrap_socket(socket.create_connection((HOST, self._behind))) as way:
                way.sendall(head)
                relay(client, way, self._see)

    def _see(self, data: bytes) -> None:
        self.seen += data
