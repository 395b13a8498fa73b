"""Prefect's runner as the flows process uses it: so many runs at once, few lines, and an end when it is asked for."""

from __future__ import annotations

import asyncio
import logging
import signal
from multiprocessing import active_children
from typing import Any

from prefect.runner import Runner

from services.process.end_by_the_clock import end_by_the_clock
from services.process.settings import PrefectSettings

LOG = logging.getLogger("ballast.flows")
END_SECONDS = 5.0  # from SIGTERM on: what is not done by then is not waited for


class FlowRunner(Runner):
    """Prefect's runner, whose owner learns by :meth:`told_to_end` that SIGTERM has come.

    Prefect's own handler raises ``SystemExit`` in the middle of whatever the event loop does, which tells of it with a
    traceback for each task.
    """

    def __init__(self, **options: Any) -> None:
        """As Prefect's; to be made where the event loop runs."""
        super().__init__(**options)
        self._events = asyncio.get_running_loop()
        self._told = asyncio.Event()

    def handle_sigterm(self, *_: Any, **__: Any) -> None:
        """Begin to end. A second SIGTERM ends the process at once, and so does the clock where something takes long."""
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        end_by_the_clock(END_SECONDS)
        self._events.call_soon_threadsafe(self._told.set)

    async def told_to_end(self) -> None:
        """Return when SIGTERM has come and the runs' processes have ended, as killed ones do.

        Prefect would wait for them, which may take hours. The next flows process takes the runs up where they are.
        """
        await self._told.wait()
        for process in active_children():
            process.kill()
        LOG.info("told to end; the next flows process goes on with the runs")


def make_runner(settings: PrefectSettings) -> FlowRunner:
    """Prefect's runner, with a limit: each run is a process, and many plans may have the same date."""
    logging.getLogger("prefect.runner").addFilter(_says_more_than_that_some_wait)
    return FlowRunner(name="ballast", query_seconds=1.0, pause_on_shutdown=False, limit=settings.runs_at_once)


def _says_more_than_that_some_wait(record: logging.LogRecord) -> bool:
    """Prefect says it each second, for hours where runs wait for plants; the runs are pending, and say so."""
    return "(at capacity)" not in record.getMessage()
