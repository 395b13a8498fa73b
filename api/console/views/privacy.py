"""What the last runs revealed, plant by plant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from api.backend.wiring import Backend
from api.console.views.names import FLEET, Names
from models.basics import ProblemError
from services.contracts.history.run import Run
from services.coordinator.run_state.terms import cohorts_of

LAST_RUNS = 25
"""Runs that are looked back on."""


@dataclass(frozen=True)
class Revealed:
    """A run, and the size of the smallest cohort whose sum the coordinator saw; None: it saw no sum."""

    run: Run
    cohort: int | None


@dataclass(frozen=True)
class PlantExposure:
    """In how many of the last runs a plant was seen alone or in a sum, and in how many rounds at most.

    ``exposed`` is the share of its rows that differences of its answers show, as it told last; None: it does not tell.
    """

    name: str
    alone: int
    in_sums: int
    rounds_alone: int
    rounds_in_sums: int
    smallest_cohort: int | None
    exposed: float | None = None


@dataclass(frozen=True)
class Privacy:
    """The last runs, and each plant's part in them."""

    runs: tuple[Revealed, ...]
    plants: tuple[PlantExposure, ...]


def privacy(backend: Backend, *, real: bool) -> Privacy:
    """Look back on the last runs that began."""
    runs = [run for run in backend.store.runs.list_runs(limit=LAST_RUNS) if run.sites]
    cohorts = {run.run_id: _cohorts(run) for run in runs}
    return Privacy(
        tuple(Revealed(run, min(cohorts[run.run_id].values(), default=None)) for run in runs),
        tuple(_plants(backend, runs, cohorts, real)),
    )


def _cohorts(run: Run) -> dict[str, int]:
    """Size of the smallest cohort that each plant was in; empty where no sums were made.

    A plant that the run goes on without was in one until then, and those that it leaves may be in a smaller one since.
    """
    if run.plan.reveal != "sums" or len(run.sites) < run.plan.min_cohort:
        return {}
    sizes = _sizes(run.model_copy(update={"excluded": ()}))
    try:
        since = _sizes(run)
    except ProblemError:  # too few were left, and no more sums were made
        return sizes
    return {site: min(size, since.get(site, size)) for site, size in sizes.items()}


def _sizes(run: Run) -> dict[str, int]:
    return {site: len(members) for members in cohorts_of(run).values() for site in members}


def _plants(
    backend: Backend, runs: Sequence[Run], cohorts: dict[str, dict[str, int]], real: bool
) -> list[PlantExposure]:
    alone: Counter[str] = Counter()
    summed: Counter[str] = Counter()
    rounds_alone: Counter[str] = Counter()
    rounds_summed: Counter[str] = Counter()
    smallest: dict[str, int] = {}
    # Runs come the newest first, so the last word of a plant is what it told in the newest.
    exposed = {site.site_id: site.exposed for run in reversed(runs) for site in run.sites if site.exposed is not None}
    for run in runs:
        for site in (each.site_id for each in run.sites):
            if run.plan.reveal != "sums":
                alone[site] += 1
                rounds_alone[site] += run.rounds
                continue
            summed[site] += 1
            rounds_summed[site] += run.rounds
            size = cohorts[run.run_id].get(site)
            if size is not None:
                smallest[site] = min(size, smallest.get(site, size))
    names = Names(backend, FLEET, real, ())
    found = [
        PlantExposure(
            names.site(site), alone[site], summed[site], rounds_alone[site], rounds_summed[site], smallest.get(site),
            exposed.get(site),
        )
        for site in {*alone, *summed}
    ]
    return sorted(found, key=lambda each: (-each.rounds_alone, each.name))
