"""What a flow run ends with in Prefect where it brings no model: skipped, cancelled, interrupted or failed."""

from __future__ import annotations

from typing import Any

from prefect import State
from prefect.context import FlowRunContext
from prefect.states import Cancelled, Completed, Crashed, Failed

from flows.labels import tag_of
from flows.lease import IN_PROGRESS
from flows.orders import NOT_ASKED
from services.contracts.errors import BallastError, ConflictError, UnavailableError
from services.coordinator.run_state.run_errors import RunCancelledError
from services.round_store.runs.run_rows import OVERTAKEN

SKIPPED = "Skipped"
"""Name of the state, of Prefect's type Completed, where nothing had to be done."""


def ending(error: Exception) -> State[Any]:
    """State of the flow run that an error ends: a message of one line, no traceback.

    Skipped: the run has another driver, or Prefect's schedule came at a moment for which the store asks for none, or a
    run that waited for its process ended before it came.
    Cancelled: an operator said so. Crashed: the database went away, or another process drove the run further, and the
    run goes on in a new flow run. All others are failures.
    """
    code = error.code if isinstance(error, BallastError) else ""
    said = " ".join(str(error).split()) or type(error).__name__
    if code == IN_PROGRESS or (code == NOT_ASKED and _is_ours()):
        return Completed(name=SKIPPED, message=f"skipped: {said}", data={"skipped": said})
    if isinstance(error, RunCancelledError):
        return Cancelled(message=said)
    if is_passing(error):
        return Crashed(message=f"{said}; the run goes on in a new flow run")
    return Failed(message=said)


def is_passing(error: Exception) -> bool:
    """Whether the run may go on: the store could not be used, or another process has driven the run further.

    A process that stood still while its lease expired may commit a round before it notices. What is committed stands in
    both cases, and a later try goes on from there.
    """
    if isinstance(error, ConflictError):
        return error.code == OVERTAKEN
    return isinstance(error, UnavailableError) and error.code.startswith("database_")


def _is_ours() -> bool:
    """Whether a schedule made the flow run, or a flows process did, which gives it the tag of its run."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        return False
    made = context.flow_run
    return bool(made.auto_scheduled) or tag_of(str(made.parameters.get("run_id"))) in made.tags
