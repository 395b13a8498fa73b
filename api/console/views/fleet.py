"""The fleet: which plants are there, how the champion serves them, what runs, and what wants attention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from api.backend.flows_process import flows_at_work
from api.backend.wiring import Backend
from api.console.views.names import FLEET, Names
from services.contracts.errors import BallastError
from services.contracts.history.events import DRIFTED
from services.contracts.history.records import AliasChange, PlanRecord, VersionRecord
from services.contracts.history.run import Run
from services.contracts.history.site import Site
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.version_facts import SiteScore
from services.registry.labels import CHAMPION

URGENT: Final = {"bad": 0, "warn": 1, "info": 2}
"""Order of what wants attention."""


@dataclass(frozen=True)
class Attention:
    """One thing that somebody should look at: how bad, what, why, and where to go."""

    level: str
    what: str
    why: str
    link: str
    link_text: str


@dataclass(frozen=True)
class PlantRow:
    """A plant as the fleet shows it; ``score`` is the champion's there, None where the champion has nothing of it.

    ``drift`` and ``exposed`` are what the plant told as it joined the newest run; None: it does not tell.
    """

    name: str
    site: Site
    state: str
    presence: str
    last_answer: datetime | None
    score: SiteScore | None
    notice: str
    drift: float | None = None
    exposed: float | None = None


@dataclass(frozen=True)
class Fleet:
    """All that the first page shows."""

    plants: tuple[PlantRow, ...]
    attention: tuple[Attention, ...]
    running: tuple[Run, ...]
    newest: tuple[Run, ...]
    models: tuple[str, ...]
    model: str | None
    champion: ModelVersion | None
    note: str

    @property
    def counts(self) -> dict[str, int]:
        """Number of plants by state."""
        found = {"connected": 0, "silent": 0, "never seen": 0, "quarantined": 0, "suspended": 0}
        for plant in self.plants:
            found[plant.state] += 1
        return found


def fleet(backend: Backend, wanted: str | None, now: datetime, *, real: bool) -> Fleet:
    """First page, with the figures of the champion of the wanted model (None: the first by name).

    Seven statements, however many plants, plans and runs there are. What plants told is that of the newest run with a
    round: one that has just begun, or failed before its first, knows nothing of them yet.
    """
    store = backend.store
    sites = [site for site in store.sites.list_sites() if site.status != "removed"]
    plans = store.plans.list_plans()
    newest = store.overview.newest_runs()
    asked = store.overview.newest_runs(with_rounds=True)
    answered = store.overview.last_answers(asked)
    aliases = store.overview.aliases()
    versions = store.overview.newest_versions()
    models = tuple(sorted(versions))
    model = wanted if wanted in models else next(iter(models), None)
    champion, note = _champion(backend, model, aliases)
    names = Names(backend, model or FLEET, real, [site.site_id for site in sites])
    scores = {} if champion is None else {score.site_id: score for score in champion.sites}
    told = {site.site_id: site for run in asked if run.plan.name == model for site in run.sites}
    convicted = _convicted(newest)
    rows = sorted(
        (
            PlantRow(
                name=names.site(site.site_id), site=site, state=_state(site, convicted, now),
                presence=site.presence(now), last_answer=answered.get(site.site_id),
                score=scores.get(site.site_id), notice=names.text(site.notice),
                drift=told[site.site_id].drift if site.site_id in told else None,
                exposed=told[site.site_id].exposed if site.site_id in told else None,
            )
            for site in sites
        ),
        key=lambda row: row.name,
    )
    found = [
        *_of_runs(newest, names, lively=flows_at_work(backend.settings) is not False),
        *_of_plants(rows), *_of_versions(versions, aliases), *_of_plans(plans),
    ]
    return Fleet(
        plants=tuple(rows), attention=tuple(sorted(found, key=lambda each: URGENT[each.level])),
        running=tuple(run for run in newest if run.status in ("pending", "running")), newest=tuple(newest),
        models=models, model=model, champion=champion, note=note,
    )


def _champion(
    backend: Backend, model: str | None, aliases: Mapping[tuple[str, str], AliasChange]
) -> tuple[ModelVersion | None, str]:
    """Champion of a model as the store has it, or why there is none to show."""
    if model is None:
        return None, ""
    change = aliases.get((model, CHAMPION))
    if change is None or change.version is None:
        return None, f"Model {model} has no champion yet."
    try:
        return backend.versions.get(model, change.version), ""
    except BallastError as error:
        return None, f"The champion of model {model} cannot be read: {error}"


def _convicted(runs: Sequence[Run]) -> set[str]:
    """Plants whose answers in a run cannot be true; one that a run on sums waited for in vain is none of them."""
    return {each.site_id for run in runs for each in run.excluded if each.is_convicted}


def _state(site: Site, convicted: set[str], now: datetime) -> str:
    if site.status == "suspended":
        return "suspended"
    if site.site_id in convicted:
        return "quarantined"
    presence = site.presence(now)
    return {"connected": "connected", "never": "never seen"}.get(presence, "silent")


def _of_runs(runs: Sequence[Run], names: Names, *, lively: bool) -> Iterator[Attention]:
    for run in runs:
        link = f"/console/runs/{run.run_id}"
        if run.status == "failed":
            what = f"The last run of {run.plan.name} failed"
            yield Attention("bad", what, names.text(run.reason), link, "See the run")
        if run.status == "pending" and not lively:
            why = "No flows process runs on this host to drive it; ballast up starts one."
            yield Attention("bad", f"A run of {run.plan.name} waits", why, link, "See the run")
        for each in run.excluded:
            what = f"{names.site(each.site_id)} was left out of a run of {run.plan.name}"
            yield Attention("bad", what, names.text(each.reason), link, "See the run")


def _of_plants(rows: Sequence[PlantRow]) -> Iterator[Attention]:
    for row in rows:
        if row.notice:
            yield Attention("bad", f"{row.name} has a problem", row.notice, "#plants", "See the plants")
        if row.drift is not None and row.drift >= DRIFTED:
            why = (
                f"The distribution of a sensor there is {row.drift:.2f} of 1 away from that of its first run; "
                "ballast-site drift says at the plant which. A retraining learns from the rows of now."
            )
            yield Attention("warn", f"The readings of {row.name} have moved", why, "#plants", "See the plants")
    for state, level, why in (
        ("silent", "warn", "Their agents do not answer; a run waits for them, then goes on without."),
        ("never seen", "warn", "Enrolled, and no agent has said hello yet: start ballast-site run there."),
        ("suspended", "info", "Nothing is asked of them until an administrator activates them."),
    ):
        found = [row.name for row in rows if row.state == state]
        if found:
            count = f"{len(found)} plant{'' if len(found) == 1 else 's'} {state}: {_listed(found)}"
            yield Attention(level, count, why, "#plants", "See the plants")


def _of_versions(
    versions: Mapping[str, VersionRecord], aliases: Mapping[tuple[str, str], AliasChange]
) -> Iterator[Attention]:
    for name, newest in versions.items():
        change = aliases.get((name, CHAMPION))
        champion = None if change is None else change.version
        if champion == newest.version:
            continue
        link = f"/console/models/{name}/versions/{newest.version}"
        if newest.status == "gates_failed":
            what = f"Version {newest.version} of {name} did not pass its gates"
            yield Attention("warn", what, newest.reason, link, "See the gates")
        elif champion is None or _is_newer(newest.version, champion):
            what = f"Version {newest.version} of {name} is not champion"
            why = "There is no champion yet." if champion is None else f"Version {champion} is."
            yield Attention("info", what, why, link, "Judge it")


def _of_plans(plans: Sequence[PlanRecord]) -> Iterator[Attention]:
    for record in plans:
        if record.paused:
            link = f"/console/plans/{record.plan.name}"
            what = f"Plan {record.plan.name} is paused"
            yield Attention("info", what, "Its schedule starts nothing.", link, "See it")


def _is_newer(version: str, champion: str) -> bool:
    return version.isdecimal() and champion.isdecimal() and int(version) > int(champion)


def _listed(names: Sequence[str], most: int = 4) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
