"""A plan's tuning by itself: killed, it tunes again, and it is cancelled."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from services.contracts.overrides import tuning_alone
from services.contracts.run import Run
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("alone")
GRID = {
    "radius": [0.3, 1.0, 3.0, 10.0], "label_flip_cost": [1.0, 4.0], "budget": 3.0,
    "lifts": ["none", {"kind": "spline", "segments": 6}],
}


def asked(works: Any, name: str) -> Run:
    """A run that tunes alone, of a plan that would train for long."""
    plan = works.plan(name, method="level-bundle", tuning=GRID)
    return Run.model_validate(works.store.runs.create_run(tuning_alone(plan)))


@contextmanager
def held_up(works: Any, run: Run, site: str) -> Iterator[None]:
    """A plant that stands still once the run has begun, so that its tuning does not come to its end."""
    wait_until(lambda: works.store.runs.get_run(run.run_id).status == "running", "join")
    works.agents[site].send_signal(signal.SIGSTOP)
    try:
        assert works.store.runs.get_run(run.run_id).plan.tuned is None
        yield
    finally:
        works.agents[site].send_signal(signal.SIGCONT)


def test_a_tuning_whose_process_is_killed_tunes_again(works: Any) -> None:
    run = asked(works, "tuning-killed")
    works.train("tuning-killed")
    with held_up(works, run, "plant-2"):
        works.kill_training()
    works.train("tuning-killed")
    ended = works.wait_for_run("tuning-killed")
    assert (ended.run_id, ended.status, ended.rounds) == (run.run_id, "completed", 0), ended.reason
    assert ended.plan.tuned is not None and not ended.plan.tuned.reused_from


def test_a_tuning_is_cancelled(works: Any) -> None:
    run = asked(works, "tuning-cancelled")
    works.train("tuning-cancelled")
    with held_up(works, run, "plant-3"):
        works.store.runs.request_cancel(run.run_id)
    ended = works.wait_for_run("tuning-cancelled")
    assert (ended.run_id, ended.status, ended.plan.tuned) == (run.run_id, "cancelled", None)
