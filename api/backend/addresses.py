"""Where plants reach this host, and which certificate they meet there."""

from __future__ import annotations

import hashlib
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from services.contracts.errors import InvalidInputError, UnavailableError
from services.process.settings import WILDCARDS, Settings, is_loopback

WEB_SOCKET = "wss://"


def api_address(settings: Settings) -> str:
    """Address of the REST API as a plant would name it."""
    scheme = "https" if settings.api.uses_tls else "http"
    return f"{scheme}://{_named(settings.api.host, settings.api.host_names)}:{settings.api.port}"


def link_addresses(settings: Settings) -> tuple[str, ...]:
    """Addresses of the plant link as a plant would name them."""
    given = settings.nats.plant_servers or settings.nats.servers
    if given:
        return tuple(server for server in given if not server.startswith(WEB_SOCKET)) or given
    return (f"tls://{_named(settings.nats.host, settings.nats.host_names)}:{settings.nats.port}",)


def websocket_addresses(settings: Settings) -> tuple[str, ...]:
    """Addresses of the plant link for plants that reach nothing but WebSockets; none where it has no such port."""
    given = settings.nats.plant_servers or settings.nats.servers
    if given or settings.nats.websocket_port is None:
        return tuple(server for server in given if server.startswith(WEB_SOCKET))
    return (f"wss://{_named(settings.nats.host, settings.nats.host_names)}:{settings.nats.websocket_port}",)


def certificate_file(settings: Settings) -> Path | None:
    """Certificate that the API shows; None where it speaks no TLS."""
    if not settings.api.uses_tls:
        return None
    return settings.api.certificate or settings.tls_folder / "server.pem"


def certificate_digest(settings: Settings) -> str | None:
    """SHA-256 of the certificate that the API shows (DER, hexadecimal); None where it speaks no TLS.

    ``UnavailableError`` where the file is not there, ``InvalidInputError`` where it holds no certificate.
    """
    file = certificate_file(settings)
    if file is None:
        return None
    try:
        text = file.read_text(encoding="latin-1")  # names and comments may stand around it
        start = text.index(ssl.PEM_HEADER)
        end = text.index(ssl.PEM_FOOTER) + len(ssl.PEM_FOOTER)
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(text[start:end])).hexdigest()
    except FileNotFoundError:
        raise UnavailableError(f"the API's certificate {file} is not there yet; `ballast up` makes it") from None
    except OSError as error:
        raise UnavailableError(f"the API's certificate {file} cannot be read: {error.strerror}") from None
    except ValueError:
        raise InvalidInputError(f"{file} holds no certificate in PEM form") from None


def without_secrets(address: str) -> str:
    """A page's address as it may be shown: without the user, the password and the query that may stand in it."""
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def _named(host: str, names: tuple[str, ...]) -> str:
    """Host that a server listens on, by the name of its certificate that others can use."""
    outside = next((name for name in names if not is_loopback(name)), None)
    if host in WILDCARDS:
        found = outside or "127.0.0.1"
    else:
        found = host if is_loopback(host) else outside or host
    return f"[{found}]" if ":" in found else found
