"""One question to one site over the plant link: requests with the same frame, of which the first answer does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

MOST_REQUESTS = 8
"""Open at once, however often a site says hello: the first, and the newest."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 5.0
"""Seconds between two requests: each pause is twice the last, so that one who says hello all the time is not sent its
question all the time."""


class Call:
    """A question that may be asked more than once while nothing is answered.

    A site that says hello may have lost the question, or its answer, and is asked once more; what was asked before
    stays open, for a site that only lost its connection is at work on it still. ``answer`` has the bytes of the first
    answer, or the failure of the last request.
    """

    def __init__(self, request: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """``request`` sends the question; it gives a NATS message, or raises."""
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._request = request
        self._open: list[asyncio.Task[Any]] = []
        self._pause, self._due = FIRST_PAUSE, asyncio.get_running_loop().time()
        self._again: asyncio.TimerHandle | None = None
        self._ask()

    def ask_again(self) -> None:
        """Send the question once more, as soon as the last pause is over; nothing where that is to come already."""
        if self._again is None and not self.answer.done():
            self._again = asyncio.get_running_loop().call_at(self._due, self._ask)

    def _ask(self) -> None:
        self._again, self._due = None, asyncio.get_running_loop().time() + self._pause
        self._pause = min(2.0 * self._pause, LONGEST_PAUSE)
        if len(self._open) >= MOST_REQUESTS:
            self._open.pop(1).cancel()
        task = asyncio.ensure_future(self._request())
        self._open.append(task)
        task.add_done_callback(self._ended)

    def lose(self) -> None:
        """Give up: the answers went with the connection."""
        if not self.answer.done():
            self.answer.set_exception(ConnectionError("connection lost while the site was at work"))

    def end(self) -> None:
        """Cancel what is open; nobody waits for it any more."""
        self.answer.cancel()
        if self._again is not None:
            self._again.cancel()
        for task in tuple(self._open):
            task.cancel()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        if task in self._open:
            self._open.remove(task)
        if task.cancelled() or self.answer.done():
            _ = task.cancelled() or task.exception()  # it was looked at, so nobody is told of it
            return
        error = task.exception()
        if error is None:
            self.answer.set_result(task.result().data)
        elif not self._open:
            self.answer.set_exception(error)
