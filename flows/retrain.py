"""The retraining flow: one execution of a plan, from the question who is there to a version in the registry."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prefect import State, flow
from prefect.logging import get_run_logger
from prefect.runtime import flow_run as this_flow_run
from prefect.states import Failed

from flows.lease import held_lease, new_owner
from flows.orders import ordered_run
from flows.progress import Progress
from flows.publish import closing_note, promote_if_gates_hold, register
from flows.wiring import FlowContext, open_context
from models.basics import ProblemError
from services.contracts.errors import BallastError, ConflictError
from services.contracts.private_files import keep_private
from services.contracts.run import Run
from services.coordinator.training import RunCancelledError


@flow(name="retrain", log_prints=False, retries=0)
async def retrain(plan: str, run_id: str | None = None) -> dict[str, Any] | State[Any]:
    """Run a plan: go on with its unfinished run if there is one, else begin one; answer what came of it.

    What the store does not ask for ends at once as failed, with one line.

    Parameters
    ----------
    plan : name of the plan.
    run_id : an unfinished run of that plan; None: a date of the plan's schedule has come. The store is asked whether
        that is so (:mod:`flows.orders`).
    """
    log = get_run_logger()
    with open_context() as context:
        try:
            run = await ordered_run(context.store, plan, run_id)
        except ConflictError as error:
            log.error("%s", error)
            return Failed(message=str(error))
        log.info("run %s of plan %s with method %s", run.run_id, plan, run.plan.method)
        async with held_lease(context.store.runs, run.run_id, new_owner(), context.settings.lease_seconds):
            context.store.runs.set_flow_run_id(run.run_id, str(this_flow_run.id))
            with failure_recorded(context, run):
                return await drive(context, run)


async def drive(context: FlowContext, run: Run) -> dict[str, Any]:
    """Join, train, evaluate, register, promote if the gates hold."""
    log = get_run_logger()
    async with context.plant_link() as transport:
        coordinator = context.coordinator(run, transport)
        run = await coordinator.join(run)
        log.info("%d sites take part: %s", len(run.sites), ", ".join(site.site_id for site in run.sites))
        progress = Progress(run)
        trained = await coordinator.train(run, progress)
        run = context.store.runs.get_run(run.run_id)
        await progress.finish(trained.rounds, trained.certificate.gap)
        evaluation = await coordinator.evaluate(run, trained.weights, trained.risk_bound)
    version = register(context, run, trained, evaluation)
    outcome = promote_if_gates_hold(context, run, version)
    context.store.runs.finish_run(run.run_id, "completed", closing_note(run, trained, outcome))
    log.info("model %s: %s", version.name, outcome)
    return {"run_id": run.run_id, "model": version.name, "version": version.version, "outcome": outcome}


@contextmanager
def failure_recorded(context: FlowContext, run: Run) -> Iterator[None]:
    """Write the reason down when a run fails for a reason that trying again would not mend."""
    try:
        yield
    except RunCancelledError as error:
        context.store.runs.finish_run(run.run_id, "cancelled", str(error))
        raise
    except (BallastError, ProblemError) as error:
        context.store.runs.finish_run(run.run_id, "failed", str(error))
        raise


def retrain_here(plan: str) -> Any:
    """Ask for a run in the store, or for the unfinished one, and drive it here: ``python -m flows.retrain PLAN``."""
    with open_context() as context:
        unfinished = context.store.runs.unfinished_runs(plan)
        run = unfinished[0] if unfinished else _ask(context, plan)
    return asyncio.run(retrain(plan, run.run_id))


def _ask(context: FlowContext, plan: str) -> Run:
    with context.store.atomic() as unit:
        run = unit.runs.create_run(unit.plans.get(plan).plan)
        unit.audit.append(
            actor=f"host:{os.geteuid()}", role=None, action="plan.trigger", target=f"plan:{plan}",
            reason="python -m flows.retrain", after={"run_id": run.run_id},
        )
    return run


if __name__ == "__main__":
    import sys

    keep_private()
    print(retrain_here(sys.argv[1]))
