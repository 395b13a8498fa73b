"""What a flow run is called and labelled with in Prefect's pages, so that runs can be found there."""

from __future__ import annotations

import json

from services.contracts.history.run import Run
from services.contracts.plans.plan import Plan


def plan_tags(plan: Plan) -> list[str]:
    """Tags of a plan's deployment, which its flow runs bear too."""
    return ["ballast", f"plan:{plan.name}", f"asset-type:{plan.asset_type}", f"method:{plan.method}",
            f"reveal:{plan.reveal}"]


def run_tags(run: Run) -> list[str]:
    """Tags of a flow run: its plan's as it is in this run, the run, and what was set for it alone."""
    own = [f"set:{name}={json.dumps(value)}" for name, value in (run.plan.overrides or {}).items()]
    return [*plan_tags(run.plan), run_tag(run), *own]


def run_tag(run: Run) -> str:
    """Tag that all flow runs of a run bear, and no other."""
    return tag_of(run.run_id)


def tag_of(run_id: str) -> str:
    """The same by the run's id."""
    return f"run:{run_id}"


def run_name(run: Run, attempt: int | None = None) -> str:
    """Name of a flow run: its plan, the beginning of the run's id, and the number of this start where it is known.

    One that tunes alone says so.
    """
    alone = "-tuning" if run.plan.tunes_only else ""
    return f"{run.plan.name}-{run.run_id[:8]}{alone}" + ("" if attempt is None else f"-{attempt}")
