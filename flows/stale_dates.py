"""Dates that came while no flows process was there: of each plan Prefect starts the latest alone, and not all at once.

Prefect keeps them, and its runner would begin a process for each: an hour of a plan by the minute is sixty, of which
the store asks for one run. What an operator triggers would wait behind them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime
from typing import Final
from uuid import UUID

from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import (
    DeploymentFilter,
    DeploymentFilterId,
    FlowRunFilter,
    FlowRunFilterExpectedStartTime,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import ObjectNotFound
from prefect.states import Completed

from flows.endings import SKIPPED
from flows.retention import AT_ONCE

LOG = logging.getLogger("ballast.flows")
SAID: Final = "skipped: no flows process was there on this date, and a later one of the plan has come since"


async def skip_stale(client: PrefectClient, deployments: Iterable[UUID], before: datetime) -> int:
    """Say of all scheduled dates before a moment, but for the latest of each deployment, that they are skipped."""
    latest, count = set[UUID | None](), 0
    for each in await _stale(client, [*deployments], before):
        if each.deployment_id in latest:
            count += await _skip(client, each.id)
        latest.add(each.deployment_id)
    if count:
        LOG.info("%d dates that came while no flows process was there are skipped: a later one has come", count)
    return count


async def _stale(client: PrefectClient, deployments: list[UUID], before: datetime) -> list[FlowRun]:
    """Dates of deployments that their schedules made and nothing has started, the latest first."""
    waiting = FlowRunFilter(
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.SCHEDULED])),
        expected_start_time=FlowRunFilterExpectedStartTime(before_=before),
    )
    found: list[FlowRun] = []
    while page := await client.read_flow_runs(
        flow_run_filter=waiting, deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=deployments)),
        sort=FlowRunSort.EXPECTED_START_TIME_DESC, limit=AT_ONCE, offset=len(found),
    ):
        found += page
    return [each for each in found if each.auto_scheduled]


async def _skip(client: PrefectClient, flow_run_id: UUID) -> bool:
    try:
        await client.set_flow_run_state(flow_run_id, Completed(name=SKIPPED, message=SAID), force=True)
    except ObjectNotFound:  # a plan that was deployed anew has other flow runs
        return False
    return True
