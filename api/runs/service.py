"""What an operator can do to a run."""

from __future__ import annotations

from api.backend.actor import Actor, record
from api.backend.wiring import Backend
from services.contracts.history.run import Run


def cancel(backend: Backend, actor: Actor, run_id: str, reason: str = "") -> Run:
    """Ask the process that drives a run to stop after the present round; ``ConflictError`` when it has ended."""
    with backend.store.atomic() as store:
        before = store.runs.get_run(run_id)
        after = store.runs.request_cancel(run_id)
        if not before.cancel_requested:
            change = {"plan": after.plan.name, "status": after.status, "cancel_requested": True}
            record(store, actor, "run.cancel", f"run:{run_id}", after=change, reason=reason)
    return after
