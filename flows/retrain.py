"""The retraining flow: one execution of a plan, from the question who is there to a version in the registry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import FlowRun, State
from prefect.flows import Flow
from prefect.logging import get_run_logger
from prefect.runtime import flow_run as this_flow_run

from flows.lease import held_lease, new_owner
from flows.progress import Progress
from flows.publish import closing_note, promote_if_gates_hold, register
from flows.wiring import FlowContext, open_context
from models.basics import ProblemError
from services.contracts.errors import BallastError
from services.contracts.run import Run
from services.coordinator.training import RunCancelledError


def cancel_run(flow: Flow[Any, Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Carry a cancellation in Prefect over to our run, so that nobody picks it up again."""
    parameters = flow_run.parameters or {}
    run_id = parameters.get("run_id")
    with open_context() as context:
        for unfinished in context.store.runs.unfinished_runs(parameters.get("plan")):
            if run_id in (None, unfinished.run_id):
                context.store.runs.finish_run(unfinished.run_id, "cancelled", "cancelled in Prefect")


@flow(name="retrain", log_prints=False, retries=0, on_cancellation=[cancel_run])
async def retrain(plan: str, run_id: str | None = None) -> dict[str, Any]:
    """Run a plan: go on with its unfinished run if there is one, else begin one; answer what came of it.

    Parameters
    ----------
    plan : name of the plan.
    run_id : a pending or orphaned run of that plan to drive; None: the unfinished one, or a new one.
    """
    log = get_run_logger()
    with open_context() as context:
        run = pick_run(context, plan, run_id)
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


def pick_run(context: FlowContext, plan: str, run_id: str | None) -> Run:
    """Return the run to drive: the one that is named, else the plan's unfinished one, else a new one."""
    if run_id is not None:
        return context.store.runs.get_run(run_id)
    unfinished = context.store.runs.unfinished_runs(plan)
    return unfinished[0] if unfinished else context.store.runs.create_run(context.store.plans.get(plan).plan)


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


if __name__ == "__main__":
    import asyncio
    import sys

    print(asyncio.run(retrain(sys.argv[1])))
