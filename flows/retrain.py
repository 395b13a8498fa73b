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
from flows.wiring import Workshop, open_workshop
from models.problem import ProblemError
from services.contracts.errors import BallastError
from services.contracts.run import Run
from services.coordinator.training import RunCancelledError, full_weights


def cancel_run(flow: Flow[Any, Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Carry a cancellation in Prefect over to our run, so that nobody picks it up again."""
    parameters = flow_run.parameters or {}
    run_id = parameters.get("run_id")
    with open_workshop() as shop:
        for unfinished in shop.store.runs.unfinished_runs(parameters.get("plan")):
            if run_id in (None, unfinished.run_id):
                shop.store.runs.finish_run(unfinished.run_id, "cancelled", "cancelled in Prefect")


@flow(name="retrain", log_prints=False, retries=0, on_cancellation=[cancel_run])
async def retrain(plan: str, run_id: str | None = None) -> dict[str, Any]:
    """Run a plan: go on with its unfinished run if there is one, else begin one; answer what came of it.

    Parameters
    ----------
    plan : name of the plan.
    run_id : a pending or orphaned run of that plan to drive; None: the unfinished one, or a new one.
    """
    log = get_run_logger()
    with open_workshop() as shop:
        run = pick_run(shop, plan, run_id)
        log.info("run %s of plan %s with method %s", run.run_id, plan, run.plan.method)
        async with held_lease(shop.store.runs, run.run_id, new_owner(), shop.settings.lease_seconds):
            shop.store.runs.set_flow_run_id(run.run_id, str(this_flow_run.id))
            with failure_recorded(shop, run):
                return await drive(shop, run)


async def drive(shop: Workshop, run: Run) -> dict[str, Any]:
    """Join, train, evaluate, register, promote if the gates hold."""
    log = get_run_logger()
    async with shop.plant_link() as transport:
        coordinator = shop.coordinator(run, transport)
        run = await coordinator.join(run)
        log.info("%d sites take part: %s", len(run.sites), ", ".join(site.site_id for site in run.sites))
        progress = Progress(run)
        trained = await coordinator.train(run, progress)
        await progress.finish(trained.rounds, trained.gap)
        weights = full_weights(trained.weights, fit_intercept=run.plan.spec.fit_intercept)
        evaluation = await coordinator.evaluate(run, weights, trained.risk_bound)
    version = register(shop, run, trained, evaluation)
    outcome = promote_if_gates_hold(shop, run, version)
    shop.store.runs.finish_run(run.run_id, "completed", closing_note(run, trained, outcome))
    log.info("model %s: %s", version.name, outcome)
    return {"run_id": run.run_id, "model": version.name, "version": version.version, "outcome": outcome}


def pick_run(shop: Workshop, plan: str, run_id: str | None) -> Run:
    """Return the run to drive: the one that is named, else the plan's unfinished one, else a new one."""
    if run_id is not None:
        return shop.store.runs.get_run(run_id)
    unfinished = shop.store.runs.unfinished_runs(plan)
    return unfinished[0] if unfinished else shop.store.runs.create_run(shop.store.plans.get(plan).plan)


@contextmanager
def failure_recorded(shop: Workshop, run: Run) -> Iterator[None]:
    """Write the reason down when a run fails for a reason that trying again would not mend."""
    try:
        yield
    except RunCancelledError as error:
        shop.store.runs.finish_run(run.run_id, "cancelled", str(error))
        raise
    except (BallastError, ProblemError) as error:
        shop.store.runs.finish_run(run.run_id, "failed", str(error))
        raise


def retrain_here(plan: str) -> dict[str, Any]:
    """Run the flow in this process; what ``python -m flows.retrain PLAN`` does."""
    import asyncio

    return asyncio.run(retrain(plan))


if __name__ == "__main__":
    import sys

    print(retrain_here(sys.argv[1]))
