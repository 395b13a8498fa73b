"""A flow run that another process began a moment ago is waited for, and for no longer, whatever the clocks say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import StateType

from flows.runner import BEGIN_SECONDS, Watcher
from tests.flows.test_runner import Ends, Prefect, a_run

MOMENT, DAY = timedelta(seconds=BEGIN_SECONDS / 2), timedelta(days=1)


@pytest.mark.parametrize(("ago", "waits"), [(MOMENT, True), (DAY, False), (-MOMENT, True), (-DAY, False)])
@pytest.mark.parametrize("state", [StateType.PENDING, StateType.RUNNING])
async def test_one_that_was_begun_by_another_process(state: StateType, ago: timedelta, waits: bool) -> None:
    """Begun after now: by a clock that is a little ahead, or by one that was put back since."""
    prefect, nobody, record = Prefect(), object(), object()
    begun = SimpleNamespace(type=state, timestamp=datetime.now(UTC) - ago)
    prefect.waiting = [SimpleNamespace(id=uuid4(), state=begun, deployment_id=uuid4())]
    watcher = Watcher(
        Ends().context, nobody, prefect, {"weekly": uuid4()}, {"weekly": record},  # type: ignore[arg-type, dict-item]  # stand-ins
        _since=datetime(2021, 1, 1, tzinfo=UTC),
    )
    await watcher._start(a_run(0))
    assert (prefect.begun == []) is waits
