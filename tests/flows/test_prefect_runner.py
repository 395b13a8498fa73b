"""How many runs are driven at once, and what Prefect's runner says of those that wait."""

from __future__ import annotations

import logging

import pytest

from flows.prefect_runner import make_runner
from services.process.settings import PrefectSettings


def test_so_many_runs_are_driven_at_once_as_the_settings_say() -> None:
    """Each is a process; Prefect starts the others as these end."""
    assert make_runner(PrefectSettings()).limit == 20
    assert make_runner(PrefectSettings(runs_at_once=3)).limit == 3


def test_that_some_wait_is_not_said_each_second(caplog: pytest.LogCaptureFixture) -> None:
    """The runs say so themselves; what else Prefect's runner says is kept."""
    make_runner(PrefectSettings())
    log = logging.getLogger("prefect.runner")
    log.addHandler(caplog.handler)
    try:
        log.warning("%d scheduled runs skipped (at capacity)", 3)
        log.warning("flow run limit")
    finally:
        log.removeHandler(caplog.handler)
    assert [*dict.fromkeys(record.getMessage() for record in caplog.records)] == ["flow run limit"]
