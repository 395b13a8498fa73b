"""What a run shows in Prefect's pages: a table of its plants, a chart of its gap, the way to its version.

Every write costs about 15 ms of Prefect's time, so that table and chart are written every ten seconds at most, and at
the end. That Prefect does not take one ends no run.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final
from uuid import UUID

from httpx import HTTPError
from prefect.artifacts import acreate_image_artifact, acreate_link_artifact, acreate_table_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import ArtifactUpdate
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey
from prefect.exceptions import ObjectNotFound, PrefectException

from services.contracts.errors import UnavailableError
from services.contracts.history.run import RoundPoint, RoundRecord, Run
from services.contracts.versions.model_version import ModelVersion
from services.reporting.gap_chart import gap_chart

LOG = logging.getLogger("ballast.flows")
PATIENCE_SECONDS = 5.0  # that Prefect has to take something for its pages
MOST_POINTS: Final = 200
"""Rounds that the chart draws: of a longer run each n-th, and the last."""
PAGE: Final = 100
"""Tables that are read at once."""
MISSED: Final = ("absent", "late", "refused_by_site", "rejected", "excluded")


class RunBoard:
    """Table and chart of a run, kept in two artifacts that each write brings up to date."""

    def __init__(self, run: Run, rounds: Iterable[RoundRecord] = ()) -> None:
        """``rounds`` are those of the run before this process took it up."""
        self._run = run
        self._answers: dict[str, Counter[str]] = {site.site_id: Counter() for site in run.sites}
        self._last: dict[str, int] = {}
        self._points: list[RoundPoint] = []
        self._written: dict[str, UUID] = {}
        for record in rounds:
            self.note(record)

    def note(self, record: RoundRecord) -> None:
        """Count a round; nothing is written."""
        for answer in record.answers:
            self._answers.setdefault(answer.site_id, Counter())[answer.status] += 1
            if answer.status == "accepted":
                self._last[answer.site_id] = record.round
        self._points.append(RoundPoint.of_record(record))

    def table(self) -> list[dict[str, Any]]:
        """A row a plant: its weight, rounds answered and missed, of these in which way, and its last answer's round."""
        weights = {site.site_id: site.weight for site in self._run.members}
        return [
            {
                "plant": site, "weight": round(weights.get(site, 0.0), 4), "answered": seen["accepted"],
                "missed": sum(seen[status] for status in MISSED), **{status: seen[status] for status in MISSED},
                "last answer": self._last.get(site, 0),
            }
            for site, seen in sorted(self._answers.items())
        ]

    def chart(self) -> str:
        """The gap by round as the address of a picture that holds itself."""
        every = math.ceil(len(self._points) / MOST_POINTS) or 1
        drawn = self._points[:: -every][::-1]
        svg = gap_chart(drawn, self._run.plan.gap)
        return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"

    async def write(self) -> None:
        """Bring both artifacts up to date, or make them."""
        plan, run_id = self._run.plan.name, self._run.run_id
        said = f"Plants of run {run_id}: rounds answered and missed, and weight"
        table, chart = self.table(), self.chart()
        async with unless_away(f"table of run {run_id}"):
            await self._put("table", json.dumps(table), lambda: acreate_table_artifact(table, table_key(plan), said))
        drawn = f"Certified gap of run {run_id} by round; the dashed line is the wanted one"
        async with unless_away(f"chart of run {run_id}"):
            await self._put("chart", chart, lambda: acreate_image_artifact(chart, f"gap-{plan}", drawn))

    async def _put(self, name: str, data: str, create: Callable[[], Awaitable[UUID]]) -> None:
        if name not in self._written:
            self._written[name] = await create()
            return
        async with get_client() as client:
            await client.update_artifact(self._written[name], ArtifactUpdate(data=data))


def table_key(plan: str) -> str:
    """Key of the tables of a plan's runs."""
    return f"plants-{plan}"


def forget_tables(plan: str, site_id: str) -> int:
    """Delete the tables of a plan's runs that have a plant in them; how many there were.

    ``UnavailableError`` where Prefect does not answer. For a thread without an event loop.
    """
    ours = ArtifactFilter(key=ArtifactFilterKey(any_=[table_key(plan)]))
    try:
        with get_client(sync_client=True) as client:
            found, offset = list[UUID](), 0
            while read := client.read_artifacts(artifact_filter=ours, limit=PAGE, offset=offset):
                found += [each.id for each in read if each.id is not None and _has_plant(each.data, site_id)]
                offset += len(read)
            for artifact in found:
                with suppress(ObjectNotFound):
                    client.delete_artifact(artifact)
    except (HTTPError, OSError, PrefectException) as error:
        raise UnavailableError(f"Prefect does not forget the tables of plan {plan}: {error}") from None
    return len(found)


def _has_plant(data: Any, site_id: str) -> bool:
    rows = json.loads(data) if isinstance(data, str) else data
    return isinstance(rows, list) and any(row.get("plant") == site_id for row in rows)


async def link_to_version(version: ModelVersion, console: str, outcome: str) -> None:
    """Put the way to the version's page in the console beside the run."""
    address = f"{console}/models/{version.name}/versions/{version.version}"
    text = f"model {version.name} version {version.version}"
    figures: Sequence[tuple[str, float | None]] = (
        ("certified gap", version.certified_gap), ("worst-case risk", version.worst_case_risk), ("F-1", version.f1),
        ("mean absolute error", version.mae),
    )
    known = ", ".join(f"{name} {value:.3g}" for name, value in figures if value is not None)
    async with unless_away(f"link to {text}"):
        await acreate_link_artifact(address, text, f"version-{version.name}", f"{known}. {outcome}.")


@asynccontextmanager
async def unless_away(what: str) -> Any:
    """Do without what only Prefect's pages show, with a line in the log, where Prefect does not take it, or hangs."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            yield
    except (HTTPError, OSError, PrefectException) as error:
        LOG.warning("Prefect has no %s: %s", what, str(error) or type(error).__name__)
