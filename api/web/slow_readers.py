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
_COUNT: Final = struct.Struct("i")


class Taking:
    """Looks now and then whether the client of a connection takes what waits for it, until nothing does."""

    def __init__(self, transport: Any) -> None:
        """Begin to look, where ``transport`` is one of asyncio's."""
        self._transport, self._before, self._is_answered = transport, 0, False
        self._timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._look)

    def answered(self) -> None:
        """The end point is done: no longer than what it wrote is waiting."""
        self._is_answered = True
        if not self._transport.get_write_buffer_size():
            self._timer.cancel()

    def _look(self) -> None:
        here = self._transport.get_write_buffer_size()
        if not here and self._is_answered:
            return
        waiting = here + _unread(self._transport) if here else 0
        if waiting and waiting == self._before:
            LOG.info("a client took nothing of its answer for %g seconds and was let go", PATIENCE_SECONDS)
            self._transport.abort()
            return
        self._before = waiting
        self._timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._look)


async def watched(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request by ``app``, and let go of a client that takes nothing; ``send`` as uvicorn gives it.

    Under another server, whose ``send`` says nothing of a connection, that is the server's matter.
    """
    transport: Any = getattr(getattr(send, "__self__", None), "transport", None)
    if not isinstance(transport, asyncio.WriteTransport):
        await app(scope, receive, send)
        return
    taking = Taking(transport)
    try:
        await app(scope, receive, send)
    finally:
        taking.answered()


def _unread(transport: asyncio.WriteTransport) -> int:
    """Bytes that the kernel holds for the client, as far as it says."""
    connection = transport.get_extra_info("socket")
    try:
        found = fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(_COUNT.size))
        return int(_COUNT.unpack(found)[0])
    except (OSError, AttributeError):
        return 0
