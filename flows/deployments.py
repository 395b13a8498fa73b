"""Prefect's deployments against the plans that they are of: which are missing, paused, or have other dates.

They are asked for by the hundred: one answer of Prefect for each would keep its server at work with nothing else where
there are many plans.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final, TypeVar
from uuid import UUID

from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import (
    DeploymentFilter,
    DeploymentFilterId,
    DeploymentFilterName,
    FlowFilter,
    FlowFilterName,
)
from prefect.client.schemas.responses import DeploymentResponse

from services.contracts.history.records import PlanRecord

AT_ONCE: Final = 100
"""Deployments in one answer; Prefect gives 200 at most, unless its server was told otherwise."""
Wanted = TypeVar("Wanted")


async def changed(
    client: PrefectClient, deployments: Mapping[str, UUID], records: Mapping[str, PlanRecord]
) -> list[str]:
    """Names of the plans whose deployment is gone or would not start the plan's dates and no others.

    Parameters
    ----------
    client
        Prefect's API, asked once for :data:`AT_ONCE` plans.
    deployments, records
        Id of its deployment, and plan, by the plan's name; only names that stand in both are looked at.
    """
    ours = {name: deployments[name] for name in records if name in deployments}
    found = {each.id: each for each in await _read(
        client, list(ours.values()), lambda ids: DeploymentFilter(id=DeploymentFilterId(any_=list(ids)))
    )}
    return [name for name, its in ours.items() if its not in found or not is_as_said(found[its], records[name])]


def is_as_said(found: DeploymentResponse, record: PlanRecord) -> bool:
    """Whether Prefect's runner starts the dates of a plan, and no others."""
    wanted = [] if record.plan.cron is None else [(record.plan.cron, record.plan.timezone)]
    given = [each.schedule for each in found.schedules if each.active]
    dates = [(getattr(each, "cron", None), getattr(each, "timezone", None)) for each in given]
    return found.paused == record.paused and (record.paused or dates == wanted)


async def named(client: PrefectClient, flow: str, names: Collection[str]) -> dict[str, UUID]:
    """Ids of the deployments of a flow that bear one of the names, by name."""
    found = await _read(
        client, list(names), lambda some: DeploymentFilter(name=DeploymentFilterName(any_=list(some))),
        FlowFilter(name=FlowFilterName(any_=[flow])),
    )
    return {each.name: each.id for each in found}


async def _read(
    client: PrefectClient, wanted: Sequence[Wanted], chosen: Callable[[Sequence[Wanted]], DeploymentFilter],
    of_flow: FlowFilter | None = None,
) -> list[DeploymentResponse]:
    """What Prefect has of those that are wanted, each of which is one deployment at most."""
    found: list[DeploymentResponse] = []
    for some in _parts(wanted):
        found += await client.read_deployments(flow_filter=of_flow, deployment_filter=chosen(some), limit=AT_ONCE)
    return found


def _parts(wanted: Iterable[Wanted]) -> Iterable[list[Wanted]]:
    left = iter(wanted)
    while some := list(islice(left, AT_ONCE)):
        yield some
