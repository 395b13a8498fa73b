"""Runs and their rounds."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from api.auth import Caller, Reader
from api.dependencies import Limit, Office, Offset, PlainJSON
from api.reading import known_sites
from api.schemas import Rounds, Runs
from api.wiring import Backend
from services.contracts.run import Run, RunStatus

router = APIRouter(prefix="/v1/runs", tags=["runs"], default_response_class=PlainJSON)


@router.get("")
def list_runs(
    caller: Reader,
    backend: Office,
    plan: str | None = None,
    status: RunStatus | None = None,
    limit: Limit = 100,
    offset: Offset = 0,
) -> Runs:
    """Runs, newest first; of one plan or status where asked."""
    found = backend.store.runs.list_runs(plan=plan, status=status, limit=limit, offset=offset)
    return Runs(runs=tuple(shown(backend, caller, run) for run in found))


@router.get("/{run_id}")
def get_run(run_id: str, caller: Reader, backend: Office) -> Run:
    """One run: its plan as it was, its sites, its certificate so far."""
    return shown(backend, caller, backend.store.runs.get_run(run_id))


@router.get("/{run_id}/rounds")
def list_rounds(
    run_id: str, caller: Reader, backend: Office, after: Annotated[int, Query(ge=0, le=2**31)] = 0, limit: Limit = 1000
) -> Rounds:
    """Committed rounds of a run later than ``after``, in order, with what each site answered."""
    found = backend.store.runs.get_rounds(run_id, after=after, limit=limit)
    if caller.sees_site_names:
        return Rounds(rounds=tuple(found))
    model = backend.store.runs.get_run(run_id).plan.name
    return backend.pseudonyms.applied(model, Rounds(rounds=tuple(found)), known_sites(backend))


def shown(backend: Backend, caller: Caller, run: Run) -> Run:
    """Run with the names of sites that the caller may see."""
    if caller.sees_site_names:
        return run
    return backend.pseudonyms.applied(run.plan.name, run, known_sites(backend))
