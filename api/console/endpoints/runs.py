"""Runs: the list, one live, two compared, and the order to stop one."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from api.backend.wiring import Backend
from api.console.charts import Line, line_chart
from api.console.forms import Posted, reason_of
from api.console.rendering import HEADERS, page
from api.console.views.runs import SHOWN_ROUNDS, comparison, run_page, series
from api.runs import service
from api.web.auth import CONSOLE, Operator, Reader
from api.web.authenticator import Caller, TokenAuthenticator
from api.web.dependencies import BackendDep, Offset
from services.contracts.errors import BallastError
from services.contracts.history.run import RunStatus

router = APIRouter(prefix=CONSOLE, include_in_schema=False)
PAGE: Final = 25  # runs on a page: a screen or two
LOOK_SECONDS: Final = 1.0
"""Between two looks for new rounds of a live run."""
LONGEST_STREAM_SECONDS: Final = 600.0
"""Then the browser asks again, and is checked again."""


@router.get("/runs")
def runs_page(
    request: Request, caller: Reader, backend: BackendDep, plan: str = "", status: RunStatus | Literal[""] = "",
    offset: Offset = 0,
) -> HTMLResponse:
    """List runs, newest first."""
    found = backend.store.runs.list_runs(plan=plan or None, status=status or None, limit=PAGE + 1, offset=offset)
    shown = [backend.named(run.plan.name, run, real=caller.sees_site_names) for run in found[:PAGE]]
    return page(
        request, "runs.html", runs=shown, plan=plan, wanted=status, offset=offset, step=PAGE,
        more=len(found) > PAGE, forgotten=backend.store.model_versions.forgotten({run.plan.name for run in shown}),
    )


@router.get("/runs/compare")
def compare_page(
    request: Request, caller: Reader, backend: BackendDep,
    left: Annotated[str, Query(max_length=64)], right: Annotated[str, Query(max_length=64)],
) -> HTMLResponse:
    """Show two runs beside one another."""
    found = comparison(backend, left, right, real=caller.sees_site_names)
    data = found.series
    lines = [
        Line(f"{found.left.plan.name} {left[:8]}", list(zip(data["round"], data["left"], strict=True)), "a"),
        Line(f"{found.right.plan.name} {right[:8]}", list(zip(data["round"], data["right"], strict=True)), "b"),
    ]
    chart = line_chart("Proven gap by round", lines, "round", "proven relative gap", log=True)
    forgotten = backend.store.model_versions.forgotten({found.left.plan.name, found.right.plan.name})
    return page(request, "compare.html", found=found, chart=chart, forgotten=forgotten)


@router.get("/runs/{run_id}")
def one_run_page(request: Request, run_id: str, caller: Reader, backend: BackendDep) -> HTMLResponse:
    """Show a run: bounds closing, who answered, what it cost; live while it goes on."""
    found = run_page(backend, run_id, real=caller.sees_site_names)
    rounds = [float(point.round) for point in found.points]
    data = found.series
    bounds = [
        Line("upper bound", list(zip(rounds, data["upper"], strict=True)), "a"),
        Line("lower bound", list(zip(rounds, data["lower"], strict=True)), "b"),
    ]
    wanted = [(rounds[0], found.run.plan.gap), (rounds[-1], found.run.plan.gap)] if rounds else []
    gaps = [
        Line("proven gap", list(zip(rounds, data["gap"], strict=True)), "a"),
        Line("wanted", [(x, y) for x, y in wanted], "c"),
    ]
    return page(
        request, "run.html", found=found, run=found.run, shown=found.points[-SHOWN_ROUNDS:][::-1],
        forgotten=backend.store.model_versions.forgotten({found.run.plan.name}),
        bounds=line_chart("Bounds by round", bounds, "round", "objective"),
        gap=line_chart("Proven gap by round", gaps, "round", "proven relative gap", log=True),
    )


@router.get("/runs/{run_id}/events")
async def run_events(
    request: Request, run_id: str, caller: Reader, backend: BackendDep, after: Annotated[int, Query(ge=0)] = 0
) -> StreamingResponse:
    """Tell new rounds of a run as they are committed (server-sent events), and its end."""
    await run_in_threadpool(backend.store.runs.get_run, run_id)
    stream = _events(request, backend, caller, run_id, after)
    return StreamingResponse(stream, media_type="text/event-stream", headers={**HEADERS, "X-Accel-Buffering": "no"})


async def _events(
    request: Request, backend: Backend, caller: Caller, run_id: str, after: int
) -> AsyncIterator[str]:
    until = time.monotonic() + LONGEST_STREAM_SECONDS
    last = max(after, _last_event(request))
    yield "retry: 2000\n\n"
    while time.monotonic() < until and not await request.is_disconnected():
        try:
            await run_in_threadpool(_still_signed_in, request, caller)
            told, last = await run_in_threadpool(_news, backend, run_id, last)
        except BallastError as error:
            yield f"event: end\ndata: {json.dumps({'reason': error.code})}\n\n"
            return
        yield f"event: rounds\nid: {last}\ndata: {json.dumps(told, allow_nan=False)}\n\n"
        if told["status"] not in ("pending", "running"):
            yield f"event: end\ndata: {json.dumps({'reason': told['status']})}\n\n"
            return
        await asyncio.sleep(LOOK_SECONDS)


def _news(backend: Backend, run_id: str, after: int) -> tuple[dict[str, Any], int]:
    """Rounds later than ``after`` with the state of the run, and the number of the last one told."""
    run = backend.store.runs.get_run(run_id)
    points = backend.store.overview.points(run_id, after)
    told = {
        "status": run.status, "doing": run.doing, "rounds": run.rounds, "cancelling": run.cancel_requested,
        **series(points),
    }
    return told, points[-1].round if points else after


def _still_signed_in(request: Request, caller: Caller) -> None:
    """Raise where the session has ended meanwhile: a stream must not outlive it."""
    authenticator: TokenAuthenticator = request.app.state.authenticator
    if caller.session:
        authenticator.of_session(caller.session)


def _last_event(request: Request) -> int:
    text = request.headers.get("last-event-id", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


@router.post("/runs/{run_id}/cancel")
def cancel_run(run_id: str, fields: Posted, caller: Operator, backend: BackendDep) -> Response:
    """Ask a run to stop after its present round."""
    service.cancel(backend, caller.actor, run_id, reason_of(fields))
    return RedirectResponse(f"{CONSOLE}/runs/{run_id}", 303, headers=HEADERS)
