"""Asks the sites over NATS request/reply."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError

from services.contracts.errors import BallastError, UnavailableError
from services.contracts.wire.codec import COMPACT, OWN_SCORES, READS
from services.contracts.wire.roll import ROLL
from services.coordinator.asking.link_call import Call
from services.coordinator.asking.ports import RawAnswer
from services.coordinator.asking.task_signer import TaskSigner
from services.process.ended_connections import end_connection
from services.process.ended_tasks import done_within, give_up
from services.process.log_filters import silence_link_libraries
from services.process.nats_client import NatsClient
from services.process.tracing import headers, span

INBOX = b"_COORD"
SETTLE_SECONDS = 5.0
"""After a reconnection the sites get this long to come back before one counts as absent."""
HEARD_SECONDS = 1.0
"""How long the server has to say that nobody hears a subject; it takes a round trip."""
AGAIN_SECONDS, AGAIN_TIMEOUT_SECONDS = 0.5, 10.0
"""Between two tries to connect anew, and how long one may take."""
REFUSED = "authorization violation"
Handler = Callable[[Any], Awaitable[None]]


class NatsTransport:
    """Fans a task out to the sites and gathers the answers.

    A request in flight when the server goes away is sent again after the reconnection, within the same deadline: a task
    gets the same answer however often it is asked. It is sent once more when its site says hello, which an agent does
    that began anew, or whose answer the server did not take: with every change of its users (a plant comes, goes, has
    another key) the server forgets who was asked what. The first answer does (:class:`Call`).

    Each task is signed with the key of the connection. Where the server takes that key no more, for it has come to its
    end, it connects anew by the one that the file has now; the library would show the former one for ever.
    """

    def __init__(self, servers: Sequence[str], seed_file: Path, authority: Path | None) -> None:
        self._servers = list(servers)
        self._seed_file = seed_file
        self._authority = authority
        self._client: Any = None
        self._handlers: list[tuple[str, Handler]] = [("hello.*", self._on_hello)]
        self._beginning: asyncio.Task[None] | None = None
        self._calls: dict[Call, str] = {}
        self._reconnected_at = -SETTLE_SECONDS
        self._violation = ""
        self._signer: TaskSigner | None = None

    async def connect(self, timeout_seconds: float = 10.0) -> None:
        """Connect; raise :class:`UnavailableError` when no server answers in time or it refuses the key."""
        silence_link_libraries()
        self._client = await self._opened(timeout_seconds)

    async def _opened(self, timeout_seconds: float) -> Client:
        sealed = self._authority is not None or any(each.startswith(("tls://", "wss://")) for each in self._servers)
        client = NatsClient()

        async def on_error(error: Exception) -> None:
            self._violation = str(error) or type(error).__name__
            if REFUSED in self._violation.lower():
                begin_again()

        async def on_closed() -> None:
            begin_again()

        def begin_again() -> None:
            if client is self._client and (self._beginning is None or self._beginning.done()):
                self._beginning = asyncio.create_task(self._begin_again(client))

        try:
            context = ssl.create_default_context(cafile=self._authority) if sealed else None
        except OSError as error:
            raise UnavailableError(f"the certificate {self._authority} cannot be used: {error.strerror}") from None
        try:
            signing = TaskSigner(self._seed_file)
        except (BallastError, OSError) as error:
            why = f"{self._seed_file} cannot be read: {error.strerror}" if isinstance(error, OSError) else error
            raise UnavailableError(f"no task can be signed: {why}") from None
        try:
            await done_within(
                client.connect(
                    servers=self._servers, tls=context, nkeys_seed=str(self._seed_file), inbox_prefix=INBOX,
                    max_reconnect_attempts=-1, reconnect_time_wait=0.2, allow_reconnect=True,
                    disconnected_cb=self._on_lost, reconnected_cb=self._on_back, error_cb=on_error,
                    closed_cb=on_closed,
                ),
                timeout_seconds,
            )
            for subject, handler in self._handlers:
                await client.subscribe(subject, cb=handler)
        except (TimeoutError, OSError, NatsError) as error:
            await end_connection(client)
            detail = self._violation or str(error) or type(error).__name__
            raise UnavailableError(f"no NATS server at {', '.join(self._servers)}: {detail}") from None
        self._signer = signing
        return client

    async def _begin_again(self, client: Client) -> None:
        """Another client in the place of one that the server does not let in."""
        await end_connection(client)
        while client.is_closed:
            try:
                self._client = client = await self._opened(AGAIN_TIMEOUT_SECONDS)
            except UnavailableError:
                await asyncio.sleep(AGAIN_SECONDS)
        await self._on_back()

    async def close(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if self._beginning is not None:
            await give_up(self._beginning)
            client, self._client = self._client or client, None
        if client is not None:
            await end_connection(client)

    async def subscribe(self, subject: str, handler: Handler) -> None:
        """Hand every message on a subject to a handler, across reconnections."""
        self._handlers.append((subject, handler))
        await self._client.subscribe(subject, cb=handler)

    async def say(self, site_id: str, word: bytes) -> None:
        """Say a word of :mod:`services.contracts.wire.roll` to all agents of a site; lost where nobody hears it."""
        with suppress(NatsError, OSError):
            await self._client.publish(f"site.{site_id}.task", word)

    async def is_heard(self, site_id: str) -> bool:
        """Whether an agent hears the site's tasks, by the server's word: it says at once where nobody does."""
        try:
            await self._client.request(f"site.{site_id}.task", ROLL, timeout=HEARD_SECONDS)
        except NoRespondersError:
            return False
        except TimeoutError:
            return bool(self._client.is_connected)
        except (NatsError, OSError):
            return False
        return True

    async def _on_lost(self) -> None:
        """Give up what is asked: the answers went with the connection."""
        for call in self._calls:
            call.lose()

    async def _on_hello(self, message: Any) -> None:
        """Ask the site once more what it was asked: the answer to that may be lost. Only the site may publish there."""
        name = message.subject.removeprefix("hello.")
        for call, site_id in self._calls.items():
            if site_id == name:
                call.ask_again()

    async def _on_back(self) -> None:
        self._reconnected_at = time.monotonic()

    async def ask(self, frames: Mapping[str, bytes], deadline_seconds: float) -> dict[str, RawAnswer]:
        """Ask all sites at once; each gets an answer or a failure (``absent`` or ``late``).

        ``UnavailableError`` before the link is connected.
        """
        if self._client is None:
            raise UnavailableError("the plant link is not connected")
        deadline = time.monotonic() + deadline_seconds
        answers = await asyncio.gather(*(self._ask_traced(site, frame, deadline) for site, frame in frames.items()))
        return {answer.site_id: answer for answer in answers}

    async def _ask_traced(self, site_id: str, frame: bytes, deadline: float) -> RawAnswer:
        with span("question", "client", site_id=site_id, bytes_out=len(frame)) as more:
            answer = await self._ask_one(site_id, frame, deadline)
            more |= {"bytes_in": len(answer.frame or b""), "outcome": answer.failure or "answered"}
            return answer

    async def _ask_one(self, site_id: str, frame: bytes, deadline: float) -> RawAnswer:
        started = time.monotonic()
        while (left := deadline - time.monotonic()) > 0:
            if not self._client.is_connected:
                await asyncio.sleep(0.05)
                continue
            try:
                reply = await self._request(site_id, frame, left)
                return RawAnswer(site_id, reply, "", time.monotonic() - started)
            except NoRespondersError:
                if time.monotonic() - self._reconnected_at > SETTLE_SECONDS:
                    return RawAnswer(site_id, None, "absent", time.monotonic() - started)
                await asyncio.sleep(0.1)
            except (NatsError, OSError):  # a time-out is an OSError; the loop's condition ends it
                await asyncio.sleep(0.05)
        return RawAnswer(site_id, None, "late", time.monotonic() - started)

    async def _request(self, site_id: str, frame: bytes, timeout: float) -> bytes:
        """What the site answers; ``ConnectionError`` when the connection is lost meanwhile."""
        if self._signer is None:
            raise ConnectionError("the plant link is not connected")
        signing, end = self._signer, time.monotonic() + timeout
        told = {**(headers() or {}), READS: f"{COMPACT} {OWN_SCORES}", **signing.headers(site_id, frame)}

        async def request() -> Any:
            left = end - time.monotonic()
            return await self._client.request(f"site.{site_id}.task", frame, timeout=left, headers=told)

        call = Call(request)
        self._calls[call] = site_id
        try:
            answer = await call.answer
            signing.answered(site_id)
            return answer
        finally:
            self._calls.pop(call)
            call.end()
