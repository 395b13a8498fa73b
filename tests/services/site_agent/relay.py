"""What the proxies of the tests have in common: who connects has a thread of his own, and bytes go both ways."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

HOST = "127.0.0.1"


def serve_each(listener: socket.socket, serve: Callable[[socket.socket], None]) -> None:
    """Serve everybody who connects, until the listener is closed."""
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            threading.Thread(target=serve, args=(client,), daemon=True).start()


def head_of(client: socket.socket) -> bytes:
    """What is sent up to the empty line that ends the head of a request, and what came with it."""
    head = b""
    while b"\r\n\r\n" not in head:
        head += client.recv(4096)
    return head


def relay(client: socket.socket, way: socket.socket, see: Callable[[bytes], None]) -> None:
    """Hand on what either side sends, and show it, until both have ended."""
    back = threading.Thread(target=_copy, args=(way, client, see), daemon=True)
    back.start()
    _copy(client, way, see)
    back.join()


def _copy(source: socket.socket, sink: socket.socket, see: Callable[[bytes], None]) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            see(data)
            sink.sendall(data)
    for each in (source, sink):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
