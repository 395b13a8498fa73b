"""An event loop on virtual time: nothing sleeps, and the same seed runs the same callbacks in the same order.

Timers stand in a heap by time; a jitter of nanoseconds, drawn from the seed, decides between those of one moment. Work
for a thread runs in the loop a moment later. What belongs to a process that is held up waits until it goes on.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextvars import Context
from typing import Any, TypeVar

from tests.simulation.processes import CURRENT, Process

AnyHandle = TypeVar("AnyHandle", bound=asyncio.Handle)
JITTER_SECONDS = 1e-7
THREAD_SECONDS = 0.05
"""Work for a thread begins at most so much later."""


class StillError(RuntimeError):
    """Nothing is left that could ever happen."""


class _Selector:
    """Stands where a loop waits for its files: it lets the time pass to the next timer."""

    def __init__(self, loop: SimulationLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        self._loop.steps += 1
        if self._loop.on_step is not None:
            self._loop.on_step()
        if timeout is None:
            raise StillError("no timer is set and nothing is ready")
        if timeout > 0:
            self._loop.advance()
        return []

    def close(self) -> None:
        """Nothing is open."""


class _Gate:
    """A callback of a process; it is put off while the process is held up, unless its ``handle`` is cancelled then."""

    __slots__ = ("_callback", "_context", "_loop", "_process", "handle")

    def __init__(self, loop: SimulationLoop, process: Process, callback: Callable[..., Any], context: Any) -> None:
        self._loop, self._process, self._callback, self._context = loop, process, callback, context
        self.handle: asyncio.Handle | None = None

    def __call__(self, *arguments: Any) -> None:
        if self._process.held_until > self._loop.time():
            self._loop.call_at(self._process.held_until, self._put_off, *arguments, context=self._context)
        else:
            self._callback(*arguments)

    def _put_off(self, *arguments: Any) -> None:
        if self.handle is None or not self.handle.cancelled():
            self._callback(*arguments)


class SimulationLoop(asyncio.BaseEventLoop):
    """The loop; ``on_step`` is called before every step, ``steps`` counts them."""

    _scheduled: list[Any]

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        self._now = 0.0
        self._draw = draw
        self._selector = _Selector(self)
        self._clock_resolution = 1e-9
        self.steps = 0
        self.on_step: Callable[[], None] | None = None

    def time(self) -> float:
        """Virtual seconds since the beginning."""
        return self._now

    def advance(self) -> None:
        """Let the time pass to the next timer."""
        self._now = max(self._now, self._scheduled[0]._when)

    def call_soon(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """As of every loop; held up with its process."""
        gate = self._gated(callback, context)
        return _held_by(gate, super().call_soon(gate, *args, context=context))

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """There are no threads here."""
        return self.call_soon(callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """As of every loop; the seed decides between timers of one moment."""
        moment = max(when, self._now) + JITTER_SECONDS * self._draw.random()
        gate = self._gated(callback, context)
        return _held_by(gate, super().call_at(moment, gate, *args, context=context))

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """As of every loop."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Run ``func`` in the loop, a moment later; it runs to its end whether anybody waits for it or not."""
        future = self.create_future()

        def work() -> None:
            try:
                result = func(*args)
            except BaseException as error:
                if not future.done():
                    future.set_exception(error)
                    future.exception()  # who has stopped waiting need not be told
            else:
                if not future.done():
                    future.set_result(result)

        self.call_later(THREAD_SECONDS * self._draw.random(), work)
        return future

    def _gated(self, callback: Any, context: Context | None) -> Any:
        process = CURRENT.get() if context is None else context.get(CURRENT)
        return callback if process is None else _Gate(self, process, callback, context)

    def _process_events(self, event_list: Any) -> None:
        """No files, no events."""

    def _write_to_self(self) -> None:
        """Nobody sleeps who could be woken."""


def _held_by(gate: Any, handle: AnyHandle) -> AnyHandle:
    """The handle, which the gate knows from now on."""
    if isinstance(gate, _Gate):
        gate.handle = handle
    return handle
