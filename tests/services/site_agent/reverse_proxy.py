"""A real reverse proxy on the loopback: ends TLS by a certificate of its own, and passes on what it was sent."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress

from services.bus.configuration import TlsFiles

HOST = "127.0.0.1"


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
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, plain: socket.socket) -> None:
        with suppress(OSError), self._front.wrap_socket(plain, server_side=True) as client:
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(4096)
            self.lines.append(head.decode().split("\r\n")[0])
            if self._status:
                said = f"HTTP/1.1 {self._status}\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>"
                client.sendall(said.encode())
                return
            back = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            back.check_hostname, back.verify_mode = False, ssl.CERT_NONE
            with back.wrap_socket(socket.create_connection((HOST, self._behind))) as way:
                way.sendall(head)
                other = threading.Thread(target=self._copy, args=(way, client), daemon=True)
                other.start()
                self._copy(client, way)
                other.join()

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self.seen += data
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
