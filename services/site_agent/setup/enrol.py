"""``ballast-site enrol``: makes a site's key and folder, and has the OEM's server enrol it by a one-time code.

The private half of the key stays. The code says which certificate the server must show; a server with another is sent
nothing, not even the code.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import re
import ssl
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pydantic import ValidationError

from services.contracts.access.enrolment import (
    PATH,
    EnrolmentCode,
    EnrolmentPackage,
    EnrolmentRequest,
    proof,
    read_code,
)
from services.contracts.errors import BallastError, InvalidInputError, UnavailableError
from services.contracts.keys.signing import new_seed_file, public_key, signer
from services.contracts.plain_words import plain
from services.contracts.reading import explain
from services.process.settings import is_loopback
from services.site_agent.http_proxy import HttpProxy
from services.site_agent.setup.site_setup import ASSET_TYPE, AUTHORITY, SEED, SiteSetup, check_setup, create_site

WAITING_SEED: Final = f"{SEED}.enrolling"
"""The key until the OEM has it. It stays where no answer came: the OEM may have it, and the same command goes on."""
SECONDS: Final = 20.0  # of one exchange, over a slow line
TRIES: Final = 3  # the line may break after the code was used: asked again with the same keys it is answered the same
_HOST: Final = re.compile(r"[^\x00-\x20\x7f]+")
_PATH: Final = re.compile(r"[!-~]*")
LARGEST_ANSWER: Final = 4 * 1024 * 1024  # asset types and a certificate are some ten kB


class EnrolmentError(BallastError):
    """The server does not enrol this site; nothing was written."""

    code = "not_enrolled"


@dataclass(frozen=True)
class Server:
    """Where the OEM's REST API is, and the SHA-256 of the certificate that it must show (None: the system knows it)."""

    host: str
    port: int
    path: str
    encrypted: bool
    certificate: str | None
    proxy: HttpProxy | None = None

    @classmethod
    def of(cls, url: str, certificate: str | None, proxy: HttpProxy | None = None) -> Server:
        """Server at a URL; ``InvalidInputError`` where a code must not be sent there."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if host is None or parts.scheme not in ("https", "http") or parts.username or parts.query or parts.fragment:
            raise InvalidInputError("the OEM's address is written https://host:port")
        if not _HOST.fullmatch(host) or not _PATH.fullmatch(parts.path):  # no request can be made of it
            raise InvalidInputError("the OEM's address is written https://host:port")
        encrypted = parts.scheme == "https"
        if not encrypted and not is_loopback(host):
            raise InvalidInputError("over http everybody on the way could read the code: give the https:// address")
        if not encrypted and certificate is not None:
            raise InvalidInputError("this code is for a server with a certificate: give its https:// address")
        if not encrypted and proxy is not None:
            raise InvalidInputError("a proxy is on the way to an https:// address alone")
        return cls(host, port or (443 if encrypted else 80), parts.path.rstrip("/"), encrypted, certificate, proxy)

    def connect(self) -> http.client.HTTPConnection:
        """Open connection to the right server; nothing was sent over it yet.

        ``UnavailableError`` where nobody answers, ``EnrolmentError`` where the server is not the one of the code.
        """
        connection = self._connection()
        try:
            connection.connect()
            self._check_certificate(connection)
        except ssl.SSLCertVerificationError as error:
            connection.close()
            raise EnrolmentError(f"the server's certificate does not fit ({error.verify_message})") from None
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            connection.close()
            raise self._unanswered(error) from None
        except EnrolmentError:
            connection.close()
            raise
        return connection

    def _unanswered(self, error: Exception) -> UnavailableError:
        """Why nobody answered; a frame that kept the error would keep what a proxy had opened."""
        if isinstance(error, UnicodeError):  # of a name with two dots in a row, or a part of more than 63 letters
            error = OSError(0, "no host has such a name")
        if self.proxy is not None:
            return self.proxy.failure(error, f"{self.host}:{self.port}")
        reason = f"{self.host}:{self.port} ({getattr(error, 'strerror', None) or type(error).__name__})"
        return UnavailableError(f"no server answers at {reason}; nothing was sent")

    def _connection(self) -> http.client.HTTPConnection:
        if not self.encrypted:
            return http.client.HTTPConnection(self.host, self.port, timeout=SECONDS)
        if self.proxy is not None:
            return self.proxy.connection(self.host, self.port, SECONDS, self._context())
        return http.client.HTTPSConnection(self.host, self.port, timeout=SECONDS, context=self._context())

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if self.certificate is not None:  # this very certificate is asked for, whoever signed it for whatever name
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context

    def _check_certificate(self, connection: http.client.HTTPConnection) -> None:
        if self.certificate is None:
            return
        shown = connection.sock.getpeercert(binary_form=True) if isinstance(connection.sock, ssl.SSLSocket) else None
        if shown is None or not hmac.compare_digest(hashlib.sha256(shown).hexdigest(), self.certificate):
            raise EnrolmentError(
                "the server at this address is not the one that made the code: it shows another certificate. Nothing "
                "was sent; check the address, and ask the OEM for another code if its certificate was renewed since"
            )


class _NoAnswerError(Exception):
    """The request was sent and the outcome is not known."""


@dataclass(frozen=True)
class Enrolled:
    """A site that is enrolled: its public key, its asset type's name, where its link goes, and whether by the proxy."""

    public_key: str
    asset_type: str
    servers: tuple[str, ...]
    goes_by_proxy: bool


def enrol(setup: SiteSetup, url: str, code_text: str) -> Enrolled:
    """Enrol the site of a code and write its folder as ``init`` does.

    ``setup.site_id`` is set from the code; with ``setup.proxy`` all goes through it, and the plant link is asked for as
    a WebSocket, the only one that does too. Where the server says no, nothing is left behind.

    Raises
    ------
    EnrolmentError
        The server refuses, or is not the one that made the code.
    UnavailableError
        No server answers, or the proxy does not open the way. Where the server may have heard the request, the
        key waits for the same command once more.
    InvalidInputError, ConflictError
        As ``create_site``; also for a text that is no code and an address that is none, before anything is sent.
    """
    code = read_code(code_text)
    if setup.proxy is None and setup.proxy_auth is not None:
        raise InvalidInputError("--proxy-auth opens a proxy: give --proxy too")
    proxy = None if setup.proxy is None else HttpProxy.of(setup.proxy, setup.proxy_auth)
    server = Server.of(url, code.certificate, proxy)
    seed = setup.folder / WAITING_SEED
    setup = replace(setup, site_id=code.site_id, seed=seed if seed.exists() else None)
    check_setup(setup, AUTHORITY, ASSET_TYPE)
    if setup.data is not None and not setup.data.exists():
        raise InvalidInputError(f"there are no data at {setup.data}; nothing was sent")
    made = [each for each in (setup.folder, *setup.folder.parents) if not each.exists()]
    try:
        key = public_key(seed) if seed.exists() else new_seed_file(seed)
    except OSError as error:
        _remove(made)
        raise InvalidInputError(f"cannot write to {setup.folder}: {error.strerror}") from None
    try:
        package = _ask(server, _request(code, key, seed, web_socket=proxy is not None))
    except _NoAnswerError as error:
        raise UnavailableError(
            f"the server did not answer ({error}); whether it has enrolled the site is not known. The key waits in "
            f"{seed}: give the same command again"
        ) from None
    except BallastError:  # who interrupts the command does not know either: the key waits
        seed.unlink(missing_ok=True)
        _remove(made)
        raise
    setup = replace(setup, package=package, seed=seed)
    create_site(setup)
    return Enrolled(key, package.asset_type.name, package.servers, setup.goes_by_proxy)


def _request(code: EnrolmentCode, key: str, seed: Path, *, web_socket: bool) -> EnrolmentRequest:
    signature = signer(seed)(proof(code.code_id, code.site_id, key)).hex()
    return EnrolmentRequest(
        site_id=code.site_id, code_id=code.code_id, secret=code.secret, public_key=key, signature=signature,
        web_socket=web_socket,
    )


def _ask(server: Server, request: EnrolmentRequest) -> EnrolmentPackage:
    """Send the request until there is an answer: the same key may show its code again."""
    connection, reason = server.connect(), ""
    for attempt in range(TRIES):
        try:
            if attempt:
                time.sleep(1.0)
                connection = server.connect()
            return _answer(connection, server.path, request)
        except (_NoAnswerError, UnavailableError) as error:
            reason = str(error)
        except EnrolmentError as error:
            if not attempt:
                raise
            raise _NoAnswerError(f"{reason}, then {error}") from None  # the one before may have enrolled it
        finally:
            connection.close()
    raise _NoAnswerError(reason)


def _answer(connection: http.client.HTTPConnection, path: str, request: EnrolmentRequest) -> EnrolmentPackage:
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    try:
        connection.request("POST", path + PATH, request.model_dump_json(exclude_defaults=True), headers)
        answer = connection.getresponse()
        body = answer.read(LARGEST_ANSWER + 1)
    except (OSError, http.client.HTTPException) as error:
        raise _NoAnswerError(type(error).__name__) from None
    if answer.status >= 500:
        raise _NoAnswerError(f"status {answer.status}: {_detail(body)}")
    if answer.status != 200:
        raise EnrolmentError(f"the server does not enrol this site: {_detail(body)}")
    try:
        package = EnrolmentPackage.model_validate_json(body)
    except ValidationError as error:
        raise _NoAnswerError(f"its answer is no enrolment: {explain(error)}"[:300]) from None
    if package.site_id != request.site_id:
        raise _NoAnswerError("its answer is of another site")
    return package


def _detail(body: bytes) -> str:
    """What a problem document says, on one line."""
    try:
        detail = str(json.loads(body)["detail"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return "it gave no reason that can be read"
    return plain(detail, 300)


def _remove(made: list[Path]) -> None:
    """Take away the folders that were made, the innermost first, while they are empty."""
    for folder in made:
        try:
            folder.rmdir()
        except OSError:
            return
