"""A balancer in front of several servers: each TCP connection goes to the next one, bytes as they come."""

from __future__ import annotations

import itertools
import socket
import socketserver
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


@contextmanager
def round_robin(ports: Sequence[int]) -> Iterator[int]:
    """Port of a balancer in front of these ports of the loopback."""
    turn = itertools.cycle(ports)

    class Relay(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", next(turn))) as server:
                back = threading.Thread(target=_pump, args=(server, self.request), daemon=True)
                back.start()
                _pump(self.request, server)
                back.join()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Relay) as served:
        thread = threading.Thread(target=served.serve_forever, daemon=True)
        thread.start()
        yield served.server_address[1]
        served.shutdown()
        thread.join()
