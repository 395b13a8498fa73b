"""One-time codes by which plants enrol: made, shown this once with the command to paste, and revoked."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import ValidationError

from api.console.endpoints.admin import admin_view, number_of
from api.console.forms import Posted, reason_of
from api.console.rendering import HEADERS
from api.sites import enrolment
from api.sites.schemas import CodeRequest, SiteName
from api.web.auth import CONSOLE, Administrator
from api.web.dependencies import BackendDep
from services.contracts.errors import ConflictError, InvalidInputError
from services.contracts.reading import explain

router = APIRouter(prefix=CONSOLE, include_in_schema=False)


@router.post("/admin/codes")
def create_code(request: Request, fields: Posted, caller: Administrator, backend: BackendDep) -> HTMLResponse:
    """Make a code and show it this once, with the command for the plant."""
    try:
        site = SiteName(site_id=fields.get("site_id", "").strip())
        wanted = CodeRequest(
            asset_type=fields.get("asset_type", "").strip() or None, expires_hours=number_of(fields, "hours", 24.0),
            description=fields.get("description", "").strip(), replace_key="replace_key" in fields,
            certificate_sha256=fields.get("certificate_sha256", "").strip() or None,
        )
        code = enrolment.create_code(backend, caller.actor, site.site_id, wanted)
    except ValidationError as error:
        model = SiteName if error.title == SiteName.__name__ else CodeRequest
        return admin_view(request, backend, 422, explain(error, model))
    except (ConflictError, InvalidInputError) as error:
        return admin_view(request, backend, 409 if isinstance(error, ConflictError) else 422, str(error))
    return admin_view(request, backend, code=code)


@router.post("/admin/sites/{site_id}/codes/{code_id}/revoke")
def revoke_code(
    site_id: str, code_id: str, fields: Posted, caller: Administrator, backend: BackendDep
) -> Response:
    """Revoke a code that was not used."""
    enrolment.revoke_code(backend, caller.actor, site_id, code_id, reason_of(fields))
    return RedirectResponse(f"{CONSOLE}/admin#codes", 303, headers=HEADERS)
