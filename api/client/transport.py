"""One request and its answer by HTTP, with the standard library alone; attempts where a second one can do no harm."""

from __future__ import annotations

import http.client
import json
import ssl
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from api.client.errors import (
    ApiError,
    ChangeStoredError,
    CommitUnknownError,
    InvalidRequestError,
    ServerError,
    SignedOutError,
    UnreachableError,
    error_of,
)
from services.contracts.access.oidc import check_base
from services.contracts.documents import to_plain

AGAIN: Final = frozenset({502, 503, 504})
"""Statuses that may be others a moment later."""
LONGEST_PAUSE: Final = 10.0  # seconds; who waits at a terminal does not think it hangs
Token = str | Callable[[], str]
"""A token, or what gives one: an issuer's access tokens end after minutes."""


@dataclass(frozen=True)
class Answer:
    """JSON of an answer, with its headers."""

    content: Any
    headers: Mapping[str, str]


class _StayHere(urllib.request.HTTPRedirectHandler):
    """Follows nothing: a token goes to the address that was given, and to no other."""

    def http_error_302(self, req: object, fp: object, code: int, msg: str, headers: object) -> None:
        """Take the redirect as the answer; the address that it names is not looked at, it may be none."""

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


class Transport:
    """Asks one server. A change carries an ``Idempotency-Key``, so that asking again does not make it twice."""

    def __init__(
        self, url: str, token: Token, *, ca_file: Path | None = None, timeout: float = 30.0, attempts: int = 3,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._url = check_base(url).rstrip("/")
        self._token = token
        self._timeout = timeout
        self._attempts = max(1, attempts)
        self._sleep = sleep
        try:
            trust = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
        except OSError as error:  # which does not say of which file
            why = getattr(error, "reason", None) or error.strerror or error
            raise InvalidRequestError(f"{ca_file} is no file of an authority's certificates: {why}") from None
        # What goes in the open goes to this host, and to no proxy that the environment names for others.
        straight = [urllib.request.ProxyHandler({})] if self._url.lower().startswith("http:") else []
        self._opener = urllib.request.build_opener(*straight, urllib.request.HTTPSHandler(context=trust), _StayHere)

    def call(
        self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: Any = None,
        change: str | bool = False,
    ) -> Answer:
        """Ask, and ask again after a failure that may pass.

        ``change``: the request's own idempotency key, True for a new one, False for what changes nothing.
        """
        asked = {name: value for name, value in (query or {}).items() if value is not None}
        headers = {"Authorization": self._authorization()}
        if change:
            headers["Idempotency-Key"] = uuid.uuid4().hex if change is True else change
            if not _fits_a_header(headers["Idempotency-Key"]):
                raise InvalidRequestError("a change's key has printable ASCII characters alone", code="invalid_input")
        data = None
        if body is not None:
            data, headers["Content-Type"] = json.dumps(to_plain(body)).encode(), "application/json"
        address = self._url + path + (f"?{urlencode(asked, doseq=True)}" if asked else "")
        for attempt in range(1, self._attempts + 1):
            try:
                return self._ask(urllib.request.Request(address, data, headers, method=method))
            except (UnreachableError, ApiError) as error:
                # Another of ours with the same key is on its way: its answer will be there in a moment.
                passes = error.status in AGAIN or not error.status or error.code == "idempotency_unfinished"
                final = isinstance(error, ServerError | ChangeStoredError | CommitUnknownError)
                if attempt == self._attempts or final or not passes:
                    raise
                self._sleep(min(LONGEST_PAUSE, 0.5 * 2.0**attempt))
        raise AssertionError  # the last attempt returns or raises

    def open(self, path: str, headers: Mapping[str, str], timeout: float) -> http.client.HTTPResponse:
        """Open a stream; what goes wrong is an :class:`ApiError`."""
        request = urllib.request.Request(self._url + path, headers={"Authorization": self._authorization(), **headers})
        try:
            stream: http.client.HTTPResponse = self._opener.open(request, timeout=timeout)
        except urllib.error.HTTPError as error:
            raise _refusal(error) from None
        except (OSError, http.client.HTTPException, UnicodeError) as error:  # the last: a host that is no name
            raise UnreachableError(f"{self._url} does not answer: {getattr(error, 'reason', error)}") from None
        return stream

    def _authorization(self) -> str:
        """Header with the token, without the line end that a file has; what no header can hold is shown to nobody."""
        token = (self._token() if callable(self._token) else self._token).strip()
        if not _fits_a_header(token):
            raise SignedOutError("this is not a token: it holds more than printable ASCII", code="unauthenticated")
        return f"Bearer {token}"

    def _ask(self, request: urllib.request.Request) -> Answer:
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                text, headers = answer.read(), dict(answer.headers.items())
        except urllib.error.HTTPError as error:
            raise _refusal(error) from None
        except (OSError, http.client.HTTPException, UnicodeError) as error:  # the last: a host that is no name
            raise UnreachableError(f"{self._url} does not answer: {getattr(error, 'reason', error)}") from None
        content = _json(text)
        if content is None and text:
            raise ServerError("the answer is no JSON; is this address Ballast's?", status=200)
        return Answer(content, headers)


def _refusal(answer: urllib.error.HTTPError) -> ApiError:
    """What an answer refuses; of one that breaks off, what its status says."""
    with answer:
        try:
            content = _json(answer.read())
        except (OSError, http.client.HTTPException):
            content = None
    return error_of(answer.code, content)


def _fits_a_header(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # the second: nested more deeply than JSON is read
        return None
