"""A run, and two beside one another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.backend.wiring import Backend
from api.console.views.names import Names
from api.console.views.tuning import TuningPart, tuning_part
from services.contracts.history.run import RoundPoint, Run
from services.contracts.plans.plan_changes import Change, plan_changes
from services.round_store.operation.overview import Missed, SiteTotals

SHOWN_ROUNDS = 60
"""Rounds in the table of the page; the API has all of them."""


@dataclass(frozen=True)
class RunPage:
    """A run with its rounds, each plant's part and what was missed; plants under the names that the reader may see."""

    run: Run
    points: tuple[RoundPoint, ...]
    totals: tuple[SiteTotals, ...]
    missed: tuple[Missed, ...]
    last: tuple[Missed, ...]

    @property
    def is_live(self) -> bool:
        """Whether more rounds may come."""
        return self.run.status in ("pending", "running")

    @property
    def tuning(self) -> TuningPart | None:
        """How the run's terms were chosen; None: they are as written."""
        return tuning_part(self.run.plan.tuned, self.run.plan.spec.loss.name)

    @property
    def weights(self) -> dict[str, float]:
        """Share of the weight of each plant that makes the model."""
        return {site.site_id: site.weight for site in self.run.members}

    @property
    def series(self) -> dict[str, Any]:
        """Bounds by round, for the chart."""
        return series(self.points)


def run_page(backend: Backend, run_id: str, *, real: bool) -> RunPage:
    """Page of a run; ``NotFoundError`` where there is none."""
    overview = backend.store.overview
    run = backend.store.runs.get_run(run_id)
    points, totals = overview.points(run_id), overview.totals(run_id)
    missed, last = overview.missed(run_id), overview.answers(run_id, run.rounds) if run.rounds else []
    known = {
        *(site.site_id for site in run.sites), *(site.site_id for site in run.absentees),
        *(site.site_id for site in run.excluded), *(each.site_id for each in totals),
    }
    names = Names(backend, run.plan.name, real, known)
    shown = run if real else backend.pseudonyms.applied(run.plan.name, run, known)
    return RunPage(
        run=shown, points=tuple(points), totals=tuple(sorted((_named(each, names) for each in totals), key=_by_site)),
        missed=tuple(_named(each, names) for each in missed),
        last=tuple(sorted((_named(each, names) for each in last), key=_by_site)),
    )


def _named(record: Any, names: Names) -> Any:
    told = {"reason": names.text(record.reason)} if isinstance(record, Missed) else {}
    return record.model_copy(update={"site_id": names.site(record.site_id), **told})


def _by_site(record: Any) -> str:
    return str(record.site_id)


def series(points: Sequence[RoundPoint]) -> dict[str, Any]:
    """Rounds, bounds and gap as lists that JSON can hold: null where a bound is not finite."""
    return {
        "round": [point.round for point in points],
        "upper": [_finite(point.upper) for point in points],
        "lower": [_finite(point.lower) for point in points],
        "gap": [_finite(point.gap) for point in points],
        "fresh": [point.fresh_weight for point in points],
        "seconds": [point.seconds for point in points],
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


@dataclass(frozen=True)
class Comparison:
    """Two runs: their figures, their bounds by round, and what their plans differ in."""

    left: Run
    right: Run
    left_points: tuple[RoundPoint, ...]
    right_points: tuple[RoundPoint, ...]
    changes: Mapping[str, Change]

    @property
    def series(self) -> dict[str, Any]:
        """Gap of both runs over the rounds of the longer one."""
        length = max(len(self.left_points), len(self.right_points))
        both = [[_finite(point.gap) for point in points] for points in (self.left_points, self.right_points)]
        padded = [gaps + [None] * (length - len(gaps)) for gaps in both]
        return {"round": list(range(1, length + 1)), "left": padded[0], "right": padded[1]}


def comparison(backend: Backend, left: str, right: str, *, real: bool) -> Comparison:
    """Two runs side by side; ``NotFoundError`` where there is none."""
    runs = [backend.store.runs.get_run(run_id) for run_id in (left, right)]
    points = [tuple(backend.store.overview.points(run.run_id)) for run in runs]
    shown = [run if real else backend.pseudonyms.applied(run.plan.name, run) for run in runs]
    return Comparison(shown[0], shown[1], points[0], points[1], plan_changes(shown[0].plan, shown[1].plan))
