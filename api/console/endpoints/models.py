"""Models: versions and their certificates, fairness, diagnoses, and who is champion."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import ValidationError

from api.console.charts import Line, Point, line_chart
from api.console.forms import Fields, Posted, reason_of
from api.console.rendering import HEADERS, page
from api.console.views import diagnose as diagnosing
from api.console.views.learnt import sensor_charts
from api.console.views.links import pages_of
from api.console.views.models import fairness, version_page
from api.models import service, unlearning
from api.models.schemas import Unlearning
from api.web.auth import CONSOLE, Administrator, Diagnoser, Operator, Reader
from api.web.dependencies import BackendDep, Offset
from services.contracts.base import VERSION_PATTERN
from services.contracts.errors import BallastError, InvalidInputError, NotFoundError
from services.contracts.evaluation.fairness import BASIS_NAMES
from services.contracts.evaluation.scores import COVERAGE_CONFIDENCE
from services.contracts.reading import explain
from services.contracts.versions.version_facts import VersionSummary
from services.registry.labels import CHAMPION
from services.reporting.fairness_page import EXPLAINED, index_columns

router = APIRouter(prefix=CONSOLE, include_in_schema=False)
SHOWN_VERSIONS: Final = 20  # at a time, the newest first
DRAWN_VERSIONS: Final = 200  # the newest, over time


@router.get("/models")
def models_page(request: Request, _: Reader, backend: BackendDep) -> HTMLResponse:
    """List the models with their champions."""
    return page(request, "models.html", models=backend.registry.models())


@router.get("/models/{name}")
def model_page(name: str, _: Reader, backend: BackendDep) -> Response:
    """Go to the champion of a model, or to its newest version."""
    try:
        number = backend.checked.resolve(name, CHAMPION)
    except NotFoundError:
        number = backend.registry.versions(name, 1)[0].version
    return RedirectResponse(f"{CONSOLE}/models/{name}/versions/{number}", 303, headers=HEADERS)


@router.get("/models/{name}/versions/{version}")
def one_version_page(
    request: Request, name: str, version: str, caller: Reader, backend: BackendDep, offset: Offset = 0
) -> HTMLResponse:
    """Show what a version proves, what it scores, and which versions there are, from the ``offset``-th newest."""
    newest = max(DRAWN_VERSIONS, offset + SHOWN_VERSIONS + 1)
    found = version_page(backend, name, version, newest=newest, real=caller.sees_site_names)
    oldest_first = [each for each in found.versions[:DRAWN_VERSIONS][::-1] if each.version.isdecimal()]
    return page(
        request, "model.html", found=found, shown=found.versions[offset : offset + SHOWN_VERSIONS],
        offset=offset, step=SHOWN_VERSIONS, more=len(found.versions) > offset + SHOWN_VERSIONS,
        trend=_trend(oldest_first), pages=pages_of(backend.settings), curves=sensor_charts(found.parts),
    )


def _trend(versions: list[VersionSummary]) -> object:
    """Held-out score and worst-case risk by version; risks of unlike losses are no line."""
    scored = "F-1" if any(each.f1 is not None for each in versions) else "mean absolute error"
    risks: list[Point] = []
    for before, each in zip([None, *versions], versions, strict=False):
        if before is not None and before.loss != each.loss:
            risks.append((float(each.version), None))
        risks.append((float(each.version), each.worst_case_risk))
    lines = [
        Line(scored, [(float(each.version), each.f1 if each.f1 is not None else each.mae) for each in versions], "a"),
        Line("worst-case risk", risks, "b"),
    ]
    return line_chart("Versions over time", lines, "version", "figure") if len(versions) > 1 else ""


@router.get("/models/{name}/versions/{version}/fairness")
def fairness_page(request: Request, name: str, version: str, caller: Reader, backend: BackendDep) -> HTMLResponse:
    """Show how unequally a version serves the plants, and what a promotion would change for each."""
    found = fairness(backend, name, version, real=caller.is_administrator)
    curves = [Line("equality", [(0.0, 0.0), (1.0, 1.0)], "c")]
    told = [(indices, "") for indices in found.report.indices]
    told += [(indices, " of the champion") for indices in found.report.champion_indices]
    for number, (indices, whose) in enumerate(told):
        points = [(point.sites, point.losses) for point in indices.lorenz]
        curves.append(Line(BASIS_NAMES[indices.basis] + whose, points, ("a", "b", "d", "e")[number % 4]))
    return page(
        request, "fairness.html", name=name, found=found, report=found.report, explained=EXPLAINED,
        columns=index_columns(found.report),
        chart=line_chart("Lorenz curves", curves, "share of the plants, best first", "share of all loss"),
    )


@router.post("/models/{name}/versions/{version}/promote")
def promote(name: str, version: str, fields: Posted, caller: Operator, backend: BackendDep) -> Response:
    """Make a version champion; a reason is needed."""
    ignore = fields.get("ignore_gates") == "yes"
    service.promote(backend, caller.actor, name, version, reason_of(fields, needed=True), ignore_gates=ignore)
    return RedirectResponse(f"{CONSOLE}/models/{name}/versions/{version}", 303, headers=HEADERS)


@router.post("/models/{name}/rollback")
def roll_back(name: str, fields: Posted, caller: Operator, backend: BackendDep) -> Response:
    """Make the champion before this one champion again; a reason is needed."""
    change = service.rollback(backend, caller.actor, name, reason_of(fields, needed=True))
    return RedirectResponse(f"{CONSOLE}/models/{name}/versions/{change.version}", 303, headers=HEADERS)


@router.post("/models/{name}/unlearn")
def unlearn(name: str, fields: Posted, caller: Administrator, backend: BackendDep) -> Response:
    """Have a plant leave: a run without it begins; a reason is needed."""
    try:
        wanted = Unlearning(
            site=fields.get("site", ""), reason=reason_of(fields, needed=True),
            purge="now" if fields.get("now") == "yes" else "promotion",
        )
    except ValidationError as error:
        raise InvalidInputError(explain(error, Unlearning)) from None
    asked = unlearning.unlearn(backend, caller.actor, name, wanted)
    return RedirectResponse(f"{CONSOLE}/runs/{asked.run_id}", 303, headers=HEADERS)


@router.get("/diagnose")
def choose_model_page(request: Request, _: Diagnoser, backend: BackendDep) -> Response:
    """Choose the model that diagnoses; go straight on where there is one."""
    models = [model for model in backend.registry.models() if model.champion is not None]
    if len(models) == 1:
        return RedirectResponse(f"{CONSOLE}/models/{models[0].name}/diagnose", 303, headers=HEADERS)
    return page(request, "choose_model.html", models=models)


@router.get("/models/{name}/diagnose")
def diagnose_page(
    request: Request, name: str, _: Diagnoser, backend: BackendDep,
    alias: Annotated[str, Query(pattern=VERSION_PATTERN)] = "champion",
) -> HTMLResponse:
    """Show the form of a measurement, from the contract of the kind of machine."""
    asset_type = diagnosing.asset_type_of(backend, name, alias)
    return page(
        request, "diagnose.html", name=name, alias=alias, asset_type=asset_type, fields={}, results=(), problem="",
    )


@router.post("/models/{name}/diagnose")
def diagnose(request: Request, name: str, fields: Posted, _: Diagnoser, backend: BackendDep) -> HTMLResponse:
    """Say what the model makes of a measurement, or of many as CSV; nothing of them is kept."""
    alias = fields.get("alias", "champion")
    asset_type = diagnosing.asset_type_of(backend, name, alias)
    try:
        text = fields.get("csv", "").strip()
        samples = diagnosing.samples_of(text) if text else [diagnosing.sample_of(asset_type, fields)]
        results, problem = diagnosing.ask(backend, name, alias, samples, _confidence(fields)), ""
    except BallastError as error:
        results, problem = (), str(error)
    return page(
        request, "diagnose.html", 422 if problem else 200, name=name, alias=alias, asset_type=asset_type,
        fields=fields, results=results, problem=problem,
    )


def _confidence(fields: Fields) -> float:
    try:
        confidence = float(fields.get("confidence", COVERAGE_CONFIDENCE))
    except ValueError:
        confidence = 0.0
    if not 0 < confidence < 1:
        raise InvalidInputError("confidence: a number between 0 and 1 is needed")
    return confidence
