"""Flow runs whose process is gone: Prefect is told, for it would show them as running, or pending, for ever."""

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
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.exceptions import ObjectNotFound
from prefect.states import Crashed

LOG = logging.getLogger("ballast.flows")
BEGUN: Final = frozenset({StateType.PENDING, StateType.RUNNING})


async def is_over(client: PrefectClient, flow_run_id: UUID) -> bool:
    """Whether a flow run has ended, or somebody has deleted it."""
    try:
        state = (await client.read_flow_run(flow_run_id)).state
    except ObjectNotFound:
        return True
    return state is not None and state.is_final()


async def mark_crashed(client: PrefectClient, flow_run_id: UUID) -> None:
    """Tell Prefect that a flow run is over whose run, if the store has one, goes on in a new flow run."""
    try:
        state = (await client.read_flow_run(flow_run_id)).state
        if state is not None and not state.is_final():
            await client.set_flow_run_state(
                flow_run_id, Crashed(message="its process is gone; the run goes on in a new flow run"), force=True
            )
    except ObjectNotFound:
        LOG.info("flow run %s is not known to this Prefect server", flow_run_id)


async def mark_begun(client: PrefectClient, flow_runs: Iterable[FlowRun], before: datetime) -> set[UUID]:
    """The same of those that began before a moment and are not over; their ids.

    One that is only scheduled is not among them: a runner starts it.
    """
    lost = {
        each.id for each in flow_runs if (state := each.state) and state.type in BEGUN and state.timestamp < before
    }
    for flow_run_id in lost:
        await mark_crashed(client, flow_run_id)
    return lost


async def mark_unfinished(client: PrefectClient, deployment: UUID, before: datetime) -> None:
    """The same of all flow runs of a deployment."""
    begun = FlowRunFilterState(type=FlowRunFilterStateType(any_=sorted(BEGUN)))
    found = await client.read_flow_runs(
        flow_run_filter=FlowRunFilter(state=begun),
        deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[deployment])),
    )
    await mark_begun(client, found, before)
