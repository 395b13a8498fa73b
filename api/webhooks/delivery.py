"""Sends events to webhooks: in order, signed, again and again until they arrive, and not for ever.

An event may arrive twice (its number says so), never out of order, and none is left out. A webhook that fails
:data:`MOST_FAILURES` times in a row, over some two hours, is disabled; enabled again, it goes on from there. Where
events that it was not sent are no longer kept by then, a message that they are lost comes first, with the number of
the last of them.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import httpx

from api.backend.wiring import Backend
from api.webhooks.schemas import Delivery
from services.contracts.documents import to_plain
from services.contracts.errors import BallastError
from services.contracts.history.events import LOST, Event, Webhook
from services.identity.service_keys import WEBHOOKS
from services.identity.webhook_signature import SIGNATURE, TIMESTAMP, secret_of, signature
from services.process.command_line import product_version

LOG = logging.getLogger("ballast.api")
LOOK_SECONDS: Final = 2.0  # between two looks for what waits
TIMEOUT_SECONDS: Final = 10.0
"""For a whole answer, however slowly it trickles in; a webhook's turn ends with the first answer after so long."""
WORKERS: Final = 16
"""Webhooks that have their turn at the same time: so many addresses may be slow, and hold up none of the others."""
TURN_SECONDS: Final = 60.0
"""How long a webhook is one process's: a turn takes two answers' time at most. Who dies in its turn keeps the webhook
for no longer."""
MOST_FAILURES: Final = 14
"""A receiver that is away for some two hours, of which the last is one wait, misses nothing."""
LONGEST_WAIT: Final = 3600.0  # seconds: a receiver that is back has its events within the hour
AT_ONCE: Final = 100
"""Events that are sent to one webhook in a turn: faster than a run has rounds, with a look every two seconds."""
TRUST_SECONDS: Final = 60.0  # so long authorities that were read are taken
Post = Callable[[str, bytes, dict[str, str]], int]


def signing_key(backend: Backend) -> bytes:
    """Key that the webhooks' secrets follow from, the service's own; ``UnavailableError`` where it is not here."""
    return backend.service_keys.get(WEBHOOKS)


def post(url: str, body: bytes, headers: dict[str, str]) -> int:
    """Send a message; the status of the answer, whose body is not read. Redirects are not followed."""
    return asyncio.run(asyncio.wait_for(_posted(url, body, headers), TIMEOUT_SECONDS))


async def _posted(url: str, body: bytes, headers: dict[str, str]) -> int:
    trusted = _trusted(int(time.monotonic() / TRUST_SECONDS))
    # What goes in the open goes to this host, and to no proxy that the environment names for others.
    to_proxies = not url.lower().startswith("http:")
    try:
        made = httpx.AsyncClient(timeout=TIMEOUT_SECONDS, follow_redirects=False, verify=trusted, trust_env=to_proxies)
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        why = str(error) if isinstance(error, ImportError) else "its address is none of an HTTP proxy"
        raise httpx.ConnectError(f"the proxy that the environment names cannot be used: {why}") from None
    async with made as client, client.stream("POST", url, content=body, headers=headers) as answer:
        return answer.status_code


@lru_cache(maxsize=1)
def _trusted(_: int) -> ssl.SSLContext:
    """The authorities that receivers' certificates are held to; to read them takes longer than to send a message."""
    return httpx.create_ssl_context()


def deliver(key: bytes, webhook: Webhook, message: dict[str, Any], send: Post = post) -> Delivery:
    """Send one signed message; how it was taken."""
    body = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    stamp = int(time.time())
    headers = {
        "Content-Type": "application/json", "User-Agent": f"ballast/{product_version()}", TIMESTAMP: str(stamp),
        SIGNATURE: signature(secret_of(key, webhook.webhook_id), stamp, body),
    }
    try:
        status = send(webhook.url, body, headers)
    except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError, ExceptionGroup) as error:
        # The last two: a host that is no name, and a proxy's port that there is not.
        return Delivery(delivered=False, status=None, reason=f"no answer: {_why(error)}")
    taken = 200 <= status < 300
    return Delivery(delivered=taken, status=status, reason="" if taken else f"it answered {status}")


def _why(error: Exception) -> str:
    """Kind of a failure, and of one to connect what it was: no such name, nobody there, a certificate.

    Of others not, for they quote what the receiver sent.
    """
    name = type(error).__name__
    return f"{name}: {error}" if isinstance(error, httpx.ConnectError) and str(error) else name


def message_of(event: Event) -> dict[str, Any]:
    """Event as it is sent."""
    return {name: value for name, value in to_plain(event).items() if value not in (None, "")}


def wait_after(failures: int) -> float:
    """Seconds until the next try: twice as long after each failure, an hour at most."""
    return float(min(2.0**failures, LONGEST_WAIT))


def _taken(webhook: Webhook) -> Webhook:
    """A webhook that has taken a message: its next failure is the first again."""
    return webhook.model_copy(update={"failures": 0}) if webhook.failures else webhook


class Deliverer:
    """Looks in a thread of its own, for as long as the application lives; each webhook has its turn in another."""

    def __init__(self, backend: Backend, send: Post = post) -> None:
        self._backend = backend
        self._send = send
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="webhooks", daemon=True)
        self._turns: dict[str, threading.Thread] = {}

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Send no more; what is on its way may take its time out."""
        self._stop.set()
        self._thread.join(timeout=1.0)

    def look(self) -> None:
        """Send what is due to every webhook, and wait until all have had their turn."""
        self.begin()
        for turn in self._turns.values():
            turn.join()

    def begin(self) -> None:
        """Give each webhook that something is due to its turn, but for those that still have theirs.

        Who has waited longest is first, and who waits for its next try takes no other's place.
        """
        store = self._backend.store
        self._turns = {name: turn for name, turn in self._turns.items() if turn.is_alive()}
        for webhook in store.webhooks.list_due(store.events.span()[1]):
            if self._stop.is_set() or len(self._turns) >= WORKERS:
                return
            if webhook.webhook_id not in self._turns:
                turn = threading.Thread(target=self._served, args=(webhook,), name="webhook", daemon=True)
                self._turns[webhook.webhook_id] = turn
                turn.start()

    def _served(self, webhook: Webhook) -> None:
        try:
            self._turn(webhook)
        except BallastError as error:
            LOG.warning("webhook %s is not served: %s", webhook.webhook_id, error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next look is made
            LOG.error("webhook %s is not served: %s", webhook.webhook_id, type(error).__name__, exc_info=error)

    def _turn(self, webhook: Webhook) -> None:
        webhooks = self._backend.store.webhooks
        key = signing_key(self._backend)  # before: who has it not leaves the webhook to another process
        turn = webhooks.take(webhook.webhook_id, TURN_SECONDS)
        if turn is None:
            return
        webhook = webhooks.get(webhook.webhook_id)  # another may have delivered since
        oldest, newest = self._backend.store.events.span()
        if webhook.last_number + 1 < oldest:
            lost = {"kind": LOST, "number": oldest - 1, "at": datetime.now(UTC).isoformat()}
            if not self._sent(key, webhook, turn, lost):
                return
            webhook = _taken(webhook)
        due = self._backend.store.events.after(webhook.last_number, webhook.kinds, AT_ONCE)
        began = time.monotonic()
        for event in due:
            if not self._sent(key, webhook, turn, message_of(event)):
                return
            webhook = _taken(webhook)
            if self._stop.is_set() or time.monotonic() - began > TIMEOUT_SECONDS:
                break
        else:
            if len(due) < AT_ONCE:  # what lies between concerns nobody there
                newest = max([newest, *(event.number for event in due[-1:])])
                webhooks.arrived(webhook.webhook_id, turn, newest, sent=False, release=True)
                return
        webhooks.arrived(webhook.webhook_id, turn, event.number, sent=True, release=True)

    def _sent(self, key: bytes, webhook: Webhook, turn: datetime, message: dict[str, Any]) -> bool:
        """Send a numbered message and note it; False where the turn is over: it was not taken, or the hook is gone.

        Also where this process stood still for so long that another has the hook now.
        """
        found = deliver(key, webhook, message, self._send)
        if not found.delivered:
            self._failed(webhook, turn, found.reason)
            return False
        return self._backend.store.webhooks.arrived(
            webhook.webhook_id, turn, message["number"], sent=True, release=False
        )

    def _failed(self, webhook: Webhook, turn: datetime, reason: str) -> None:
        wait = wait_after(webhook.failures)
        after = self._backend.store.webhooks.failed(webhook.webhook_id, turn, reason, wait, MOST_FAILURES)
        if after is None or after.disabled_at is None:
            return
        LOG.warning("webhook %s is disabled: %s", webhook.webhook_id, reason)
        self._backend.store.audit.append(
            actor="api", role=None, action="webhook.disable", target=f"webhook:{webhook.webhook_id}",
            reason=f"{MOST_FAILURES} failures in a row; the last: {reason}",
        )

    def _run(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            try:
                self.begin()
            except BallastError as error:
                LOG.warning("webhooks are not served: %s", error)
            except Exception as error:  # noqa: BLE001 - whatever it is, the next look is made
                LOG.error("webhooks are not served: %s", type(error).__name__, exc_info=error)
