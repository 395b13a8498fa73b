"""Flow runs whose process is gone: Prefect is told, for it would show them as running, or pending, for ever."""

from __future__ import annotations

import logging
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
from prefect.client.schemas.objects import StateType
from prefect.exceptions import ObjectNotFound
from prefect.states import Crashed

LOG = logging.getLogger("ballast.flows")
BEGUN: Final = frozenset({StateType.PENDING, StateType.RUNNING})


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


async def mark_unfinished(client: PrefectClient, deployment: UUID, before: datetime) -> None:
    """The same of all flow runs of a deployment that are in their state since before a moment, and are not over."""
    begun = FlowRunFilterState(type=FlowRunFilterStateType(any_=sorted(BEGUN)))
    found = await client.read_flow_runs(
        flow_run_filter=FlowRunFilter(state=begun),
        deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[deployment])),
    )
    for each in found:
        if each.state is not None and each.state.timestamp < before:
            await mark_crashed(client, each.id)
