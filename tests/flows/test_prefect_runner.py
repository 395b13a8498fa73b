"""How many runs are driven at once, what Prefect's runner says of those that wait, and how it ends."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys

import pytest

from flows.prefect_runner import FlowRunner, make_runner
from services.process.settings import PrefectSettings
from tests.waiting import PATIENCE

OWNER = """
import asyncio, multiprocessing, signal, time

from flows.prefect_runner import make_runner
from services.process.settings import PrefectSettings

async def own() -> None:
    runner = make_runner(PrefectSettings())
    signal.signal(signal.SIGTERM, runner.handle_sigterm)  # as Prefect does where the runner starts
    run = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600.0,))
    run.start()
    print(run.pid, flush=True)
    await runner.told_to_end()
    run.join()
    print(run.exitcode, flush=True)
    if {stuck}:
        time.sleep(600.0)
    print("has ended", flush=True)

if __name__ == "__main__":
    asyncio.run(own())
"""


async def made(settings: PrefectSettings) -> FlowRunner:
    """A runner, made where an event loop runs."""
    return make_runner(settings)


def test_so_many_runs_are_driven_at_once_as_the_settings_say() -> None:
    """Each is a process; Prefect starts the others as these end."""
    assert asyncio.run(made(PrefectSettings())).limit == 20
    assert asyncio.run(made(PrefectSettings(runs_at_once=3))).limit == 3


def test_that_some_wait_is_not_said_each_second(caplog: pytest.LogCaptureFixture) -> None:
    """The runs say so themselves; what else Prefect's runner says is kept."""
    asyncio.run(made(PrefectSettings()))
    log = logging.getLogger("prefect.runner")
    log.addHandler(caplog.handler)
    try:
        log.warning("%d scheduled runs skipped (at capacity)", 3)
        log.warning("flow run limit")
    finally:
        log.removeHandler(caplog.handler)
    assert [*dict.fromkeys(record.getMessage() for record in caplog.records)] == ["flow run limit"]


@pytest.mark.parametrize("stuck", [False, True])
def test_told_to_end_it_ends_the_runs_processes(stuck: bool) -> None:
    """Its owner goes on to its own end, without a traceback; where that takes long the process ends all the same."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER.format(stuck=stuck)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    try:
        assert process.stdout is not None
        run = int(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        said, failures = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert said.splitlines() == [str(-signal.SIGKILL), *([] if stuck else ["has ended"])]
    assert process.returncode == 0 and "Traceback" not in failures and "Warning" not in failures, failures
    with pytest.raises(ProcessLookupError):
        os.kill(run, 0)
