"""Whether the servers that `ballast up` starts on this host answer: one that hangs holds its port and says nothing."""

from __future__ import annotations

import http.client
import socket
import ssl
from urllib.parse import urlsplit

from services.bus.configuration import BusFiles
from services.bus.reload import running_pid
from services.process.listeners import serves
from services.process.settings import Settings, reached_at

ANSWER_SECONDS = 2.0  # that a part has to answer in
LONGEST_LINE = 4096
HANGING_SECONDS = 0.8
"""After so long without an answer a server is said to hang: who asks for all of them at once has 2 s himself."""


def hanging(settings: Settings) -> dict[str, str]:
    """What a server of this host's own that hangs keeps from going on, by the server."""
    found, nats, prefect = {}, settings.nats, settings.prefect
    nats_runs = not nats.servers and running_pid(BusFiles(settings.bus_folder)) is not None
    if nats_runs and not greets(nats.host, nats.port, HANGING_SECONDS):
        found["plant link"] = "its NATS server runs and does not answer, so no plant is asked; its log may say why"
    if not prefect.api_url and not prefect_answers(settings, HANGING_SECONDS) and serves(prefect.port, settings.home):
        found["prefect"] = "its server runs and does not answer, so no run is started; its log may say why"
    return found


def prefect_answers(settings: Settings, seconds: float = ANSWER_SECONDS) -> bool:
    """Whether Prefect's server is at work."""
    return answers(f"{settings.prefect_api_url}/health", b"true", seconds)


def greets(host: str, number: int, seconds: float = ANSWER_SECONDS) -> bool:
    """Whether a NATS server is at work behind a port: it speaks first, before TLS, with a line that begins so.

    Where it asks for TLS hands are shaken, too: its log has an error for each connection that ends without.
    """
    try:
        with socket.create_connection((reached_at(host), number), timeout=seconds) as connection:
            line = b""
            while not line.endswith(b"\n") and len(line) < LONGEST_LINE and (more := connection.recv(1)):
                line += more
            if not line.startswith(b"INFO "):
                return False
            if b'"tls_required":true' in line:
                _any_certificate().wrap_socket(connection).close()
            return True
    except OSError:
        return False


def answers(url: str, said: bytes, seconds: float = ANSWER_SECONDS) -> bool:
    """Whether the server behind a port is the one that it ought to be."""
    parts = urlsplit(url)
    name, port = parts.hostname or "", parts.port
    connection = (
        http.client.HTTPSConnection(name, port, timeout=seconds, context=_any_certificate()) if parts.scheme == "https"
        else http.client.HTTPConnection(name, port, timeout=seconds)
    )
    try:
        connection.request("GET", parts.path)
        answer = connection.getresponse()
        return answer.status == 200 and said in answer.read(10_000)
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _any_certificate() -> ssl.SSLContext:
    """TLS with whoever is there: only what it is is asked, and nothing is told."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
