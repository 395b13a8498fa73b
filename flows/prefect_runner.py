"""Prefect's runner as the flows process uses it: so many runs at once, and no line each second that others wait."""

from __future__ import annotations

import logging

from prefect.runner import Runner

from services.process.settings import PrefectSettings


def make_runner(settings: PrefectSettings) -> Runner:
    """Prefect's runner, with a limit: each run is a process, and many plans may have the same date."""
    logging.getLogger("prefect.runner").addFilter(_says_more_than_that_some_wait)
    return Runner(name="ballast", query_seconds=1.0, pause_on_shutdown=False, limit=settings.runs_at_once)


def _says_more_than_that_some_wait(record: logging.LogRecord) -> bool:
    """Prefect says it each second, for hours where runs wait for plants; the runs are pending, and say so."""
    return "(at capacity)" not in record.getMessage()
