"""The page's HTTP server: the loopback alone, to who has the secret alone, and to read alone.

A program of another user of the machine may connect to the loopback too, and a page from elsewhere may point a name of
its own at it. So each request names this host and port (no rebinding of names), and brings a cookie that the address
printed at the start sets: once, HttpOnly, SameSite=Strict. Secrets are compared in constant time. Routes are fixed, so
no path leads to a file.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from services import looks
from services.contracts.documents import to_plain
from services.contracts.errors import BallastError, InvalidInputError, NotFoundError, UnavailableError
from services.looks import parts
from services.looks.parts import Html
from services.site_agent.console import pages
from services.site_agent.console.site_state import SiteState
from services.site_agent.settings import SiteSettings

HOST: Final = "127.0.0.1"
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_WAIT_SECONDS: Final = 10.0
"""A connection that says nothing for so long is closed."""


@dataclass(frozen=True)
class Page:
    """One address: its title, what it shows, and how."""

    title: str
    find: Callable[[SiteState, dict[str, str]], dict[str, Any]]
    show: Callable[[dict[str, Any]], Html]


def _ledger(state: SiteState, query: dict[str, str]) -> dict[str, Any]:
    number = query.get("page", "1")
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        raise InvalidInputError("the page of the ledger is a whole number from 1 on")
    try:
        return state.ledger.page(int(number))
    except NotFoundError:
        raise
    except BallastError as error:
        return {"sound": False, "trouble": str(error)}


PAGES: Final = {
    "/": Page("Overview", lambda state, query: state.overview(), pages.overview),
    "/ledger": Page("Ledger", _ledger, pages.ledger),
    "/exposure": Page("Exposure", lambda state, query: state.exposure(), pages.exposure),
    "/drift": Page("Drift", lambda state, query: state.drift(), pages.drift),
    "/policy": Page("Policy", lambda state, query: state.policy(), pages.policy),
}
DOCUMENTS: Final = {("/overview" if path == "/" else path) + ".json": page for path, page in PAGES.items()}
OPEN: Final = "/open"


class SiteConsole(ThreadingHTTPServer):
    """The server of one site's page, bound to the loopback when it is made; ``UnavailableError`` where that fails."""

    daemon_threads = True

    def __init__(self, settings: SiteSettings, port: int) -> None:
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            why = getattr(error, "strerror", None) or error
            raise UnavailableError(f"port {port} of {HOST} cannot be served: {why}; give another by --port") from None
        self.state = SiteState(settings)
        self._mutex = threading.Lock()
        self._once: str | None = secrets.token_urlsafe(32)
        self._cookie = secrets.token_urlsafe(32)
        self.cookie_name = f"ballast-site-{self.server_port}"  # browsers hold the cookies of all ports together

    def server_bind(self) -> None:
        """Bind without asking a name server for this host's name, as the library does: nothing is sent."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """A reader who hangs up in the middle is no news."""

    @property
    def first_address(self) -> str:
        """The address that opens the page, once; empty when it was used."""
        return f"http://{HOST}:{self.server_port}{OPEN}?secret={self._once}" if self._once else ""

    def knows_host(self, host: str | None) -> bool:
        """Whether a request means this server by a name that nobody else can give it."""
        named = (f"{HOST}:{self.server_port}", f"localhost:{self.server_port}")
        return host is not None and host.lower() in (named if self.server_port != 80 else (*named, HOST, "localhost"))

    def cookie_for(self, secret: str) -> str | None:
        """The cookie, for who brings the secret of the first address, the first time."""
        with self._mutex:
            if self._once is None or not secrets.compare_digest(secret.encode(), self._once.encode()):
                return None
            self._once = None
            return self._cookie

    def lets_in(self, header: str | None) -> bool:
        """Whether a request's cookies have ours."""
        for pair in (header or "").split(";"):  # others on this host may have set what a strict reader chokes on
            name, _, value = pair.strip().partition("=")
            if name == self.cookie_name and secrets.compare_digest(value.encode(), self._cookie.encode()):
                return True
        return False


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: SiteConsole
    server_version, sys_version = "Ballast", ""
    timeout = _WAIT_SECONDS

    def do_GET(self) -> None:  # noqa: N802 - http.server finds it by this name
        """Answer; whatever goes wrong is one sentence and no traceback."""
        try:
            self._answer()
        except NotFoundError as error:
            self._stop(HTTPStatus.NOT_FOUND, str(error))
        except BallastError as error:
            self._stop(HTTPStatus.BAD_REQUEST, str(error))
        except ConnectionError:
            self.close_connection = True
        except Exception:  # the page goes on, and tells nothing of how it is made
            self._stop(HTTPStatus.INTERNAL_SERVER_ERROR, "This cannot be shown: the files hold what cannot be read.")

    do_HEAD = do_GET  # noqa: N815 - as above

    def _answer(self) -> None:
        if not self.server.knows_host(self.headers.get("Host")):
            self._stop(HTTPStatus.MISDIRECTED_REQUEST, f"This page is served as {HOST}:{self.server.server_port} only.")
            return
        try:
            address = urlsplit(self.path)
            query = {name: values[-1] for name, values in parse_qs(address.query, max_num_fields=8).items()}
        except ValueError:
            raise InvalidInputError("the address cannot be read") from None
        name = address.path[1:]
        if name in looks.FILES:  # they are in every copy of Ballast
            self._send(HTTPStatus.OK, looks.content(name), looks.FILES[name])
        elif address.path == OPEN:
            self._open(query.get("secret", ""))
        elif not self.server.lets_in(self.headers.get("Cookie")):
            self._stop(HTTPStatus.FORBIDDEN, "Open the address that ballast-site console printed; it opens once.")
        elif address.path in PAGES:
            page = PAGES[address.path]
            self._page(HTTPStatus.OK, page.title, page.show(page.find(self.server.state, query)), address.path)
        elif address.path in DOCUMENTS:
            found = to_plain(DOCUMENTS[address.path].find(self.server.state, query))
            text = json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False)
            self._send(HTTPStatus.OK, text.encode("utf-8", "replace"), "application/json")
        else:
            raise NotFoundError("there is no such page")

    def _open(self, secret: str) -> None:
        """Let the first one in who brings the secret; who has the cookie already goes on."""
        if self.command != "GET":
            raise InvalidInputError("this address is opened by GET")
        cookie = self.server.cookie_for(secret)
        if cookie is None and not self.server.lets_in(self.headers.get("Cookie")):
            self._stop(
                HTTPStatus.FORBIDDEN,
                "This is not the address that ballast-site console printed, or it was used already. Start the command "
                "again for a new one.",
            )
            return
        more = {"Location": "/"}
        if cookie is not None:
            more["Set-Cookie"] = f"{self.server.cookie_name}={cookie}; HttpOnly; SameSite=Strict; Path=/"
        self._send(HTTPStatus.SEE_OTHER, b"", "text/plain", more)

    def _page(self, status: HTTPStatus, title: str, body: Html, section: str) -> None:
        site = self.server.state.settings.site_id
        text = parts.page(title, site, body, pages.NAVIGATION, section, f"Plant {site}")
        self._send(status, text.encode("utf-8", "replace"), "text/html")

    def _stop(self, status: HTTPStatus, why: str, more: dict[str, str] | None = None) -> None:
        """A page with the reason alone."""
        body = parts.joined([parts.head(status.phrase), parts.notice(why, "bad")])
        self._send(status, parts.page(status.phrase, "Ballast", body).encode(), "text/html", more)

    def _send(self, status: HTTPStatus, content: bytes, kind: str, more: dict[str, str] | None = None) -> None:
        self.send_response(status)
        told = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(content))}
        for name, value in (HEADERS | told | (more or {})).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the library refuses by itself, in our own form; a method that is none of ours is 405."""
        if code == HTTPStatus.NOT_IMPLEMENTED:
            self._stop(HTTPStatus.METHOD_NOT_ALLOWED, "This page is read only: GET or HEAD.", {"Allow": "GET, HEAD"})
        else:
            self._stop(HTTPStatus(code), "The request cannot be read.")

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the library's name
        """Nothing: the first address has a secret in it."""
