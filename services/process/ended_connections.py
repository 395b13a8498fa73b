"""A NATS client's connection that is ended for certain.

The library marks a client as closed before it has closed its connection: a close that is given up in between, as that
of a try that the server refused, leaves the connection open, and a second close does nothing. A server that has stopped
answering is waited for until TLS gives up its farewell, half a minute. What is still to be sent is written to a lost
connection too, which ends a close with an ``AttributeError`` below TLS.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from nats.aio.client import Client
from nats.errors import Error as NatsError

from services.process.ended_tasks import done_within

CLOSE_SECONDS = 2.0
"""How long what is still to be sent, and the farewell of TLS, may take."""


async def end_connection(client: Client, seconds: float = CLOSE_SECONDS) -> None:
    """Close the client, within ``seconds`` what it left open, and cut what does not close by then."""
    transport: Any = client._transport  # noqa: SLF001 - the library has no public way to it
    if transport is None:
        return  # no server was tried
    if not client.is_connected:
        client._pending, client._pending_data_size = [], 0  # noqa: SLF001 - nobody takes it any more
    with suppress(NatsError, OSError, TimeoutError):
        await done_within(client.close(), seconds)
    with suppress(NatsError, OSError, TimeoutError):
        await done_within(_close(transport), seconds)
    writer = getattr(transport, "_bare_io_writer", None)
    if writer is not None:
        writer.transport.abort()  # nothing where it is closed


async def _close(transport: Any) -> None:
    transport.close()
    await transport.wait_closed()
