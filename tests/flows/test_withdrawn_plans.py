"""A plan that is archived while the flows process is at work: nothing starts it any more, and its run ends."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from prefect.exceptions import ObjectNotFound

from flows.runner import Watcher
from tests.flows.test_runner import Ends, Prefect, a_run


class Deployed(Prefect):
    """A server that has the deployment, or has lost it."""

    def __init__(self, is_there: bool) -> None:
        super().__init__()
        self.is_there, self.deleted = is_there, list[UUID]()

    async def delete_deployment(self, deployment: UUID) -> None:
        if not self.is_there:
            raise ObjectNotFound(Exception())
        self.deleted.append(deployment)


@pytest.mark.parametrize("is_there", [True, False])
async def test_its_deployment_is_taken_away_and_a_run_that_waits_is_cancelled(is_there: bool) -> None:
    ended, prefect, its, nobody, record = Ends(), Deployed(is_there), uuid4(), object(), object()
    watcher = Watcher(
        ended.context, nobody, prefect, {"weekly": its}, {"weekly": record},  # type: ignore[arg-type, dict-item]  # stand-ins
    )
    await watcher._withdraw("weekly")
    assert prefect.deleted == [its] * is_there and watcher.deployments == {}
    await watcher._start(a_run(0))
    assert prefect.begun == []
    assert ended.in_store == [(a_run(0).run_id, "cancelled", "its plan is archived")]
