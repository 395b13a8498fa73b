"""PostgreSQL commits a round, and its answer is lost: the run goes on after it, to the same weights.

The end of a run stands then, too: nobody would find it unfinished, and Prefect would call it crashed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flows import retrain
from flows.endings import ending, is_passing
from flows.wiring import open_context
from services.contracts.errors import ConflictError, UnavailableError
from services.contracts.plans.plan import Plan
from services.process.settings import Settings
from tests.flows.conftest import RIG, InProcessWorks, rig_sources
from tests.lost_answers import answers_lost

SIGN = b"run.round"  # the event of a round, in its transaction


async def train(works: InProcessWorks, run_id: str) -> Any:
    run = works.context.store.runs.get_run(run_id)
    async with works._plants(()), works.context.plant_link() as transport:
        coordinator = works.context.coordinator(run, transport)
        run = run if run.status == "running" else await coordinator.join(run)
        return await coordinator.train(run)


def test_a_round_that_was_committed_is_counted_once(
    tmp_path: Path, new_postgresql: Callable[[], str], opening_works: Callable[..., Any]
) -> None:
    with (
        answers_lost(new_postgresql()) as lossy,
        opening_works(tmp_path, lossy.url, RIG, rig_sources(tmp_path)) as works,
    ):
        store, plan = works.context.store, works.plan("weekly", warm_start=False)
        whole = works.train(plan, registered=False)[1]
        run_id = store.runs.create_run(plan).run_id
        for rounds, carried in ((1, True), (1, False), (2, True)):
            lossy.lose(SIGN, carried=carried)
            with pytest.raises(UnavailableError) as raised:
                asyncio.run(train(works, run_id))
            assert is_passing(raised.value) and store.runs.get_run(run_id).rounds == rounds
        np.testing.assert_array_equal(asyncio.run(train(works, run_id)).weights, whole.weights)
        numbers = [each.round for each in store.runs.get_rounds(run_id)]
        assert numbers == list(range(1, len(numbers) + 1)) and lossy.lost == 3


def test_the_end_of_a_run_whose_answer_is_lost_stands(
    tmp_path: Path, new_postgresql: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    withdrawn: list[str] = []
    monkeypatch.setattr(retrain, "withdraw", lambda *told: withdrawn.append(told[-1]))
    with (
        answers_lost(new_postgresql()) as lossy,
        open_context(Settings.load(tmp_path, {"BALLAST_DATABASE_URL": lossy.url})) as context,
    ):
        runs = context.store.runs
        context.store.asset_types.add(RIG)
        plan = context.store.plans.create(Plan(name="weekly", asset_type=RIG.name)).plan
        run = runs.create_run(plan)
        lossy.lose(b"run.completed", carried=False)
        with pytest.raises(UnavailableError) as raised:
            runs.finish_run(run.run_id, "completed", "done")
        assert ending(raised.value).type.value == "CRASHED" and runs.get_run(run.run_id).status == "pending"
        lossy.lose(b"run.completed")
        assert runs.finish_run(run.run_id, "completed", "done").status == "completed"
        run = runs.create_run(plan)
        assert runs.renew_lease(run.run_id, "me", 60.0)
        lossy.lose(b"run.failed")
        with pytest.raises(ConflictError, match="too few sites"), retrain.failure_recorded(context, run, "me"):
            raise ConflictError("too few sites")
        assert runs.get_run(run.run_id).status == "failed" and withdrawn == ["failed"] and lossy.lost == 3
