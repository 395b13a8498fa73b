"""A change that is asked for again with the same ``Idempotency-Key`` is answered as the first time, and made once.

The outcome is kept for a day, sealed (XSalsa20-Poly1305, ``nacl.secret.SecretBox``) with a key that follows from the
caller's token, which the store does not have: an answer may hold a secret that is shown once, such as a new token.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
from http import HTTPStatus
from typing import Final

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.backend.nats_users import ChangeStoredError
from api.web.errors import ballast_problem
from services.contracts.errors import BallastError, ConflictError, InvalidInputError, UnavailableError
from services.round_store.database.failures import COMMIT_UNKNOWN
from services.round_store.operation.outcomes import Outcome
from services.round_store.store import RoundStore

LOG = logging.getLogger("ballast.api")
CHANGES: Final = "/v1/admin"
"""Every address that changes something is below this; what is asked of models keeps nothing."""
METHODS: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
LONGEST_KEY: Final = 255  # characters; a UUID has 36
NOT_KEPT: Final = frozenset({401, 403, 408, 413, 415, 429})
"""Answers that say nothing of the change; from 500 on only that a change is stored is kept, or may be."""
REPLAYED: Final = (b"idempotent-replayed", b"true")


class Idempotency:
    """Takes the key before a change is made, and keeps its outcome before it is sent."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._owed: set[tuple[str, str]] = set()
        """Keys that could not be given back while the store was away."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on what has no key; answer what has one that is known."""
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        key = headers.get("idempotency-key")
        if key is None or scope["method"] not in METHODS or not _changes(scope):
            await self._app(scope, receive, send)
            return
        try:
            answer = await self._answered(scope, receive, headers, key)
        except BallastError as error:
            await ballast_problem(error)(scope, receive, send)
            return
        except ClientDisconnect:  # before the whole body was there: nothing was begun, and nobody waits for an answer
            return
        await _send(answer, send)

    async def _answered(self, scope: Scope, receive: Receive, headers: Headers, key: str) -> list[Message]:
        if not 0 < len(key) <= LONGEST_KEY or not key.isascii() or not key.isprintable():
            raise InvalidInputError(f"the header Idempotency-Key has 1 to {LONGEST_KEY} printable ASCII characters")
        store: RoundStore = scope["app"].state.backend.store
        body = await _body(receive)
        token_id = scope["state"]["caller"].token.token_id
        name = hashlib.sha256(key.encode()).hexdigest()
        asked = _digest(scope, headers, body)
        if (token_id, name) in self._owed:
            self._owed.discard((token_id, name))  # before it is waited for: another with this key comes after it
            await self._give_back(store, token_id, name)
        before = await run_in_threadpool(_begin, store, token_id, name, asked)
        box = _box(headers["authorization"], key)
        if before is not None:
            if before.request_sha256 != asked:
                raise InvalidInputError(
                    "this Idempotency-Key was used for another request; take a new one for each change",
                    code="idempotency_mismatch",
                )
            if before.sealed is None:
                raise ConflictError(
                    "the first request with this Idempotency-Key has not ended, or the server stopped meanwhile; wait, "
                    "or look what it did and take a new key", code="idempotency_unfinished",
                )
            return _opened(box, before.sealed)
        try:
            answer = await self._asked(scope, body, receive)
        except Exception:  # not what ends the task with the server: then the change may have been made, or be yet
            await self._give_back(store, token_id, name)
            raise
        status = answer[0]["status"]
        if _has_code(answer, COMMIT_UNKNOWN):  # the key stays taken: asked again, the change might be made twice
            return answer
        if (status >= 500 and not _has_code(answer, ChangeStoredError.code)) or status in NOT_KEPT:
            await self._give_back(store, token_id, name)
        else:
            try:
                await run_in_threadpool(store.outcomes.finish, token_id, name, _sealed(box, answer))
            except UnavailableError as error:
                LOG.warning("the outcome of a request is not kept: %s", error)
        return answer

    async def _give_back(self, store: RoundStore, token_id: str, name: str) -> None:
        """Free a key whose request changed nothing; while the store is away, when it is asked for next.

        One of which nobody knows whether it is free stays as it is: another may have taken it.
        """
        try:
            await run_in_threadpool(_forget, store, token_id, name)
        except UnavailableError as error:
            if error.code != COMMIT_UNKNOWN:
                self._owed.add((token_id, name))

    async def _asked(self, scope: Scope, body: bytes, receive: Receive) -> list[Message]:
        """Whole answer of the application; its body as one message."""
        start: Message = {}
        parts: list[bytes] = []
        given = False

        async def again() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def collect(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            elif message["type"] == "http.response.body":
                parts.append(message.get("body", b""))

        await self._app(scope, again, collect)
        return [start, {"type": "http.response.body", "body": b"".join(parts)}]


def _begin(store: RoundStore, token_id: str, name: str, asked: str) -> Outcome | None:
    with store.atomic() as unit:
        return unit.outcomes.begin(token_id, name, asked)


def _forget(store: RoundStore, token_id: str, name: str) -> None:
    with store.atomic() as unit:
        unit.outcomes.forget(token_id, name)


def _has_code(answer: list[Message], code: str) -> bool:
    """Whether an answer is a failure (503) that says that the change is made all the same, or may be."""
    start, end = answer
    if start["status"] != HTTPStatus.SERVICE_UNAVAILABLE:
        return False
    return bool(json.loads(end["body"])["code"] == code)


async def _body(receive: Receive) -> bytes:
    """Whole body of a request, ``ClientDisconnect`` where it breaks off; its length is limited further out."""
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


async def _send(answer: list[Message], send: Send) -> None:
    for message in answer:
        await send(message)


def _changes(scope: Scope) -> bool:
    path = str(scope["path"]).removeprefix(scope.get("root_path", ""))
    return path.startswith(f"{CHANGES}/")


def _digest(scope: Scope, headers: Headers, body: bytes) -> str:
    """What makes two requests the same: method, address, what they were made from, and body."""
    parts = (
        scope["method"].encode(), str(scope["path"]).encode(), scope["query_string"],
        headers.get("if-match", "").encode(), body,
    )
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def _box(authorization: str, key: str) -> SecretBox:
    token = authorization.partition(" ")[2].strip()
    return SecretBox(hashlib.sha256(b"ballast.outcome/1\n" + f"{token}\n{key}".encode()).digest())


def _sealed(box: SecretBox, answer: list[Message]) -> bytes:
    start, end = answer
    plain = {
        "status": start["status"], "body": base64.b64encode(end["body"]).decode(),
        "headers": [[name.decode("latin-1"), value.decode("latin-1")] for name, value in start["headers"]],
    }
    return bytes(box.encrypt(json.dumps(plain).encode()))


def _opened(box: SecretBox, sealed: bytes) -> list[Message]:
    try:
        plain = json.loads(box.decrypt(sealed))
    except CryptoError:
        raise ConflictError(
            "this change was asked for already, under another access token of yours, and its answer can be read with "
            "that one alone; look what was done, and take a new Idempotency-Key only for another change",
            code="idempotency_other_token",
        ) from None
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in plain["headers"]]
    return [
        {"type": "http.response.start", "status": plain["status"], "headers": [*headers, REPLAYED]},
        {"type": "http.response.body", "body": base64.b64decode(plain["body"])},
    ]
