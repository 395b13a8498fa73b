"""The plant's one connection: outbound to the OEM's NATS server, for tasks in and answers out.

It knows neither data nor methods: it is given functions that turn a task's bytes into an answer's bytes. It connects
by itself, again and again, for as long as it takes; it ends only when it is told to or when going on is hopeless: a key
that the server does not know, a subject that it does not allow, a certificate that does not fit, a ledger that is full.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any

from nats.aio.client import Client
from nats.errors import Error as NatsError

from services.contracts.errors import BallastError, UnavailableError
from services.contracts.wire.roll import TWINS, WORDS
from services.process.ended_connections import end_connection
from services.process.ended_tasks import give_up
from services.process.log_filters import silence_link_libraries
from services.process.nats_client import NatsClient
from services.process.tracing import span
from services.site_agent.connection.link_address import Address, LinkError
from services.site_agent.connection.link_errors import (
    Hopeless,
    is_answer_refused,
    is_key_refused,
    is_of_the_way,
    said_of_the_way,
)
from services.site_agent.logs import LOG

RECONNECT_SECONDS = 0.5  # quick for the plant, and two tries a second are no load for the server
TASKS_WAITING = 1024
"""Tasks and looks whether the agent is there that may wait while one task is worked on; more are dropped, and asked
again by the coordinator. At a look every ten seconds this is enough for a task of hours."""
Answer = Callable[[bytes, Mapping[str, str] | None], bytes]
HELLO_SECONDS = 1.0  # between two hellos at most so often: each of them is a line in the ledger


class PlantLink:
    """Connection of one site agent.

    ``answer`` turns a task frame into an answer frame, told the headers beside it; it runs in a worker
    thread, one task at a time, so that the server's pings are answered meanwhile. ``hello`` gives the frame
    that says the agent is there. ``connected`` is called once, with the first server that has heard it.
    """

    def __init__(
        self, address: Address, answer: Answer, hello: Callable[[], bytes],
        connected: Callable[[str], None] | None = None,
    ) -> None:
        self._address = address
        self._seed = address.seed_file.read_text(encoding="ascii").strip()  # once, as that which signs the answers
        self._answer = answer
        self._hello = hello
        self._connected = connected
        self._outage_said = False
        self._connected_once = False
        self._greeted: Client | None = None
        self._greeted_at = float("-inf")
        self._hopeless = Hopeless(address)
        self._failure: asyncio.Future[BallastError] | None = None
        self._asking_again: asyncio.Task[None] | None = None

    @property
    def is_connected(self) -> bool:
        """Whether the server has heard the agent's hello over the present connection."""
        return self._greeted is not None and bool(self._greeted.is_connected)

    async def run(self, stop: asyncio.Event, connect_timeout: float | None = None) -> None:
        """Serve tasks until ``stop`` is set.

        ``UnavailableError`` when no server answered within ``connect_timeout`` seconds of the start (None: wait for
        ever); ``LinkError`` when the server refused the key or a subject, or its certificate does not fit.
        """
        silence_link_libraries()
        self._failure = asyncio.get_running_loop().create_future()
        context = self._address.tls_context()
        timeout = connect_timeout
        while not stop.is_set():
            await self._serve_one_connection(stop, context, timeout)
            timeout = None
            if not stop.is_set():
                await asyncio.sleep(RECONNECT_SECONDS)

    async def _serve_one_connection(
        self, stop: asyncio.Event, context: ssl.SSLContext | None, timeout: float | None
    ) -> None:
        client = self._client()
        closed = asyncio.Event()
        closing = False

        async def on_closed() -> None:
            if client.last_error is not None and not closing:
                await self._on_error(client.last_error)
            closed.set()

        async def on_lost() -> None:
            if not closing:
                await self._on_disconnected()

        async def on_back() -> None:
            await self._greet(client)

        async def on_task(message: Any) -> None:
            await self._on_task(client, message)

        async def connect() -> None:
            await client.connect(
                servers=list(self._address.servers), tls=context, nkeys_seed_str=self._seed,
                name=f"ballast-site {self._address.site_id}", max_reconnect_attempts=-1,
                reconnect_time_wait=RECONNECT_SECONDS, error_cb=self._on_error, closed_cb=on_closed,
                disconnected_cb=on_lost, reconnected_cb=on_back,
            )
            await client.subscribe(self._address.task_subject, cb=on_task, pending_msgs_limit=TASKS_WAITING)
            await self._greet(client)

        try:
            if not await self._first_of(connect(), stop, timeout):
                raise UnavailableError(
                    f"no NATS server answered at {', '.join(self._address.servers)} within {timeout:g} s"
                )
            await self._first_of(closed.wait(), stop, None)
        finally:
            closing = True
            await end_connection(client)

    def _client(self) -> Client:
        if not any(server.startswith(("ws://", "wss://")) for server in self._address.servers):
            return NatsClient()
        try:
            from services.site_agent.connection.web_socket import WebSocketClient
        except ImportError:
            raise LinkError("a WebSocket needs aiohttp: pip install 'ballast-diagnosis[websocket]'") from None
        return WebSocketClient(self._address.proxy, self._address.proxy_auth)

    async def _first_of(self, work: Any, stop: asyncio.Event, timeout: float | None) -> bool:
        """Wait for the work, a stop or a failure, which is raised; False when the time is up."""
        if self._failure is None:
            raise RuntimeError("the link is not running")
        job, stopped = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
        try:
            done, _ = await asyncio.wait(
                {job, stopped, self._failure}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED
            )
            if self._failure in done:
                raise self._failure.result()
            if job in done:
                job.result()
            return bool(done)
        finally:
            for task in (job, stopped):
                await give_up(task)

    async def _greet(self, client: Client) -> None:
        """Say hello, after every connection."""
        try:
            frame = await asyncio.to_thread(self._hello)
            await client.publish(self._address.hello_subject, frame)
            await client.flush()
        except (NatsError, ConnectionError, TimeoutError):
            return  # lost again; the next connection says hello
        except BallastError as error:
            self._fail(error)
            return
        if client is not self._greeted:
            LOG.info("connected %s to %s", "again" if self._connected_once else "as a site", _netloc(client))
        if self._connected is not None and not self._connected_once:
            self._connected(_netloc(client))
        self._greeted, self._greeted_at = client, time.monotonic()
        self._connected_once = True
        self._outage_said = False
        self._hopeless.accepted()

    async def _on_word(self, client: Client, message: Any) -> None:
        """Heed what is no task: say hello again, or tell the plant that it runs two agents."""
        if message.data == TWINS:
            LOG.warning("another agent answers under this site's key too; stop one of them")
        elif not message.reply:
            await asyncio.sleep(max(0.0, self._greeted_at + HELLO_SECONDS - time.monotonic()))
            await self._greet(client)

    async def _on_task(self, client: Client, message: Any) -> None:
        if message.data in WORDS:
            await self._on_word(client, message)
            return
        if not message.reply:
            LOG.warning("a task without a reply address was ignored")
            return
        try:
            size = len(message.data)
            with span("answer", "server", message.headers, site_id=self._address.site_id, bytes_in=size) as more:
                frame = await asyncio.to_thread(self._answer, bytes(message.data), message.headers)
                more["bytes_out"] = len(frame)
        except BallastError as error:
            self._fail(error)
            return
        try:
            await message.respond(frame)
        except (NatsError, ConnectionError) as error:
            LOG.warning("an answer could not be sent: %s", str(error) or type(error).__name__)

    async def _on_disconnected(self) -> None:
        self._greeted = None
        if self._connected_once and not self._outage_said:
            self._outage_said = True
            LOG.warning("connection lost; trying again until the server is back")

    async def _on_error(self, error: Exception) -> None:
        failure = self._hopeless.of(error, was_connected=self._connected_once)
        if failure is not None:
            self._fail(failure)
        elif is_key_refused(error):
            pass  # within the grace period
        elif is_answer_refused(error) and self._greeted is not None:
            LOG.warning("an answer was not taken, for the server's users changed meanwhile; saying so by a hello")
            self._asking_again = asyncio.create_task(self._greet(self._greeted))  # this is called by what reads
        elif isinstance(error, OSError | asyncio.TimeoutError) or is_of_the_way(error):
            if not self._outage_said:
                self._outage_said = True
                way = said_of_the_way(error, through_proxy=self._address.proxy is not None)
                LOG.warning("no server at %s yet%s; trying until it is there", ", ".join(self._address.servers), way)
        else:
            LOG.warning("plant link: %s", str(error) or type(error).__name__)

    def _fail(self, error: BallastError) -> None:
        if self._failure is not None and not self._failure.done():
            self._failure.set_result(error)


def _netloc(client: Client) -> str:
    url = client.connected_url
    return url.netloc if url is not None else "the server"
