"""The retraining flow: one execution of a plan, from the question who is there to a version in the registry."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from uuid import UUID

from prefect import State, flow
from prefect.client.orchestration import get_client
from prefect.logging import get_run_logger
from prefect.runtime import flow_run as this_flow_run

from flows.artifacts import forget_tables, link_to_version, unless_away
from flows.doing import told_step
from flows.endings import ending, is_passing
from flows.labels import run_name, run_tags
from flows.lease import held_lease, new_owner
from flows.orders import ordered_run
from flows.progress import Progress
from flows.publish import (
    announce,
    closing_note,
    end_of_tuning,
    keep_draft,
    promote_if_gates_hold,
    register,
    withdraw,
)
from flows.steps import REGISTRY_WAITS
from flows.sudden_end import end_at_once_when_told
from flows.unlearning import forget_those_due
from flows.until_cancelled import still_wanted, tried_until_cancelled
from flows.wiring import FlowContext, open_context
from models.basics import ProblemError
from services.contracts.errors import BallastError
from services.contracts.history.run import Run
from services.contracts.plans.plan_problem import couples
from services.contracts.versions.draft import VersionDraft
from services.coordinator.run_state.run_errors import RunCancelledError
from services.coordinator.run_state.training_state import TrainedModel
from services.coordinator.training import Coordinator
from services.process.end_with_parent import end_with_parent
from services.process.log_lines import about, set_up_logs
from services.process.private_files import keep_private
from services.process.tracing import end_tracing, set_up_tracing, span


@flow(name="retrain", log_prints=False, retries=0)
async def retrain(plan: str, run_id: str | None = None) -> dict[str, Any] | State[Any]:
    """Run a plan: go on with its unfinished run if there is one, else begin one; answer what came of it.

    What the store does not ask for ends at once as failed, with one line; a date that comes while the plan's run is on
    its way, as skipped. Every end without a model has its line and no traceback (:mod:`flows.endings`).

    Parameters
    ----------
    plan : name of the plan.
    run_id : an unfinished run of that plan; None: a date of the plan's schedule has come. The store is asked whether
        that is so (:mod:`flows.orders`).
    """
    end_at_once_when_told()
    log = get_run_logger()
    runner = multiprocessing.parent_process()
    if runner is not None:
        end_with_parent()  # the next flows process takes the run up from what is committed
        if not runner.is_alive():  # it ended while this process was starting
            os._exit(1)
    with ExitStack() as opened:
        try:
            context = opened.enter_context(open_context())
        except BallastError as error:  # its process was begun while the database was there
            log.error("%s", error)
            return ending(error)
        if runner is not None and context.settings.logging.format == "json":
            set_up_logs(context.settings.logging)
        set_up_tracing(context.settings.tracing, "ballast-flows")
        owner, seconds = new_owner(), context.settings.lease_seconds
        try:
            run = await ordered_run(context.store, plan, run_id, owner=owner, lease_seconds=seconds)
            log.info("run %s of plan %s with method %s", run.run_id, plan, run.plan.method)
            with about(run_id=run.run_id):
                async with held_lease(context.store.runs, run.run_id, owner, seconds):
                    context.store.runs.set_flow_run_id(run.run_id, str(this_flow_run.id))
                    await name_flow_run(run)
                    with failure_recorded(context, run, owner), span("run", run_id=run.run_id, plan=plan):
                        ended = await drive(context, run)
                # The run has ended, and its lease with it: forgetting takes a lease of its own.
                await asyncio.to_thread(forget_those_due, context, forget_tables)
                return ended
        except (BallastError, ProblemError) as error:
            state = ending(error)
            log.log(logging.INFO if state.is_completed() else logging.ERROR, "%s", state.message)
            return state
        finally:
            end_tracing()


async def drive(context: FlowContext, run: Run) -> dict[str, Any]:
    """Join, tune, train, couple, evaluate, register, promote if the gates hold; a run may tune alone.

    A NATS server that is away is waited for as plants are. Once the draft of a run's version is committed, no plant is
    asked more, whichever process goes on with the run.
    """
    draft = context.store.runs.get_draft(run.run_id)
    if draft is None:
        wanted = partial(still_wanted, context, run)
        async with context.plant_link(run.plan.absence_patience_seconds, wanted) as transport:
            coordinator = context.coordinator(run, transport)
            run = await told_step(context, run, "join", partial(coordinator.join, run))
            names = ", ".join(site.site_id for site in run.sites)
            get_run_logger().info("%d sites take part: %s", len(run.sites), names)
            if run.plan.tunes_only:
                return end_of_tuning(context, await tune(coordinator, run))
            run, draft = await train_and_evaluate(context, coordinator, run)
    return await conclude(context, run, draft)


async def train_and_evaluate(context: FlowContext, coordinator: Coordinator, run: Run) -> tuple[Run, VersionDraft]:
    """All that needs the plants, from the tuning to the calibration; the run as it is now, and its committed draft."""
    progress = Progress(run, context.store.runs.get_rounds(run.run_id))
    try:
        await asyncio.to_thread(announce, context, run)
        run = await tune(coordinator, run)
        trained = await told_step(context, run, "train", partial(coordinator.train, run, progress))
        run = context.store.runs.get_run(run.run_id)
        trained = await couple(context, coordinator, run, trained)
        asked = partial(coordinator.evaluate, run, trained.weights, trained.risk_bound)
        evaluation = await told_step(context, run, "evaluate", asked)
        while evaluation.convicted:
            again = partial(coordinator.train, run, progress, evaluation)
            trained = await told_step(context, run, "train again", again)
            run = context.store.runs.get_run(run.run_id)
            trained = await couple(context, coordinator, run, trained)
            asked = partial(coordinator.evaluate, run, trained.weights, trained.risk_bound)
            evaluation = await told_step(context, run, "evaluate again", asked)
        calibrated = await told_step(context, run, "calibrate", partial(coordinator.calibrate, run, trained.weights))
        draft = await asyncio.to_thread(keep_draft, context, run, trained, evaluation, calibrated)
        await progress.finish(trained.rounds, trained.certificate.gap)
    finally:
        await progress.show()
    return run, draft


async def couple(context: FlowContext, coordinator: Coordinator, run: Run, trained: TrainedModel) -> TrainedModel:
    """The model with its planes coupled, where its plan has that; else as it is, without a step in Prefect's pages."""
    if not couples(run.plan, context.contract_of(run)):
        return trained
    return await told_step(context, run, "couple", partial(coordinator.couple, run, trained))


async def conclude(context: FlowContext, run: Run, draft: VersionDraft) -> dict[str, Any]:
    """Register a run's version, promote it if its gates hold, and end the run; done once more, it changes nothing.

    An order to cancel that comes after the last round comes too late, but for a run that waits for the registry: it
    ends as cancelled, or, where its version is recorded by then, as completed with a challenger.
    """
    to_registry = tried_until_cancelled(context, run, partial(register, context, run, draft))
    version = await told_step(context, run, "register", to_registry, REGISTRY_WAITS)
    to_champion = tried_until_cancelled(context, run, partial(promote_if_gates_hold, context, run, version))
    try:
        outcome = await told_step(context, run, "promote", to_champion, REGISTRY_WAITS)
    except RunCancelledError as error:
        outcome = f"version {version.version} stays challenger: {error}"
    await link_to_version(version, f"{context.settings.api.url}/console", outcome)
    context.store.runs.finish_run(run.run_id, "completed", closing_note(run, draft.stopped, outcome))
    get_run_logger().info("model %s: %s", version.name, outcome)
    return {"run_id": run.run_id, "model": version.name, "version": version.version, "outcome": outcome}


async def name_flow_run(run: Run) -> None:
    """Call the flow run after its run, and label it; one that a schedule started has a name of Prefect's making."""
    started_here = str(this_flow_run.name or "").startswith(run_name(run))
    async with unless_away(f"name of run {run.run_id}"), get_client() as client:
        tags = sorted({*(this_flow_run.tags or ()), *run_tags(run)})
        await client.update_flow_run(
            UUID(str(this_flow_run.id)), name=None if started_here else run_name(run), tags=tags
        )


async def tune(coordinator: Coordinator, run: Run) -> Run:
    """Choose the run's terms first, where its plan says so, in a flow of its own in Prefect's pages."""
    if run.plan.tuning is None or run.plan.tuned is not None or run.rounds:
        return run
    return await tuning_flow(coordinator, run)


@flow(name="tune", log_prints=False, retries=0, validate_parameters=False, persist_result=False)
async def tuning_flow(coordinator: Coordinator, run: Run) -> Run:
    """Tuning of a run; the choice stands with the run when this returns, and nothing of it before."""
    end_at_once_when_told()
    log = get_run_logger()
    tuned = await coordinator.tune(run)
    curve = tuned.plan.tuned
    if curve is not None:
        log.info("%d candidates in %d rounds: %s", len(curve.candidates), curve.rounds, curve.why)
    return tuned


@contextmanager
def failure_recorded(context: FlowContext, run: Run, owner: str) -> Iterator[None]:
    """Write the reason down when a run fails for a reason that trying again would not mend.

    Not where the lease of ``owner``, this process, became another's: it stood still, and the run may be past that.
    """
    try:
        yield
    except RunCancelledError as error:
        context.store.runs.finish_run(run.run_id, "cancelled", str(error), owner)
        withdraw(context, run, "cancelled")
        raise
    except (BallastError, ProblemError) as error:
        if not is_passing(error):
            context.store.runs.finish_run(run.run_id, "failed", str(error), owner)
            withdraw(context, run, "failed")
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
