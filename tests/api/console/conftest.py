"""Somebody who is signed in to the console, without a browser: cookies, forms and their tokens by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from html import unescape
from typing import Any

import pytest
from httpx import Response

from api.web.sessions import COOKIE
from services.contracts.access.identity import Role

HOST = "ballast"
ORIGIN = f"https://{HOST}"
STRANGE = ('seen={"page": 3}', "a b=1", "chart[2]=open", "when=30 Nov 2026", "flag", "a,b=1", "name=Jörg")
"""Cookies as other programs set them, which no standard allows and browsers send all the same."""


@dataclass
class Person:
    """Asks as a browser does; ``headers`` go with every request."""

    world: Any
    secret: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    known: dict[str, str] = field(default_factory=dict, repr=False)

    def call(self, method: str, path: str, **more: Any) -> Response:
        headers = {"Host": HOST, **({"Cookie": f"{COOKIE}={self.secret}"} if self.secret else {}), **self.headers}
        return self.world.call(None, method, path, headers=headers | more.pop("headers", {}), **more)

    def get(self, path: str, **more: Any) -> Response:
        return self.call("GET", path, **more)

    def post(self, path: str, origin: str | None = ORIGIN, token: str | None = None, **fields: str) -> Response:
        told = {"form_token": self.form_token() if token is None else token, **fields}
        return self.call("POST", path, data=told, headers={} if origin is None else {"Origin": origin})

    def form_token(self) -> str:
        """Token of the session's forms, as a page has it."""
        if self.secret not in self.known:
            self.known[self.secret] = self._form_token()
        return self.known[self.secret]

    def _form_token(self) -> str:
        found = re.search(r'name="form_token" value="([0-9a-f]{64})"', self.get("/console/components").text)
        return found[1] if found else ""

    def sign_in(self, token: str, to: str = "/console", origin: str | None = ORIGIN) -> Response:
        headers = {} if origin is None else {"Origin": origin}
        answer = self.call("POST", "/console/sign-in", data={"token": token, "to": to}, headers=headers)
        found = re.search(rf"{COOKIE}=([0-9a-f]+);", answer.headers.get("set-cookie", ""))
        if found:
            self.secret = found[1]
        return answer


def text_of(answer: Response) -> str:
    """What a reader sees of a page, roughly."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", answer.text)))


@pytest.fixture(scope="session")
def signed_in() -> Callable[..., Person]:
    """Sign a role in to a world."""

    def sign(world: Any, role: Role = Role.ADMINISTRATOR) -> Person:
        person = Person(world)
        answer = person.sign_in(world.tokens[role])
        assert answer.status_code == 303, answer.text
        return person

    return sign


@pytest.fixture(scope="module")
def people(shared_world: Any, signed_in: Callable[..., Person]) -> dict[Role, Person]:
    """One of each role, signed in to the world that nobody changes."""
    return {role: signed_in(shared_world, role) for role in Role}


@pytest.fixture(scope="session")
def somebody() -> type[Person]:
    return Person


@pytest.fixture(scope="session")
def reading() -> Callable[[Response], str]:
    return text_of
