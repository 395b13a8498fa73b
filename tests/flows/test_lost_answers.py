"""PostgreSQL commits a round, and its answer is lost: the run goes on after it, to the same weights."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flows.endings import is_passing
from services.contracts.errors import UnavailableError
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
