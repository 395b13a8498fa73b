"""Runs and their rounds."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from api.runs import service
from api.web.auth import Operator, Reader
from api.web.dependencies import BackendDep, Limit, Offset, PlainJSON, ReasonDep
from api.web.paging import Cursor, read_cursor, read_moment, say_next, write_cursor
from services.contracts.base import Contract
from services.contracts.history.run import RoundRecord, Run, RunStatus

router = APIRouter(prefix="/v1/runs", tags=["runs"], default_response_class=PlainJSON)
administration = APIRouter(
    prefix="/v1/admin/runs", tags=["administration: runs"], default_response_class=PlainJSON
)
ROUTERS = (router, administration)


class Runs(Contract):
    """Runs, newest first."""

    runs: tuple[Run, ...]


class Rounds(Contract):
    """Rounds of a run, in order."""

    rounds: tuple[RoundRecord, ...]


@router.get("")
def list_runs(
    caller: Reader,
    backend: BackendDep,
    request: Request,
    response: Response,
    plan: str | None = None,
    status: RunStatus | None = None,
    limit: Limit = 100,
    offset: Offset = 0,
    cursor: Cursor = None,
) -> Runs:
    """Runs, newest first; of one plan or status where asked."""
    key = read_cursor(request.url.path, cursor, str, str)
    after = None if key is None else (read_moment(key[0]), key[1])
    found = backend.store.runs.list_runs(plan=plan, status=status, limit=limit + 1, offset=offset, after=after)
    shown = found[:limit]
    if len(found) > limit:
        key_of_last = [shown[-1].created_at.isoformat(), shown[-1].run_id]
        say_next(request, response, limit, write_cursor(request.url.path, key_of_last))
    return Runs(runs=tuple(backend.named(run.plan.name, run, real=caller.sees_site_names) for run in shown))


@router.get("/{run_id}")
def get_run(run_id: str, caller: Reader, backend: BackendDep) -> Run:
    """One run: its plan as it was, its sites, its certificate so far."""
    run = backend.store.runs.get_run(run_id)
    return backend.named(run.plan.name, run, real=caller.sees_site_names)


@router.get("/{run_id}/rounds")
def list_rounds(
    run_id: str,
    caller: Reader,
    backend: BackendDep,
    after: Annotated[int, Query(ge=0, le=2**31)] = 0,
    limit: Limit = 1000,
) -> Rounds:
    """Committed rounds of a run later than ``after``, in order, with what each site answered."""
    model = backend.store.runs.get_run(run_id).plan.name
    rounds = Rounds(rounds=tuple(backend.store.runs.get_rounds(run_id, after=after, limit=limit)))
    return backend.named(model, rounds, real=caller.sees_site_names)


@administration.post("/{run_id}/cancel", status_code=202)
def cancel_run(run_id: str, caller: Operator, backend: BackendDep, reason: ReasonDep) -> Run:
    """Ask a run to stop after its present round."""
    return service.cancel(backend, caller.actor, run_id, reason)
