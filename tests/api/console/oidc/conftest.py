"""A world with a real issuer, and a browser that goes the way to it and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx
import pytest

from api.console.sign_ins import COOKIE as SIGN_IN_COOKIE
from api.web.sessions import COOKIE
from tests.oidc_issuer import CLIENT, CONSOLE, SECRET, LocalIssuer, local_issuer

START = "/console/sign-in/oidc"
BACK = f"{START}/callback"


@pytest.fixture
def issuer() -> Iterator[LocalIssuer]:
    with local_issuer() as opened:
        yield opened


@pytest.fixture
def world(
    tmp_path: Path, filled_sqlite: Any, mlflow_settings: dict[str, str], opening: Callable[..., Any],
    issuer: LocalIssuer,
) -> Iterator[Any]:
    (tmp_path / "client-secret").write_text(f"{SECRET}\n", encoding="utf-8")
    stated = issuer.settings(client_id=CLIENT, console_url=CONSOLE, client_secret_file=str(tmp_path / "client-secret"))
    with opening(tmp_path, filled_sqlite.new(), mlflow_settings, known=filled_sqlite.tokens, oidc=stated) as opened:
        yield opened


def cookie_of(answer: httpx.Response, name: str) -> str:
    found = re.search(rf"{name}=([^;]*);", answer.headers.get("set-cookie", ""))
    return found[1] if found else ""


class Browser:
    """Follows the redirects between the console and the issuer, and keeps the cookies of the console."""

    def __init__(self, person: Any) -> None:
        self.person = person
        self.kept = ""

    def begin(self, to: str = "/console") -> httpx.Response:
        answer = self.person.call("GET", f"{START}?{urlencode({'to': to})}")
        self.kept = cookie_of(answer, SIGN_IN_COOKIE)
        return answer

    def agree(self, address: str) -> str:
        """Go to the issuer; where it sends the browser back to, without the host."""
        back = urlsplit(httpx.get(address, follow_redirects=False).headers["Location"])
        return f"{back.path}?{back.query}"

    def back(self, address: str, kept: str | None = None) -> httpx.Response:
        held = self.kept if kept is None else kept
        cookies = f"{SIGN_IN_COOKIE}={held}" + (f"; {COOKIE}={self.person.secret}" if self.person.secret else "")
        answer = self.person.call("GET", address, headers={"Cookie": cookies})
        self.person.secret = cookie_of(answer, COOKIE) or self.person.secret
        return answer

    def sign_in(self, to: str = "/console") -> httpx.Response:
        return self.back(self.agree(self.begin(to).headers["Location"]))


@pytest.fixture
def browser(world: Any, somebody: Any) -> Browser:
    return Browser(somebody(world))


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}
