"""Runs that tune alone."""

from __future__ import annotations

from typing import Any

from services.contracts.history.run import Run
from services.contracts.plans.overrides import tuning_alone

GRID = {
    "radius": [0.3, 1.0, 3.0, 10.0], "label_flip_cost": [1.0, 4.0], "budget": 3.0,
    "lifts": ["none", {"kind": "spline", "segments": 6}],
}


def asked(works: Any, name: str) -> Run:
    """A run that tunes alone, of a plan that would train for long."""
    plan = works.plan(name, method="level-bundle", tuning=GRID)
    return Run.model_validate(works.store.runs.create_run(tuning_alone(plan)))
