"""A plan's tuning by itself: killed, it tunes again, and it is cancelled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from services.contracts.history.run import Run
from tests.journeys.standing import standing
from tests.journeys.tunings import asked
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("alone")


@contextmanager
def held_up(works: Any, run: Run, site: str) -> Iterator[None]:
    """A plant that stands still once the run has begun, so that its tuning does not come to its end."""
    wait_until(lambda: works.store.runs.get_run(run.run_id).status == "running", "join")
    with standing(works, site):
        assert works.store.runs.get_run(run.run_id).plan.tuned is None
        yield


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
