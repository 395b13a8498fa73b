"""A client that takes nothing of its answer for a minute is let go, whatever the answer: a stream, a table, a file.

A slow one that goes on taking is waited for. Without it a connection that stands still, and what waits for it, stays
until the client ends it, also when the answer is written and its end point is done. To an end point that is still
writing it is a client that went away.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import struct
import termios
from typing import Any, Final

from starlette.types import ASGIApp, Receive, Scope, Send

LOG = logging.getLogger("ballast.api")
PATIENCE_SECONDS: Final = 60.0
"""Between two looks at all connections; who took nothing from one to the next is let go at the second."""
_COUNT: Final = struct.Struct("i")


class SlowReaders:
    """The connections on which an answer is made, or waits to be taken, and what waited at the last look."""

    def __init__(self) -> None:
        self._waiting: dict[Any, int] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def answer(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request by ``app``, and look after its connection; ``send`` as uvicorn gives it.

        Under another server, whose ``send`` says nothing of a connection, that is the server's matter.
        """
        transport: Any = getattr(getattr(send, "__self__", None), "transport", None)
        if not isinstance(transport, asyncio.WriteTransport):
            await app(scope, receive, send)
            return
        self._waiting[transport] = 0
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._look)
        try:
            await app(scope, receive, send)
        finally:
            if not transport.get_write_buffer_size():
                self._waiting.pop(transport, None)

    def _look(self) -> None:
        for transport, before in list(self._waiting.items()):
            here = transport.get_write_buffer_size()
            waiting = here + _unread(transport) if here else 0
            if waiting and waiting == before:
                LOG.info("a client took nothing of its answer for %g seconds and was let go", PATIENCE_SECONDS)
                transport.abort()
            if transport.is_closing() and not transport.get_write_buffer_size():
                del self._waiting[transport]
            else:
                self._waiting[transport] = waiting
        again = bool(self._waiting)
        self._timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._look) if again else None


def _unread(transport: asyncio.WriteTransport) -> int:
    """Bytes that the kernel holds for the client, as far as it says."""
    connection = transport.get_extra_info("socket")
    try:
        found = fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(_COUNT.size))
        return int(_COUNT.unpack(found)[0])
    except (OSError, AttributeError):
        return 0
