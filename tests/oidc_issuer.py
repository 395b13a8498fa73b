"""A small issuer (OpenID Connect) as a real HTTP server: discovery, keys, authorization with PKCE, tokens."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from tests.loopback import serving

AUDIENCE = "ballast-api"
CLIENT = "ballast-console"
SECRET = "of the/console: 1+1"
CONSOLE = "https://ballast"
ROLES = {"watchers": "viewer", "crew": "operator", "chiefs": "administrator"}


@cache
def an_rsa_key(number: int) -> RSAKey:
    """RSA key of a number, made once: each takes a quarter of a second."""
    return RSAKey.generate_key(2048)


class LocalIssuer:
    """An issuer whose answers a test can bend: ``overrides`` go into each document, ``is_down`` closes all doors."""

    def __init__(self) -> None:
        self.keys: dict[str, RSAKey | ECKey] = {}
        self.documents: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.codes: dict[str, dict[str, str]] = {}
        self.person: dict[str, Any] = {"sub": "ada", "roles": ["crew"]}
        self.id_claims: dict[str, Any] = {}
        self.is_down = False
        self.rotations = 0
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.rotate()

    def rotate(self, kind: str = "RSA") -> str:
        """Take a new key in the place of all others; its id."""
        kid = secrets.token_hex(4)
        self.rotations += 1
        made = an_rsa_key(self.rotations % 2) if kind == "RSA" else ECKey.generate_key("P-256")
        self.keys = {kid: made}
        return kid

    def settings(self, **changes: Any) -> dict[str, Any]:
        """Settings of Ballast for this issuer."""
        return {"issuer": self.url, "audience": AUDIENCE, "roles": ROLES} | changes

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Claims of an access token that holds; a change to None takes one away."""
        now = int(time.time())
        made = {"iss": self.url, "aud": AUDIENCE, "iat": now, "nbf": now, "exp": now + 300, **self.person} | changes
        return {name: value for name, value in made.items() if value is not None}

    def token(self, header: dict[str, Any] | None = None, key: Any = None, **changes: Any) -> str:
        """Access token, signed with the newest key unless another is given."""
        kid, mine = next(reversed(self.keys.items()))
        algorithm = "RS256" if isinstance(mine, RSAKey) else "ES256"
        said = {"alg": algorithm, "typ": "at+jwt", "kid": kid} | (header or {})
        told = {name: value for name, value in said.items() if value is not None}
        return jwt.encode(told, self.claims(**changes), key or mine, algorithms=[told["alg"]], default_type=None)

    def authorize(self, asked: dict[str, str]) -> str:
        """Where the browser is sent, with a code, once the person has agreed."""
        assert asked["response_type"] == "code" and asked["code_challenge_method"] == "S256"
        assert asked["redirect_uri"] == f"{CONSOLE}/console/sign-in/oidc/callback"
        code = secrets.token_hex(8)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state'], 'iss': self.url})}"

    def redeem(self, form: dict[str, str], login: str) -> tuple[int, dict[str, Any]]:
        """Answer of the token endpoint: each code once, with the verifier of its challenge."""
        given = base64.b64decode(login.removeprefix("Basic ")).decode().split(":")
        if login and [unquote(part) for part in given] != [CLIENT, SECRET]:
            return 401, {"error": "invalid_client"}
        asked = self.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if asked is None or base64.urlsafe_b64encode(digest).decode().rstrip("=") != asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        claims = {"aud": CLIENT, "nonce": asked["nonce"], **self.id_claims}
        return 200, {"id_token": self.token({"typ": "JWT"}, **claims), "token_type": "Bearer"}

    def answer(self, path: str) -> dict[str, Any] | None:
        """Document of an address; None where there is none."""
        found = {
            "/.well-known/openid-configuration": lambda: {
                "issuer": self.url, "jwks_uri": f"{self.url}/keys", "token_endpoint": f"{self.url}/token",
                "authorization_endpoint": f"{self.url}/authorize",
            },
            "/keys": lambda: {
                "keys": [
                    key.as_dict(private=False) | {"kid": kid, "use": "sig"} for kid, key in self.keys.items()
                ]
            },
        }.get(path)
        return None if found is None else found() | self.documents.get(path, {})

    def _handler(issuer) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                issuer.asked.append(parts.path)
                if parts.path == "/authorize" and not issuer.is_down:
                    self.send_response(302)
                    self.send_header("Location", issuer.authorize(dict(parse_qsl(parts.query))))
                    self.end_headers()
                    return
                found = issuer.answer(parts.path)
                self.say(404 if found is None else 200, found)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                self.say(*issuer.redeem(dict(parse_qsl(body)), self.headers.get("Authorization", "")))

            def say(self, status: int, document: Any) -> None:
                text = json.dumps(document).encode()
                self.send_response(502 if issuer.is_down else status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


@contextmanager
def local_issuer() -> Iterator[LocalIssuer]:
    """An issuer that answers until the end."""
    issuer = LocalIssuer()
    with serving(issuer.server):
        yield issuer
