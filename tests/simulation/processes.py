"""Processes of the simulated works: each may be killed at any await, held up for a while, and started again.

A killed process leaves what it had committed and nothing else: its tasks are cancelled, and every port of its refuses
from that moment on (:meth:`Process.check`), so that no ``finally`` of it can do what a killed process cannot.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from greenlet import getcurrent, greenlet


class ProcessKilled(BaseException):  # noqa: N818 - what a kill is called
    """The process was killed; nothing of the product catches it."""


@dataclass(eq=False)
class Process:
    """One operating-system process; ``crash_at`` is the await of its main task at which it is killed (0: none)."""

    name: str
    crash_at: int = 0
    on_crash: Callable[[Process], None] | None = None
    alive: bool = True
    held_until: float = 0.0
    was_held: bool = False
    awaits: int = 0
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)
    owner: str = ""
    flow_run_id: Any = None

    def check(self) -> None:
        """Refuse everything to a process that is dead."""
        if not self.alive:
            raise ProcessKilled(self.name)

    def kill(self) -> None:
        """End it now."""
        if self.alive:
            self.alive = False
            self.held_until = 0.0
            for task in self.tasks:
                task.cancel()

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a coroutine as a task of this process; what the task starts belongs to the process too."""
        context = contextvars.copy_context()
        context.run(CURRENT.set, self)
        task = asyncio.get_running_loop().create_task(_Watched(self, work).run(), name=self.name, context=context)
        task.add_done_callback(lambda _: work.close())  # it never began where its process was killed before
        self.tasks.append(task)
        return task


CURRENT: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)


class _Watched:
    """A coroutine whose awaits are counted, and which ends at the one where its process is to crash."""

    def __init__(self, process: Process, work: Coroutine[Any, Any, Any]) -> None:
        self._process, self._work = process, work

    async def run(self) -> Any:
        try:
            return await self
        except ProcessKilled:
            return None
        except asyncio.CancelledError:
            if self._process.alive:
                raise
            return None

    def __await__(self) -> Generator[Any, Any, Any]:
        process, work = self._process, self._work
        said: Any = None
        failed: BaseException | None = None
        while True:
            process.awaits += 1
            if process.alive and process.awaits == process.crash_at and failed is None:
                if process.on_crash is not None:
                    process.on_crash(process)
                process.kill()
                failed = ProcessKilled(process.name)
            try:
                waited = work.send(said) if failed is None else work.throw(failed)
            except StopIteration as done:
                return done.value
            failed = None
            try:
                said = yield waited
            except GeneratorExit:  # nobody holds the task any more
                with contextlib.suppress(RuntimeError):
                    work.close()
                raise
            except BaseException as error:
                failed = error


class SimulatedEvent:
    """``threading.Event`` for a simulated thread, whose waiting lets the loop go on."""

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout: float) -> bool:
        if not self._set:
            thread = getcurrent()
            asyncio.get_running_loop().call_later(timeout, _resumed, thread)
            assert thread.parent is not None
            thread.parent.switch()
        return self._set


class SimulatedThread:
    """``threading.Thread`` as a greenlet: it runs in the loop, and gives way where it waits."""

    def __init__(self, target: Callable[..., Any], args: tuple[Any, ...] = (), **_: Any) -> None:
        self._target, self._args = target, args
        self._greenlet = greenlet(self._run)

    def _run(self) -> None:
        try:
            self._target(*self._args)
        except ProcessKilled:
            pass

    def start(self) -> None:
        self._greenlet.gr_context = contextvars.copy_context()
        asyncio.get_running_loop().call_soon(_resumed, self._greenlet)

    def join(self) -> None:
        while not self._greenlet.dead:
            self._greenlet.switch()


def _resumed(thread: greenlet) -> None:
    if not thread.dead:
        thread.switch()


THREADING = SimpleNamespace(Thread=SimulatedThread, Event=SimulatedEvent)
