"""An HTTP proxy between plant and OEM: how it is written, what opens it, and the tunnel through it (``CONNECT``).

The proxy learns the server's name and port. TLS is between plant and server, so what it carries is sealed.
"""

from __future__ import annotations

import base64
import http.client
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from services.contracts.errors import InvalidInputError, UnavailableError
from services.contracts.plain_words import plain

FORM: Final = "proxy is written http://host:port; user and password stand in the file proxy_auth"
REFUSED: Final = "Tunnel connection failed: "
"""Beginning of the error by which ``http.client`` says what a proxy answered to CONNECT; status and reason follow."""
WANTS_PASSWORD: Final = "407"


def host_and_port(url: str) -> tuple[str, int]:
    """Where a proxy is; ``ValueError`` where the address is not one that a proxy is written as."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(FORM) from None
    if parts.scheme != "http" or not host or parts.username or parts.password or parts.path.strip("/") or parts.query:
        raise ValueError(FORM)
    return host, port or 80


def read_credentials(file: Path) -> tuple[str, str]:
    """User and password of a file that holds ``user:password``; ``InvalidInputError`` where it does not."""
    try:
        user, colon, password = file.read_text(encoding="utf-8").strip().partition(":")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"proxy_auth names {file}, which cannot be read: {error}") from None
    if not colon:
        raise InvalidInputError(f"{file} must hold user:password on one line")
    return user, password


@dataclass(frozen=True)
class HttpProxy:
    """A proxy on the way to the OEM, and the header that opens it."""

    host: str
    port: int
    headers: dict[str, str]

    @classmethod
    def of(cls, url: str, file: Path | None) -> HttpProxy:
        """Proxy at a URL, with user and password of a file; ``InvalidInputError`` where one of them does not fit."""
        try:
            host, port = host_and_port(url)
        except ValueError as error:
            raise InvalidInputError(str(error)) from None
        if file is None:
            return cls(host, port, {})
        word = base64.b64encode(":".join(read_credentials(file)).encode()).decode()
        return cls(host, port, {"Proxy-Authorization": f"Basic {word}"})

    def connection(self, host: str, port: int, seconds: float, context: ssl.SSLContext) -> http.client.HTTPSConnection:
        """Connection to a server, not opened yet; its TLS is that between plant and server, under the tunnel."""
        made = http.client.HTTPSConnection(self.host, self.port, timeout=seconds, context=context)
        made.set_tunnel(host, port, self.headers)
        return made

    def failure(self, error: Exception, target: str) -> UnavailableError:
        """One line that says why the way to ``target`` did not open; nothing but its name was sent."""
        said = plain(str(error))
        proxy = f"the proxy {self.host}:{self.port}"
        if not said.startswith(REFUSED):
            reason = getattr(error, "strerror", None) or type(error).__name__
            return UnavailableError(f"no way through {proxy} to {target} ({reason}); nothing was sent")
        answer = said.removeprefix(REFUSED)[:100]
        if not answer.startswith(WANTS_PASSWORD):
            return UnavailableError(f"{proxy} does not let this plant through to {target} ({answer}); nothing was sent")
        what = "another user or password than those of --proxy-auth" if self.headers else "a password"
        hint = "a file with user:password" if self.headers else "give a file with user:password as --proxy-auth"
        return UnavailableError(f"{proxy} wants {what} ({answer}): {hint}; nothing was sent")
